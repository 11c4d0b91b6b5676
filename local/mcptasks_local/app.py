"""The Kubernetes API over HTTP: one ASGI application."""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from mcptasks_local import bodies, discovery, reviews, watches
from mcptasks_local.access import Access, Attributes
from mcptasks_local.errors import (
    ApiError,
    Cause,
    Object,
    bad_request,
    forbidden,
    invalid,
    method_not_allowed,
    unauthorized,
)
from mcptasks_local.identity import Identity, User
from mcptasks_local.logs import LogOptions, Logs
from mcptasks_local.objects import Objects
from mcptasks_local.paging import page
from mcptasks_local.patches import APPLY
from mcptasks_local.request import Target, target
from mcptasks_local.resources import Resource
from mcptasks_local.selectors import matcher
from mcptasks_local.tables import Shape, shape

logger = logging.getLogger(__name__)

_PUBLIC = {"/healthz", "/livez", "/readyz", "/version"}
_POLICIES = ("Foreground", "Background", "Orphan")
_ORPHANS = (
    "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set "
    "propagationPolicy=Orphan to suppress this warning"
)


class App:
    """Routes requests, counts them, and words every refusal as a Status."""

    def __init__(self, objects: Objects, identity: Identity, access: Access, logs: Logs) -> None:
        self._objects, self._identity, self._access, self._logs = objects, identity, access, logs
        self.requests: Counter[tuple[str, str, str, str]] = Counter()
        """Requests by verb, resource (``jobs``), subresource (or empty) and the user agent's first word."""
        self._codes: Counter[tuple[str, str, str, int]] = Counter()

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
        if (counted := scope.get("mcptasks.counted")) is not None:
            self._codes[(*counted, response.status_code)] += 1
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
        accept = request.headers.get("accept", "")
        if (document := discovery.document(self._objects.resources(), path, accept)) is not None:
            return JSONResponse(document.body, media_type=document.media_type)
        where = target(path)
        resource = self._objects.served(where.group, where.version, where.plural) if where else None
        if where is None or resource is None or not _has(resource, where):
            return PlainTextResponse("404 page not found\n", status_code=404)
        watching = request.method == "GET" and _flag(request.query_params, "watch")
        verb = where.verb(request.method, watching=watching)
        self._count(request, verb, where)
        self._authorize(user, where, verb)
        return await self._handler(verb, user, where)(request, resource, where)

    def _handler(
        self, verb: str, user: User, where: Target
    ) -> Callable[[Request, Resource, Target], Awaitable[Response]]:
        handlers: dict[str, Callable[[Request, Resource, Target], Awaitable[Response]]] = {
            "list": self._list,
            "watch": self._watch,
            "get": self._log if where.subresource == "log" else self._get,
            "create": partial(self._create, user),
            "update": self._update,
            "patch": self._patch,
            "delete": self._delete,
            "deletecollection": self._delete_collection,
        }
        if verb not in handlers:
            raise method_not_allowed()
        return handlers[verb]

    def _count(self, request: Request, verb: str, where: Target) -> None:
        agent = request.headers.get("user-agent", "").partition(" ")[0].partition("/")[0]
        self.requests[verb, where.plural, where.subresource, agent] += 1
        request.scope["mcptasks.counted"] = verb, where.plural, where.subresource

    def _authorize(self, user: User, where: Target, verb: str) -> None:
        what = f"{where.plural}/{where.subresource}" if where.subresource else where.plural
        asked = Attributes(verb, where.group, what, where.namespace, where.name)
        if not self._access.allowed(user, asked)[0]:
            place = f'in the namespace "{where.namespace}"' if where.namespace else "at the cluster scope"
            why = f'User "{user.name}" cannot {verb} resource "{what}" in API group "{where.group}" {place}'
            raise forbidden(where.group, where.plural, where.name, why)

    async def _list(self, request: Request, resource: Resource, where: Target) -> Response:
        if "list" not in resource.verbs:
            raise method_not_allowed()
        query = request.query_params
        exactly = None
        if query.get("resourceVersionMatch") == "Exact":
            exactly = _number(query, "resourceVersion")
        elif (asked := _number(query, "resourceVersion") or 0) > self._objects.revision:
            raise _too_large(asked, self._objects.revision)
        items, meta = page(
            self._objects,
            resource,
            where.namespace or None,
            labels=query.get("labelSelector"),
            fields=query.get("fieldSelector"),
            limit=_number(query, "limit") or 0,
            token=query.get("continue"),
            exactly=exactly,
        )
        return JSONResponse(self._shape(request, resource).of_list(items, meta))

    async def _get(self, request: Request, resource: Resource, where: Target) -> Response:
        item = self._objects.get(resource, where.namespace, where.name)
        return JSONResponse(self._shape(request, resource).of_one(item))

    async def _create(self, user: User, request: Request, resource: Resource, where: Target) -> Response:
        body = await bodies.read_object(request, resource.kind)
        if where.subresource == "token":
            answer = reviews.token(self._objects, self._identity, where.namespace, where.name, body)
            return JSONResponse(answer, status_code=201)
        if where.name:
            raise method_not_allowed()
        if resource.kind in reviews.KINDS:
            answer = reviews.review(resource.kind, body, user, self._identity, self._access)
            return JSONResponse(answer, status_code=201)
        _named(resource, body)
        query = request.query_params
        created = self._objects.create(resource, where.namespace, body, dry_run=_dry(query), strict=_strict(query))
        return self._written(query, created, 201)

    async def _update(self, request: Request, resource: Resource, where: Target) -> Response:
        if not where.name:
            raise bad_request("name must be provided")
        body = await bodies.read_object(request, resource.kind)
        _named(resource, body)
        query = request.query_params
        stored = self._objects.replace(
            resource,
            where.namespace,
            where.name,
            body,
            subresource=where.subresource or None,
            dry_run=_dry(query),
            strict=_strict(query),
        )
        return self._written(query, stored)

    async def _patch(self, request: Request, resource: Resource, where: Target) -> Response:
        query, content_type = request.query_params, bodies.media_type(request)
        manager = query.get("fieldManager", "")
        if content_type == APPLY and not manager:
            cause = Cause("FieldValueRequired", "Required value: is required for apply patch", "fieldManager")
            raise invalid("meta.k8s.io", "PatchOptions", "", [cause])
        existed = self._objects.holds(resource, where.namespace, where.name)
        stored = self._objects.patch(
            resource,
            where.namespace,
            where.name,
            await bodies.read_patch(request, content_type == APPLY),
            content_type=content_type,
            subresource=where.subresource or None,
            dry_run=_dry(query),
            strict=_strict(query),
            manager=manager,
            force=_flag(query, "force"),
        )
        return self._written(query, stored, 200 if existed else 201)

    def _written(self, query: QueryParams, item: Object, code: int = 200) -> Response:
        """The answer to a write; what no schema knew is said in ``Warning`` headers, unless nobody wants to know."""
        response = JSONResponse(item, status_code=code)
        if query.get("fieldValidation") != "Ignore":
            for path in self._objects.warnings:
                _warn(response, f'unknown field "{path}"')
        return response

    async def _delete(self, request: Request, resource: Resource, where: Target) -> Response:
        options = await _delete_options(request)
        last = self._objects.delete(
            resource, where.namespace, where.name, dry_run=_dry(request.query_params), **options
        )
        meta = last["metadata"]
        lingers = meta.get("deletionTimestamp") and self._objects.holds(resource, where.namespace, where.name)
        if lingers or resource.id in ("pods", "namespaces"):
            response = JSONResponse(last)
        else:
            details = {"name": where.name, "group": where.group, "kind": where.plural, "uid": meta["uid"]}
            response = JSONResponse(
                {
                    "kind": "Status",
                    "apiVersion": "v1",
                    "metadata": {},
                    "status": "Success",
                    "details": {key: value for key, value in details.items() if value},
                }
            )
        if resource.id == "jobs.batch" and options["propagation"] is None:
            _warn(response, _ORPHANS)
        return response

    async def _delete_collection(self, request: Request, resource: Resource, where: Target) -> Response:
        options, query = await _delete_options(request), request.query_params
        items, revision = self._objects.list(
            resource, where.namespace or None, query.get("labelSelector"), query.get("fieldSelector")
        )
        for item in items:
            meta = item["metadata"]
            if self._objects.holds(resource, meta.get("namespace", ""), meta["name"]):
                self._objects.delete(resource, meta.get("namespace", ""), meta["name"], dry_run=_dry(query), **options)
        shown = self._shape(request, resource).of_list(items, {"resourceVersion": str(revision)})
        return JSONResponse(shown)

    async def _log(self, request: Request, resource: Resource, where: Target) -> Response:
        pod, query = self._objects.get(resource, where.namespace, where.name), request.query_params
        for refused in ("sinceSeconds", "sinceTime", "stream", "previous", "timestamps"):
            if query.get(refused) not in (None, "", "false", "All"):
                raise bad_request(f"the embedded control plane does not know the log option {refused}")
        chunks = self._logs(
            pod,
            LogOptions(
                container=query.get("container"),
                follow=_flag(query, "follow"),
                tail_lines=_number(query, "tailLines"),
                limit_bytes=_number(query, "limitBytes"),
            ),
        )
        # The first chunk is read here, so that a refusal still gets its own status code.
        first = await anext(chunks, b"")

        async def rest() -> AsyncIterator[bytes]:
            yield first
            async for chunk in chunks:
                yield chunk

        return StreamingResponse(rest(), media_type="text/plain")

    async def _watch(self, request: Request, resource: Resource, where: Target) -> Response:
        query, fields = request.query_params, request.query_params.get("fieldSelector")
        if where.name:
            fields = ",".join(part for part in (fields, f"metadata.name={where.name}") if part)
        since = _number(query, "resourceVersion") or None
        marked = _flag(query, "sendInitialEvents")
        watch = watches.Watch(
            resource=resource,
            namespace=where.namespace or None,
            matches=matcher(resource, query.get("labelSelector"), fields),
            since=None if marked else since,
            initial=marked or (since is None and query.get("sendInitialEvents") != "false"),
            marked=marked,
            bookmarks=_flag(query, "allowWatchBookmarks"),
            seconds=_number(query, "timeoutSeconds") or watches.WATCH_SECONDS,
            shown=self._shape(request, resource).of_event,
        )
        return StreamingResponse(watches.lines(self._objects, watch), media_type="application/json")

    def _shape(self, request: Request, resource: Resource) -> Shape:
        accept, include = request.headers.get("accept", ""), request.query_params.get("includeObject", "")
        return shape(resource, accept, include, self._objects.clock())

    def _metrics(self) -> str:
        lines = ["# TYPE apiserver_request_total counter"]
        for (verb, resource, subresource, code), count in sorted(self._codes.items()):
            labels = f'verb="{verb}",resource="{resource}",subresource="{subresource}",code="{code}"'
            lines.append(f"apiserver_request_total{{{labels}}} {count}")
        lines.append("# TYPE mcptasks_api_requests_total counter")
        for (verb, resource, subresource, agent), count in sorted(self.requests.items()):
            labels = f'verb="{verb}",resource="{resource}",subresource="{subresource}",user_agent="{agent}"'
            lines.append(f"mcptasks_api_requests_total{{{labels}}} {count}")
        return "\n".join(lines) + "\n"


def _has(resource: Resource, where: Target) -> bool:
    if resource.namespaced and not where.namespace and where.name:
        return False  # /api/v1/pods/NAME: of which namespace?
    return not where.subresource or where.subresource in resource.subresources


def _named(resource: Resource, body: Object) -> None:
    """Custom objects must say what they are; Go knows it of built-in ones."""
    if resource.custom:
        for field, word in (("apiVersion", "apiVersion"), ("kind", "Kind")):
            if not body.get(field):
                said = f"the object provided is unrecognized (must be of type {resource.kind})"
                raise bad_request(f"{said}: Object '{word}' is missing")


async def _delete_options(request: Request) -> dict[str, Any]:
    options, query = await bodies.read_options(request), request.query_params
    preconditions = options.get("preconditions") or {}
    grace = options.get("gracePeriodSeconds")
    propagation = options.get("propagationPolicy") or query.get("propagationPolicy")
    if propagation not in (None, *_POLICIES):
        listed = ", ".join(f'"{policy}"' for policy in (*_POLICIES, "nil"))
        message = f'Unsupported value: "{propagation}": supported values: {listed}'
        raise invalid(
            "meta.k8s.io", "DeleteOptions", "", [Cause("FieldValueNotSupported", message, "propagationPolicy")]
        )
    return {
        "uid": preconditions.get("uid"),
        "resource_version": preconditions.get("resourceVersion"),
        "propagation": propagation,
        "grace_seconds": _number(query, "gracePeriodSeconds") if grace is None else int(grace),
    }


def _warn(response: Response, text: str) -> None:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    response.headers.append("warning", f'299 - "{quoted}"')


def _too_large(asked: int, present: int) -> ApiError:
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return ApiError(504, "Timeout", f"Timeout: Too large resource version: {asked}, current: {present}", details)


def _dry(query: QueryParams) -> bool:
    return query.get("dryRun") == "All"


def _strict(query: QueryParams) -> bool:
    return query.get("fieldValidation") == "Strict"


def _flag(query: QueryParams, name: str) -> bool:
    return query.get(name, "").lower() in ("true", "1")


def _number(query: QueryParams, name: str) -> int | None:
    text = query.get(name)
    if text is None or text == "":
        return None
    if not text.isdecimal():
        raise bad_request(f'{name}: parsing "{text}": invalid syntax')
    return int(text)
