"""Patch formats: JSON merge patch (RFC 7386) and JSON patch (RFC 6902)."""

from typing import Any

import jsonpatch

from mcptasks_local.errors import Object, bad_request, rejected_patch, unsupported_media_type

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


def apply_patch(target: Object, patch: Any, content_type: str, *, custom: bool) -> Object:
    """``target`` with ``patch`` applied, as a new object.

    A strategic merge patch of a built-in kind is taken as a merge patch (lists are replaced whole); custom kinds do
    not accept it, as in Kubernetes. Server-side apply merges, without keeping field managers.

    Raises:
        ApiError: 415 for an unknown format, 400 for a malformed patch, 422 for a JSON patch that does not apply.
    """
    kind = content_type.partition(";")[0].strip()
    if kind == JSON_PATCH:
        return _json_patch(target, patch)
    if kind not in (MERGE, APPLY) and (kind != STRATEGIC or custom):
        raise unsupported_media_type([JSON_PATCH, MERGE, APPLY] + ([] if custom else [STRATEGIC]))
    if not isinstance(patch, dict):
        raise bad_request("a merge patch must be a JSON object")
    return merge(target, patch)


def merge(target: Any, patch: Object) -> Object:
    """RFC 7386: null removes, objects merge, everything else replaces."""
    out: Object = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict):
            out[key] = merge(out.get(key), value)
        else:
            out[key] = value
    return out


def _json_patch(target: Object, patch: Any) -> Object:
    try:
        patched: Object = jsonpatch.JsonPatch(patch).apply(target)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError, KeyError) as error:
        raise rejected_patch() from error
    return patched
