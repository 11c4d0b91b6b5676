"""Bodies of requests: JSON or YAML, of a size, and an object where one is wanted."""

import json
from typing import Any

from starlette.requests import Request

from mcptasks_local.errors import ApiError, Object, bad_request, unsupported_media_type

LIMIT = 3 * 1024 * 1024
"""Bytes of a request's body."""
_JSON, _YAML = "application/json", "application/yaml"
_ACCEPTED = (_JSON, _YAML)
_PROTOBUF = "application/vnd.kubernetes.protobuf"


async def read(request: Request) -> bytes:
    """The whole body.

    Raises:
        ApiError: 413
    """
    data = bytearray()
    async for chunk in request.stream():
        data += chunk
        if len(data) > LIMIT:
            raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: limit is {LIMIT}")
    return bytes(data)


async def read_object(request: Request, kind: str) -> Object:
    """The body as an object of a kind.

    Raises:
        ApiError: 400, 413, 415
    """
    content_type = media_type(request) or _JSON
    if content_type == _PROTOBUF:
        # What `kubectl create job`, `create namespace`, … and `auth can-i` send, without asking.
        raise ApiError(
            415, "UnsupportedMediaType", "the embedded control plane reads no protobuf: use kubectl apply -f"
        )
    if content_type not in _ACCEPTED:
        raise unsupported_media_type(_ACCEPTED)
    data = await read(request)
    try:
        body = parse_yaml(data) if content_type == _YAML else json.loads(data)
    except ValueError as error:
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): {error}") from error
    if not isinstance(body, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {kind}): it is not an object")
    return body


async def read_options(request: Request) -> Object:
    """DeleteOptions, which may be absent.

    Raises:
        ApiError: 400, 413
    """
    data = await read(request)
    try:
        options = json.loads(data) if data else {}
    except ValueError as error:
        raise bad_request(f"DeleteOptions cannot be read: {error}") from error
    if not isinstance(options, dict):
        raise bad_request("DeleteOptions must be an object")
    return options


async def read_patch(request: Request, yaml: bool) -> Any:
    """A patch, whatever its form.

    Raises:
        ApiError: 400, 413
    """
    data = await read(request)
    try:
        return parse_yaml(data) if yaml else json.loads(data)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from error


def media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip()


def parse_yaml(data: bytes) -> Any:
    """One YAML document; timestamps stay text, as in Kubernetes.

    Raises:
        ValueError: it is none.
    """
    # Only server-side apply and people send YAML: the import waits for the first of them.
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers = {
            first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
            for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

    try:
        return yaml.load(data, Loader)  # noqa: S506 - a SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
