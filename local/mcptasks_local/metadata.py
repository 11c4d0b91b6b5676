"""The metadata of an object: what may be in it, and what only the server sets."""

import re
import secrets
from typing import Any

from mcptasks_local.errors import Cause, Object, bad_request
from mcptasks_local.resources import Resource

SERVER_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_TEXTS = ("name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
          "selfLink")  # fmt: skip
_MAPS = ("labels", "annotations")
_LISTS = ("finalizers", "ownerReferences", "managedFields")
KNOWN = frozenset([*_TEXTS, *_MAPS, *_LISTS, "generation", "deletionGracePeriodSeconds"])
ANNOTATIONS_LIMIT = 256 * 1024
"""Bytes of all annotations, keys and values."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
LABEL_WORDS = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_KEY_WORDS = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def read(item: Object) -> tuple[Object, list[str]]:
    """Check the types in ``metadata`` and leave in it what Kubernetes knows; gives it, and the paths dropped.

    Raises:
        ApiError: 400, a field has another type.
    """
    meta = item.get("metadata") or {}
    if not isinstance(meta, dict):
        raise bad_request("the object provided is unrecognized: metadata must be an object")
    for names, kind, word in ((_TEXTS, str, "string"), (_MAPS, dict, "map[string]string"), (_LISTS, list, "array")):
        for name in names:
            if meta.get(name) is not None and not isinstance(meta[name], kind):
                raise _mistyped(name, meta[name], word)
    for name in _MAPS:
        for value in (meta.get(name) or {}).values():
            if not isinstance(value, str | None):
                raise _mistyped(name, value, "string")
    dropped = [f"metadata.{name}" for name in meta if name not in KNOWN]
    kept: Object = {}
    for name in meta:
        if name not in KNOWN or meta[name] in (None, {}, [], ""):
            continue
        kept[name] = {k: v or "" for k, v in meta[name].items()} if name in _MAPS else meta[name]
    item["metadata"] = kept
    return kept, dropped


def _mistyped(name: str, value: Any, kind: str) -> Exception:
    found = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}[type(value)]
    return bad_request(f"json: cannot unmarshal {found} into Go struct field ObjectMeta.{name} of type {kind}")


def generate(prefix: str) -> str:
    """A name from ``generateName``: five random characters that spell no word."""
    return prefix[:58] + "".join(secrets.choice("bcdfghjklmnpqrstvwxz2456789") for _ in range(5))


def faults(resource: Resource, meta: Object) -> list[Cause]:
    """What is wrong with names, labels, annotations, finalizers and owner references."""
    found = list(_name_faults(resource, meta.get("name", "")))
    for key, value in (meta.get("labels") or {}).items():
        if value and not (_QUALIFIED.fullmatch(value) and len(value) <= 63):
            found.append(
                _invalid("labels", value, _VALUE_WORDS if len(value) <= 63 else "must be no more than 63 bytes")
            )
        found += _key_faults("labels", key)
    size = 0
    for key, value in (meta.get("annotations") or {}).items():
        size += len(key.encode()) + len(value.encode())
        found += _key_faults("annotations", key.lower())
    if size > ANNOTATIONS_LIMIT:
        message = f"Too long: may not be more than {ANNOTATIONS_LIMIT} bytes"
        found.append(Cause("FieldValueTooLong", message, "metadata.annotations"))
    for finalizer in meta.get("finalizers") or ():
        found += _key_faults("finalizers", str(finalizer))
    for owner in meta.get("ownerReferences") or ():
        for name, words in (
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ):
            if not owner.get(name):
                found.append(_invalid(f"ownerReferences.{name}", "", words))
    if sum(bool(owner.get("controller")) for owner in meta.get("ownerReferences") or ()) > 1:
        words = "Only one reference can have Controller set to true"
        found.append(_invalid("ownerReferences", "controller", words))
    return found


def _name_faults(resource: Resource, name: str) -> list[Cause]:
    if not name:
        return [Cause("FieldValueRequired", "Required value: name or generateName is required", "metadata.name")]
    if resource.group == "rbac.authorization.k8s.io":
        # Roles may be called anything that fits into a URL: system:node.
        return [] if "/" not in name and "%" not in name else [_invalid("name", name, "may not contain '/' or '%'")]
    if resource.id == "namespaces":
        return [] if _LABEL.fullmatch(name) and len(name) <= 63 else [_invalid("name", name, LABEL_WORDS)]
    if len(name) > 253:
        return [_invalid("name", name, "must be no more than 253 bytes")]
    return [] if _SUBDOMAIN.fullmatch(name) else [_invalid("name", name, _SUBDOMAIN_WORDS)]


def _key_faults(field: str, key: str) -> list[Cause]:
    prefix, slash, name = key.rpartition("/")
    if slash and not (_SUBDOMAIN.fullmatch(prefix) and len(prefix) <= 253):
        return [_invalid(field, key, f"prefix part {_SUBDOMAIN_WORDS}")]
    if not _QUALIFIED.fullmatch(name):
        return [_invalid(field, key, _KEY_WORDS)]
    return [] if len(name) <= 63 else [_invalid(field, key, "name part must be no more than 63 bytes")]


def _invalid(field: str, value: str, words: str) -> Cause:
    return Cause("FieldValueInvalid", f'Invalid value: "{value}": {words}', f"metadata.{field}")


def update_faults(meta: Object, before: Object) -> list[Cause]:
    """What an update may not change, beside what is overwritten silently."""
    found = []
    if meta.get("uid") not in (None, before["uid"]):
        found.append(_invalid("uid", meta["uid"], "field is immutable"))
    if before.get("deletionTimestamp"):
        new = [name for name in meta.get("finalizers") or () if name not in (before.get("finalizers") or ())]
        if new:
            listed = ", ".join(f'"{name}"' for name in new)
            message = (
                "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
                f"[]string{{{listed}}}"
            )
            found.append(Cause("FieldValueForbidden", message, "metadata.finalizers"))
    return found
