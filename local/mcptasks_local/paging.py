"""Pages of a list: every page is of the state at which the first one was read."""

import base64
import json
from typing import NamedTuple

from mcptasks_local.errors import ApiError, Object, bad_request
from mcptasks_local.objects import Objects
from mcptasks_local.resources import Resource


class Page(NamedTuple):
    """Items, and the list's metadata with the token of the next page."""

    items: list[Object]
    meta: Object


def page(
    objects: Objects,
    resource: Resource,
    namespace: str | None,
    *,
    labels: str | None = None,
    fields: str | None = None,
    limit: int = 0,
    token: str | None = None,
    exactly: int | None = None,
) -> Page:
    """One page; ``limit`` 0 = all that is left, ``exactly`` = the state of an earlier revision.

    Raises:
        ApiError: 400, a selector or the token can't be read; 410, the token's state is no longer known.
    """
    start = ("", "")
    if token:
        exactly, start = _read(token)
    if exactly is None:
        items, revision = objects.list(resource, namespace, labels, fields)
    else:
        revision = exactly
        try:
            items = list(objects.list_as_of(resource, namespace, labels, fields, revision))
        except ApiError as error:
            if error.code == 410 and token:
                error = ApiError(410, "Expired", _TOO_OLD)
            raise error from None
        items = [item for item in items if _place(item) > start]
    meta: Object = {"resourceVersion": str(revision)}
    if limit and len(items) > limit:
        meta["continue"] = _token(revision, _place(items[limit - 1]))
        if not labels and not fields:  # Kubernetes does not count what it would have to search
            meta["remainingItemCount"] = len(items) - limit
        items = items[:limit]
    return Page(items, meta)


_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You must start a new list without "
    "the continue parameter."
)


def _place(item: Object) -> tuple[str, str]:
    meta = item["metadata"]
    return meta.get("namespace", ""), meta["name"]


def _token(revision: int, start: tuple[str, str]) -> str:
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": start})
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read(token: str) -> tuple[int, tuple[str, str]]:
    try:
        read = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, name = read["start"]
        return int(read["rv"]), (str(namespace), str(name))
    except (ValueError, KeyError, TypeError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error
