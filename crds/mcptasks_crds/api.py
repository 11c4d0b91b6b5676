"""The Kubernetes API as operator and service use it: plain JSON objects in and out.

Authentication, TLS, proxies and token renewal are the official client's; its generated methods are not used, since
validating arguments takes most of their time and custom objects come out as dicts anyway.
"""

import json
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlencode

import aiohttp
from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

from mcptasks_crds.errors import AlreadyExists, ApiFailure, Conflict, Gone, NotFound, Refused
from mcptasks_crds.kinds import Kind

Object = dict[str, Any]

MERGE_PATCH = "application/merge-patch+json"

REQUEST_TIMEOUT = 30.0
"""Seconds one request may take: no call without an end (admission webhooks get 10 s each from the API server)."""

WATCH_SILENCE = 70.0
"""Seconds after which a silent watch is taken for dead; the API server sends a bookmark about every minute."""


async def load_configuration(kubeconfig: str | None = None) -> Configuration:
    """Where the API server is and who we are there, as `Api.connect` finds it.

    Raises:
        kubernetes.aio.config.ConfigException: nothing is there, or it can't be read.
    """
    configuration = Configuration()
    if kubeconfig:
        await config.load_kube_config(config_file=kubeconfig, client_configuration=configuration)
    else:
        try:
            config.load_incluster_config(client_configuration=configuration)
        except config.ConfigException:
            await config.load_kube_config(client_configuration=configuration)
    return configuration


class Api:
    """A connection to one API server; use it as an async context manager."""

    def __init__(self, configuration: Configuration, user_agent: str = "mcptasks") -> None:
        self._client = ApiClient(configuration)
        self._configuration = configuration
        self._user_agent = user_agent

    @classmethod
    async def connect(cls, kubeconfig: str | None = None, *, user_agent: str = "mcptasks") -> Self:
        """With a kubeconfig file if one is named, else as the pod's ServiceAccount, else with the user's kubeconfig.

        Raises:
            kubernetes.aio.config.ConfigException: none of them is there, or it can't be read.
        """
        configuration = await load_configuration(kubeconfig)
        configuration.connection_pool_maxsize = 256
        return cls(configuration, user_agent)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def create(self, kind: Kind, namespace: str, body: Object, *, dry_run: bool = False) -> Object:
        """POST an object and return it as stored.

        Raises:
            AlreadyExists, Refused, ApiFailure
        """
        return await self._json(
            "POST", kind.path(namespace), {"dryRun": "All"} if dry_run else {}, _typed(kind, body), taken=AlreadyExists
        )

    async def review(self, kind: Kind, spec: Object) -> Object:
        """POST a TokenReview or SubjectAccessReview and return its status."""
        answer = await self._json("POST", kind.path(), {}, _typed(kind, {"spec": spec}))
        status: Object = answer.get("status") or {}
        return status

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Read one object.

        Raises:
            NotFound, ApiFailure
        """
        return await self._json("GET", kind.path(namespace, quote(name, safe="")))

    async def list(
        self,
        kind: Kind,
        namespace: str | None,
        *,
        labels: str = "",
        fields: str = "",
        limit: int = 500,
        after: str = "",
    ) -> Object:
        """One page of a list; ``metadata.continue`` of the answer is the next ``after``.

        Raises:
            Gone: ``after`` is too old; begin again.
        """
        query = {"labelSelector": labels, "fieldSelector": fields, "limit": str(limit), "continue": after}
        return await self._json("GET", kind.path(namespace), {k: v for k, v in query.items() if v})

    async def watch(
        self, kind: Kind, namespace: str | None, resource_version: str, *, labels: str = ""
    ) -> AsyncIterator[Object]:
        """Events after ``resource_version`` with bookmarks; ends when the server ends the stream, which is ordinary.

        Raises:
            Gone: the version is too old; list again.
            ApiFailure: no connection, or silence for longer than bookmarks leave.
        """
        query = {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": resource_version}
        if labels:
            query["labelSelector"] = labels
        limits = aiohttp.ClientTimeout(total=None, sock_connect=REQUEST_TIMEOUT, sock_read=WATCH_SILENCE)
        response = await self._request("GET", kind.path(namespace), query, limits=limits)
        try:
            if response.status != 200:
                raise _failure(response.status, await response.read())
            async for line in _lines(response):
                event = _parsed(line, response.status)
                if event.get("type") == "ERROR":
                    status = event["object"]
                    raise _failure(status.get("code", 500), json.dumps(status).encode())
                yield event
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _unreachable(error) from error
        finally:
            response.close()

    async def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        body: Object,
        *,
        subresource: str | None = None,
        resource_version: str | None = None,
    ) -> Object:
        """A merge patch; with ``resource_version`` it fails with Conflict if the object has changed since.

        Raises:
            NotFound, Conflict, Refused, ApiFailure
        """
        if resource_version is not None:
            body = {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": resource_version}}
        path = kind.path(namespace, quote(name, safe=""), subresource)
        return await self._json("PATCH", path, {}, body, content_type=MERGE_PATCH)

    async def replace(self, kind: Kind, namespace: str, name: str, body: Object) -> Object:
        """PUT an object; its metadata.resourceVersion guards it.

        Raises:
            NotFound, Conflict, Refused, ApiFailure
        """
        return await self._json("PUT", kind.path(namespace, quote(name, safe="")), {}, _typed(kind, body))

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str | None = None, resource_version: str | None = None
    ) -> None:
        """Delete an object and, in the background, what it owns.

        The policy is always said: without it batch/v1 orphans the pods of a Job, and they run on.

        Raises:
            NotFound, Conflict, ApiFailure
        """
        guards = {"uid": uid, "resourceVersion": resource_version}
        options = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": "Background",
            "preconditions": {key: value for key, value in guards.items() if value},
        }
        await self._json("DELETE", kind.path(namespace, quote(name, safe="")), {}, options)

    async def log(self, namespace: str, pod: str, container: str, *, tail_lines: int) -> bytes:
        """The last lines of a container's log, as bytes.

        Raises:
            NotFound, ApiFailure
        """
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
        query = {"container": container, "tailLines": str(tail_lines)}
        return await self._body(await self._request("GET", path, query))

    async def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        *,
        content_type: str = "application/json",
        taken: type[ApiFailure] = Conflict,
    ) -> Object:
        response = await self._request(method, path, query, body, content_type=content_type)
        return _parsed(await self._body(response, taken), response.status)

    async def _body(self, response: aiohttp.ClientResponse, taken: type[ApiFailure] = Conflict) -> bytes:
        try:
            data = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _unreachable(error) from error
        if response.status >= 300:
            raise _failure(response.status, data, taken)
        return data

    async def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        *,
        content_type: str = "application/json",
        limits: aiohttp.ClientTimeout | None = None,
    ) -> aiohttp.ClientResponse:
        headers = {"Content-Type": content_type, "Accept": "application/json", "User-Agent": self._user_agent}
        if token := await self._configuration.get_api_key_with_prefix("BearerToken", alias="authorization"):
            headers["Authorization"] = token
        url = f"{self._configuration.host}{path}" + (f"?{urlencode(query)}" if query else "")
        try:
            answer = await self._client.rest_client.request(
                method,
                url,
                headers=headers,
                body=body,
                _request_timeout=limits or aiohttp.ClientTimeout(REQUEST_TIMEOUT),
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable(error) from error
        response: aiohttp.ClientResponse = answer.response
        return response


def _typed(kind: Kind, body: Object) -> Object:
    return {"apiVersion": kind.api_version, "kind": kind.name, **body}


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Split a stream into lines of any length: aiohttp's own reader gives up at its buffer's limit."""
    rest = bytearray()
    async for chunk in response.content.iter_any():
        rest += chunk
        if b"\n" not in chunk:
            continue
        *whole, tail = rest.split(b"\n")
        rest = bytearray(tail)
        for line in whole:
            if line:
                yield bytes(line)


def _parsed(data: bytes, code: int) -> Object:
    """What the API server says is a JSON object; a proxy on the way may say something else."""
    try:
        value = json.loads(data)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        shown = data[:200].decode(errors="replace")
        raise ApiFailure(0, "NotJSON", f"the Kubernetes API answered HTTP {code} with no JSON object: {shown!r}")
    return value


def _unreachable(error: BaseException) -> ApiFailure:
    return ApiFailure(0, "Unreachable", f"the Kubernetes API can't be reached: {error or type(error).__name__}")


def _failure(code: int, body: bytes, taken: type[ApiFailure] = Conflict) -> ApiFailure:
    try:
        status = json.loads(body)
        reason, message = status.get("reason") or "", status.get("message") or ""
        causes = tuple((status.get("details") or {}).get("causes") or ())
    except (ValueError, AttributeError):
        reason, message, causes = "", body[:200].decode(errors="replace"), ()
    kinds: dict[int, type[ApiFailure]] = {404: NotFound, 409: taken, 410: Gone, 422: Refused, 400: Refused}
    return kinds.get(code, ApiFailure)(code, reason, message or f"HTTP {code}", causes)
