"""Patch formats: JSON merge patch (RFC 7386), JSON patch (RFC 6902), and strategic merge patch of built-in kinds."""

from typing import Any

import jsonpatch

from mcptasks_local.errors import Object, bad_request, rejected_patch, unsupported_media_type

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

MERGE_KEYS = {
    "conditions": "type", "containers": "name", "env": "name", "ephemeralContainers": "name", "hostAliases": "ip",
    "imagePullSecrets": "name", "initContainers": "name", "ownerReferences": "uid", "ports": "containerPort",
    "secrets": "name", "topologySpreadConstraints": "topologyKey", "volumeMounts": "mountPath", "volumes": "name",
}  # fmt: skip
"""Lists of built-in kinds whose entries are merged, and by which field."""
_MERGED_TEXTS = ("finalizers",)


def accepted(content_type: str, *, custom: bool) -> str:
    """The patch format that a content type names.

    Raises:
        ApiError: 415
    """
    kind, formats = content_type.partition(";")[0].strip(), [JSON_PATCH, MERGE, *([] if custom else [STRATEGIC]), APPLY]
    if kind not in formats:
        raise unsupported_media_type(formats)
    return kind


def apply_patch(target: Object, patch: Any, content_type: str, *, custom: bool) -> Object:
    """``target`` with ``patch`` applied, as a new object. Server-side apply is not one of these: see ``applying``.

    Raises:
        ApiError: 415 for an unknown format (strategic merge of a custom kind is one), 400 for a malformed patch, 422
            for a JSON patch that does not apply.
    """
    kind = accepted(content_type, custom=custom)
    if kind == JSON_PATCH:
        if not isinstance(patch, list):
            raise bad_request("error decoding patch: a JSON patch is a list of operations")
        return _json_patch(target, patch)
    if not isinstance(patch, dict):
        raise bad_request("error decoding patch: a merge patch is a JSON object")
    return merge(target, patch) if kind == MERGE else strategic(target, patch)


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


def strategic(target: Any, patch: Object) -> Object:
    """A merge that knows the keys of lists, and the directives that kubectl sends."""
    if patch.get("$patch") == "delete":
        return {}
    out: Object = dict(target) if isinstance(target, dict) and patch.get("$patch") != "replace" else {}
    for key, value in patch.items():
        if key.startswith("$"):
            if key.startswith("$deleteFromPrimitiveList/"):
                name = key.partition("/")[2]
                out[name] = [entry for entry in out.get(name) or () if entry not in value]
            elif key == "$retainKeys":
                out = {name: out[name] for name in out if name in value}
            continue
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict):
            out[key] = strategic(out.get(key), value)
        elif isinstance(value, list):
            out[key] = _strategic_list(key, out.get(key) or [], value)
        else:
            out[key] = value
    for key, order in patch.items():
        if key.startswith("$setElementOrder/"):
            _reorder(out, key.partition("/")[2], order)
    return out


def _strategic_list(field: str, target: list[Any], patch: list[Any]) -> list[Any]:
    if field in _MERGED_TEXTS:
        return [*target, *(entry for entry in patch if entry not in target)]
    key = MERGE_KEYS.get(field)
    if key is None or not all(isinstance(entry, dict) for entry in (*target, *patch)):
        return patch
    if any(entry.get("$patch") == "replace" for entry in patch):
        return [entry for entry in patch if "$patch" not in entry]
    out = list(target)
    for entry in patch:
        at = next((i for i, there in enumerate(out) if there.get(key) == entry.get(key)), None)
        if entry.get("$patch") == "delete":
            out = [there for there in out if there.get(key) != entry.get(key)]
        elif at is None:
            out.append(strategic({}, entry))
        else:
            out[at] = strategic(out[at], entry)
    return out


def _reorder(out: Object, field: str, order: list[Any]) -> None:
    """Entries that the patch names come in its order; the rest keep their places after them."""
    key = MERGE_KEYS.get(field)
    if field not in out or not isinstance(out[field], list):
        return
    wanted = [entry.get(key) if isinstance(entry, dict) else entry for entry in order]

    def place(entry: Any) -> int:
        name = entry.get(key) if isinstance(entry, dict) else entry
        return wanted.index(name) if name in wanted else len(wanted)

    out[field] = sorted(out[field], key=place)


def _json_patch(target: Object, patch: list[Any]) -> Object:
    try:
        patched: Object = jsonpatch.JsonPatch(patch).apply(target)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError, KeyError) as error:
        raise rejected_patch() from error
    return patched
