"""The Kubernetes API over HTTP: one ASGI application."""

import asyncio
import contextlib
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from mcptasks_local import discovery
from mcptasks_local.access import Access, Attributes
from mcptasks_local.errors import ApiError, Object, bad_request, method_not_allowed, unauthorized
from mcptasks_local.identity import Identity, User
from mcptasks_local.logs import LogOptions, Logs
from mcptasks_local.objects import Objects
from mcptasks_local.patches import APPLY
from mcptasks_local.request import Target, target
from mcptasks_local.resources import Resource
from mcptasks_local.selectors import Predicate, matcher
from mcptasks_local.storage import Event
from mcptasks_local.tables import table

logger = logging.getLogger(__name__)

BOOKMARK_SECONDS = 30.0
"""A watch that asks for bookmarks gets one after this silence."""
WATCH_SECONDS = 1800
"""A watch that names no end is ended after this; clients begin again from where they are."""
BODY_LIMIT = 3 * 1024 * 1024
_PUBLIC = {"/healthz", "/livez", "/readyz", "/version"}


class App:
    """Routes requests, counts them, and words every refusal as a Status."""

    def __init__(self, objects: Objects, identity: Identity, access: Access, logs: Logs) -> None:
        self._objects, self._identity, self._access, self._logs = objects, identity, access, logs
        self.requests: Counter[tuple[str, str, str]] = Counter()
        """Requests by verb, resource (with its subresource) and user agent's first word."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except ApiError as error:
            response = JSONResponse(error.status(), status_code=error.code)
        except ClientDisconnect:
            return
        except Exception:
            logger.exception("%s %s failed", request.method, request.url.path)
            response = JSONResponse(ApiError(500, "InternalError", "internal error").status(), status_code=500)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        path = request.url.path
        if path in _PUBLIC:
            return JSONResponse(discovery.VERSION) if path == "/version" else PlainTextResponse("ok")
        user = self._identity.request_user(request.headers.get("authorization"))
        if user is None:
            raise unauthorized()
        if path == "/metrics":
            return PlainTextResponse(self._metrics())
        if (document := self._discovery(path)) is not None:
            return JSONResponse(document)
        if (where := target(path)) is None:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        resource = self._objects.resource(where.id)
        if resource.version != where.version:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        query = request.query_params
        watching = request.method == "GET" and query.get("watch", "").lower() in ("true", "1")
        verb = where.verb(request.method, watching=watching)
        what = f"{where.plural}/{where.subresource}" if where.subresource else where.plural
        self.requests[verb, what, request.headers.get("user-agent", "").partition(" ")[0].partition("/")[0]] += 1
        self._authorize(user, where, what, verb)
        if watching:
            return self._watch(request, resource, where)
        handlers: dict[str, Callable[[Request, Resource, Target], Awaitable[Response]]] = {
            "list": self._list,
            "get": self._get,
            "create": partial(self._create, user),
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }
        if (handler := handlers.get(verb)) is None:
            raise method_not_allowed()
        return await handler(request, resource, where)

    def _authorize(self, user: User, where: Target, what: str, verb: str) -> None:
        asked = Attributes(verb, where.group, what, where.namespace, where.name)
        if not self._access.allowed(user, asked)[0]:
            place = f' in the namespace "{where.namespace}"' if where.namespace else " at the cluster scope"
            raise ApiError(
                403,
                "Forbidden",
                f'{where.id} is forbidden: User "{user.name}" cannot {verb} resource "{what}" in API group '
                f'"{where.group}"{place}',
                {"group": where.group, "kind": where.plural},
            )

    def _discovery(self, path: str) -> Object | None:
        resources = self._objects.resources()
        match path.strip("/").split("/"):
            case ["api"]:
                return discovery.core_versions()
            case ["apis"]:
                return discovery.groups(resources)
            case ["api", version]:
                return discovery.resource_list(resources, "", version)
            case ["apis", group]:
                return discovery.group(resources, group)
            case ["apis", group, version]:
                return discovery.resource_list(resources, group, version)
            case ["openapi", "v3"]:
                return discovery.openapi_index(resources)
            case ["openapi", "v3", "api", version]:
                return discovery.openapi(resources, "", version)
            case ["openapi", "v3", "apis", group, version]:
                return discovery.openapi(resources, group, version)
        return None

    async def _list(self, request: Request, resource: Resource, where: Target) -> Response:
        query = request.query_params
        items, revision = self._objects.list(
            resource, where.namespace or None, query.get("labelSelector"), query.get("fieldSelector")
        )
        meta: Object = {"resourceVersion": str(revision)}
        limit, after = _number(query.get("limit"), "limit"), query.get("continue")
        if after:
            at, _, start = after.partition("/")
            if not at.isdigit():
                raise ApiError(410, "Expired", "The provided continue parameter is too old, or not one of this server")
            meta["resourceVersion"] = at
            items = [item for item in items if _position(item) > start]
        if limit and len(items) > limit:
            meta["continue"] = f"{meta['resourceVersion']}/{_position(items[limit - 1])}"
            meta["remainingItemCount"] = len(items) - limit
            items = items[:limit]
        if _wants_table(request):
            return JSONResponse(table(resource, items, datetime.now(UTC), meta))
        return JSONResponse(
            {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "metadata": meta, "items": items}
        )

    async def _get(self, request: Request, resource: Resource, where: Target) -> Response:
        item = self._objects.get(resource, where.namespace, where.name)
        if where.subresource == "log" and resource.id == "pods":
            return await self._log(request, item)
        if where.subresource and not (where.subresource == "status" and resource.status):
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        if _wants_table(request):
            meta = {"resourceVersion": item["metadata"]["resourceVersion"]}
            return JSONResponse(table(resource, [item], datetime.now(UTC), meta))
        return JSONResponse(item)

    async def _create(self, user: User, request: Request, resource: Resource, where: Target) -> Response:
        body = _object(await _body(request))
        if where.subresource == "token" and resource.id == "serviceaccounts":
            return self._token(where, body)
        if where.name:
            raise method_not_allowed()
        reviews: dict[str, Callable[[Object], Object]] = {
            "TokenReview": self._identity.review,
            "SubjectAccessReview": self._access.review,
            "SelfSubjectAccessReview": lambda spec: self._access.review(
                {**spec, "user": user.name, "groups": list(user.groups)}
            ),
        }
        if (review := reviews.get(resource.kind)) is not None:
            return JSONResponse({**body, "status": review(body.get("spec") or {})}, status_code=201)
        query = request.query_params
        strict = query.get("fieldValidation") == "Strict"
        created = self._objects.create(resource, where.namespace, body, dry_run=_dry(request), strict=strict)
        return JSONResponse(created, status_code=201)

    def _token(self, where: Target, body: Object) -> Response:
        self._objects.get(self._objects.resource("serviceaccounts"), where.namespace, where.name)
        spec = body.get("spec") or {}
        token, expires = self._identity.issue(
            where.namespace,
            where.name,
            audiences=spec.get("audiences") or ["https://kubernetes.default.svc"],
            seconds=spec.get("expirationSeconds") or 3600,
        )
        at = datetime.fromtimestamp(expires, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return JSONResponse({**body, "status": {"token": token, "expirationTimestamp": at}}, status_code=201)

    async def _update(self, request: Request, resource: Resource, where: Target) -> Response:
        strict = request.query_params.get("fieldValidation") == "Strict"
        return JSONResponse(
            self._objects.replace(
                resource,
                where.namespace,
                where.name,
                _object(await _body(request)),
                subresource=where.subresource or None,
                dry_run=_dry(request),
                strict=strict,
            )
        )

    async def _patch(self, request: Request, resource: Resource, where: Target) -> Response:
        content_type = request.headers.get("content-type", "")
        strict = request.query_params.get("fieldValidation") == "Strict"
        body = await _body(request, yaml=content_type.startswith(APPLY))
        if content_type.startswith(APPLY):
            body = _object(body)
            try:
                self._objects.get(resource, where.namespace, where.name)
            except ApiError:
                body.setdefault("metadata", {}).setdefault("name", where.name)
                created = self._objects.create(resource, where.namespace, body, dry_run=_dry(request), strict=strict)
                return JSONResponse(created, status_code=201)
        return JSONResponse(
            self._objects.patch(
                resource,
                where.namespace,
                where.name,
                body,
                content_type=content_type,
                subresource=where.subresource or None,
                dry_run=_dry(request),
                strict=strict,
            )
        )

    async def _delete(self, request: Request, resource: Resource, where: Target) -> Response:
        options = _delete_options(request, await _body(request, empty={}))
        last = self._objects.delete(resource, where.namespace, where.name, dry_run=_dry(request), **options)
        if "deletionTimestamp" in last["metadata"]:
            return JSONResponse(last)
        details = {"name": where.name, "group": where.group, "kind": where.plural, "uid": last["metadata"]["uid"]}
        return JSONResponse(
            {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        )

    async def _delete_collection(self, request: Request, resource: Resource, where: Target) -> Response:
        options = _delete_options(request, await _body(request, empty={}))
        query = request.query_params
        items, revision = self._objects.list(
            resource, where.namespace or None, query.get("labelSelector"), query.get("fieldSelector")
        )
        for item in items:
            meta = item["metadata"]
            with contextlib.suppress(ApiError):
                self._objects.delete(resource, meta.get("namespace", ""), meta["name"], **options)
        return JSONResponse(
            {
                "kind": f"{resource.kind}List",
                "apiVersion": resource.api_version,
                "metadata": {"resourceVersion": str(revision)},
                "items": items,
            }
        )

    async def _log(self, request: Request, pod: Object) -> Response:
        query = request.query_params
        for refused in ("sinceSeconds", "sinceTime", "stream", "previous"):
            if query.get(refused) not in (None, "", "false", "All"):
                raise bad_request(f"the embedded control plane does not know the log option {refused}")
        chunks = self._logs(
            pod,
            LogOptions(
                container=query.get("container"),
                follow=query.get("follow") in ("true", "1"),
                tail_lines=_number(query.get("tailLines"), "tailLines"),
                limit_bytes=_number(query.get("limitBytes"), "limitBytes"),
            ),
        )
        # The first chunk is read here, so that a refusal still gets its own status code.
        first = await anext(chunks, b"")

        async def rest() -> AsyncIterator[bytes]:
            yield first
            async for chunk in chunks:
                yield chunk

        return StreamingResponse(rest(), media_type="text/plain")

    def _watch(self, request: Request, resource: Resource, where: Target) -> Response:
        query = request.query_params
        fields = query.get("fieldSelector")
        if where.name:
            fields = ",".join(part for part in (fields, f"metadata.name={where.name}") if part)
        matches = matcher(resource, query.get("labelSelector"), fields)
        version = query.get("resourceVersion") or ""
        if version and not version.isdigit():
            raise bad_request(f"invalid resource version {version!r}: it must be a number")
        since = int(version) if version not in ("", "0") else None
        initial: list[Object] = []
        if since is None:
            initial = [item for item in self._objects.list(resource, where.namespace or None)[0] if matches(item)]
        events = self._objects.watch(resource, where.namespace or None, since)
        bookmarks = query.get("allowWatchBookmarks") in ("true", "1")
        seconds = _number(query.get("timeoutSeconds"), "timeoutSeconds") or WATCH_SECONDS
        as_table = _wants_table(request)
        revision = self._objects.revision

        async def lines() -> AsyncIterator[bytes]:
            for item in initial:
                yield _line("ADDED", item, resource, as_table)
            if query.get("sendInitialEvents") == "true":
                yield _bookmark(resource, revision, initial_end=True)
            end = asyncio.get_running_loop().time() + seconds
            pending = asyncio.ensure_future(anext(events, None))
            try:
                while (left := end - asyncio.get_running_loop().time()) > 0:
                    done, _ = await asyncio.wait((pending,), timeout=min(left, BOOKMARK_SECONDS))
                    if not done:
                        if bookmarks:
                            yield _bookmark(resource, self._objects.revision)
                        continue
                    if (event := pending.result()) is None:
                        return
                    pending = asyncio.ensure_future(anext(events, None))
                    if (change := _change(event, matches)) is not None:
                        yield _line(change, event.object, resource, as_table)
            finally:
                pending.cancel()
                with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                    await pending

        return StreamingResponse(lines(), media_type="application/json")

    def _metrics(self) -> str:
        lines = ["# TYPE apiserver_request_total counter"]
        for (verb, resource, agent), count in sorted(self.requests.items()):
            lines.append(f'apiserver_request_total{{verb="{verb}",resource="{resource}",user_agent="{agent}"}} {count}')
        return "\n".join(lines) + "\n"


async def _body(request: Request, *, yaml: bool = False, empty: Object | None = None) -> Any:
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > BODY_LIMIT:
            raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {BODY_LIMIT}")
    if not data and empty is not None:
        return empty
    try:
        if yaml:
            import yaml as reader

            return reader.safe_load(bytes(data))
        return json.loads(bytes(data))
    except ValueError as error:
        raise bad_request(f"the object provided is unrecognized: {error}") from error


def _object(body: Any) -> Object:
    if not isinstance(body, dict):
        raise bad_request("the object provided is unrecognized: it must be a JSON object")
    return body


def _delete_options(request: Request, body: Any) -> dict[str, Any]:
    options, query = _object(body), request.query_params
    preconditions = options.get("preconditions") or {}
    grace = options.get("gracePeriodSeconds", query.get("gracePeriodSeconds"))
    return {
        "uid": preconditions.get("uid"),
        "resource_version": preconditions.get("resourceVersion"),
        "propagation": options.get("propagationPolicy") or query.get("propagationPolicy"),
        "grace_seconds": None if grace is None else int(grace),
    }


def _dry(request: Request) -> bool:
    return request.query_params.get("dryRun") == "All"


def _number(text: str | None, name: str) -> int | None:
    if text is None or text == "":
        return None
    if not text.isdigit():
        raise bad_request(f"{name} must be a number, not {text!r}")
    return int(text)


def _position(item: Object) -> str:
    meta = item["metadata"]
    return f"{meta.get('namespace', '')}/{meta['name']}"


def _wants_table(request: Request) -> bool:
    return "as=Table" in request.headers.get("accept", "")


def _change(event: Event, matches: Predicate) -> str | None:
    """What a change is to a watcher with a selector: an object that no longer matches counts as deleted."""
    now = matches(event.object)
    before = event.old is not None and matches(event.old)
    if event.type == "DELETED":
        return "DELETED" if before else None
    if now:
        return "MODIFIED" if before else "ADDED"
    return "DELETED" if before else None


def _line(change: str, item: Object, resource: Resource, as_table: bool) -> bytes:
    shown = table(resource, [item], datetime.now(UTC), {}) if as_table else item
    return json.dumps({"type": change, "object": shown}, separators=(",", ":")).encode() + b"\n"


def _bookmark(resource: Resource, revision: int, *, initial_end: bool = False) -> bytes:
    meta: Object = {"resourceVersion": str(revision)}
    if initial_end:
        meta["annotations"] = {"k8s.io/initial-events-end": "true"}
    item = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": meta}
    return json.dumps({"type": "BOOKMARK", "object": item}, separators=(",", ":")).encode() + b"\n"
