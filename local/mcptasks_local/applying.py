"""Server-side apply: who owns which field; what a manager no longer sends goes; what another one owns is a conflict.

Owners are kept for managers that apply; plain writes by others are not tracked, so they cause no conflicts.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any

from mcptasks_local.errors import ApiError, Object
from mcptasks_local.patches import MERGE_KEYS

Path = tuple[str, ...]
"""Steps as FieldsV1 names them: ``f:spec``, and ``k:{"name":"x"}`` for an entry of a keyed list."""
_UNOWNED = ("apiVersion", "kind")
_SERVER = (
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
    "selfLink",
)


def applied(
    live: Object | None, config: Object, *, schema: Object | None, manager: str, force: bool, now: str
) -> Object:
    """``live`` with ``config`` applied by ``manager``, its ``managedFields`` brought up to date.

    Raises:
        ApiError: 409, another manager owns a field and wants it otherwise, and ``force`` is not set.
    """
    config = copy.deepcopy(config)
    wanted = set(_leaves(_owned(config), schema or {}, ()))
    out = copy.deepcopy(live) if live else {key: config[key] for key in _UNOWNED if key in config}
    owners = {
        entry["manager"]: set(_decoded(entry["fieldsV1"]))
        for entry in ((live or {}).get("metadata") or {}).get("managedFields") or ()
        if entry.get("operation") == "Apply"
    }
    mine = owners.pop(manager, set())
    foreign = {
        (name, path)
        for name, paths in owners.items()
        for path in paths & wanted
        if _value(out, path) != _value(config, path)
    }
    if foreign and not force:
        raise _conflict(sorted(foreign))
    for name, path in foreign:
        owners[name].discard(path)
    kept = set().union(*owners.values()) if owners else set()
    for path in sorted(mine - wanted - kept, key=len, reverse=True):
        _drop(out, path)
    _merge(out, _owned(config), schema or {})
    meta = out.setdefault("metadata", {})
    for key in _SERVER:
        if key in (config.get("metadata") or {}) and key != "managedFields":
            meta[key] = config["metadata"][key]
    meta["managedFields"] = [
        {
            "manager": name,
            "operation": "Apply",
            "apiVersion": out.get("apiVersion", ""),
            "time": now,
            "fieldsType": "FieldsV1",
            "fieldsV1": _encoded(paths),
        }
        for name, paths in sorted({**owners, manager: wanted}.items())
        if paths
    ]
    return out


def _owned(config: Object) -> Object:
    """The part of a configuration that can be owned."""
    out = {key: value for key, value in config.items() if key not in _UNOWNED}
    meta = {key: value for key, value in (config.get("metadata") or {}).items() if key not in _SERVER}
    out.pop("metadata", None)
    return {**({"metadata": meta} if meta else {}), **out}


def _below(schema: Object, key: str) -> Object:
    child = (schema.get("properties") or {}).get(key, schema.get("additionalProperties"))
    return child if isinstance(child, dict) else {}


def _keys(field: str, schema: Object) -> tuple[str, ...]:
    """The keys of a list's entries; none if the list is owned as one."""
    if schema:
        return tuple(schema.get("x-kubernetes-list-map-keys") or ())
    return (MERGE_KEYS[field],) if field in MERGE_KEYS else ()


def _entry(value: Any, keys: tuple[str, ...]) -> str:
    chosen = {key: value[key] for key in keys if key in value}
    return "k:" + json.dumps(chosen, sort_keys=True, separators=(",", ":"))


def _keyed(value: Any, keys: tuple[str, ...]) -> bool:
    return bool(keys) and isinstance(value, list) and all(isinstance(entry, dict) for entry in value)


def _leaves(value: Any, schema: Object, path: Path) -> Iterator[Path]:
    if not isinstance(value, dict) or not value:
        yield path
        return
    for key, child in value.items():
        below, step = _below(schema, key), (*path, f"f:{key}")
        if _keyed(child, keys := _keys(key, below)):
            for entry in child:
                # The keys belong to the entry: they are no fields to be owned apart.
                rest = {name: value for name, value in entry.items() if name not in keys}
                yield from _leaves(rest, below.get("items") or {}, (*step, _entry(entry, keys)))
        else:
            yield from _leaves(child, below, step)


def _find(holder: Any, step: str) -> Any:
    if step.startswith("f:"):
        return holder.get(step[2:]) if isinstance(holder, dict) else None
    chosen = json.loads(step[2:])
    entries = holder if isinstance(holder, list) else []
    return next((e for e in entries if isinstance(e, dict) and chosen.items() <= e.items()), None)


def _value(item: Any, path: Path) -> Any:
    for step in path:
        item = _find(item, step)
    return item


def _drop(item: Object, path: Path) -> None:
    """Remove a leaf, and what it leaves empty behind."""
    holder = _value(item, path[:-1])
    last = path[-1]
    if isinstance(holder, dict):
        holder.pop(last[2:], None)
    elif isinstance(holder, list) and (entry := _find(holder, last)) is not None:
        holder.remove(entry)
    if len(path) == 1 or path[:-1] == ("f:metadata",):
        return
    bare = isinstance(holder, dict) and path[-2].startswith("k:") and holder.items() <= json.loads(path[-2][2:]).items()
    if not holder or bare:
        _drop(item, path[:-1])


def _merge(out: Object, config: Object, schema: Object) -> None:
    for key, value in config.items():
        below = _below(schema, key)
        if isinstance(value, dict) and isinstance(out.get(key), dict) and value:
            _merge(out[key], value, below)
        elif _keyed(value, keys := _keys(key, below)) and isinstance(out.get(key), list):
            for entry in value:
                there = _find(out[key], _entry(entry, keys))
                if there is None:
                    out[key].append(entry)
                else:
                    _merge(there, entry, below.get("items") or {})
        else:
            out[key] = value


def _encoded(paths: set[Path]) -> Object:
    out: Object = {}
    for path in sorted(paths):
        place = out
        for step in path:
            place = place.setdefault(step, {})
    return out


def _decoded(fields: Object, path: Path = ()) -> Iterator[Path]:
    if not fields and path:
        yield path
    for step, below in fields.items():
        yield from _decoded(below, (*path, step))


def _conflict(foreign: list[tuple[str, Path]]) -> ApiError:
    causes = [
        {"reason": "FieldManagerConflict", "message": f'conflict with "{name}"', "field": _shown(path)}
        for name, path in foreign
    ]
    listed = ", ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
    many = f"{len(causes)} conflict" + ("s" if len(causes) > 1 else "")
    return ApiError(409, "Conflict", f"Apply failed with {many}: {listed}", {"causes": causes})


def _shown(path: Path) -> str:
    steps = (f".{step[2:]}" if step.startswith("f:") else f"[{_chosen(step)}]" for step in path)
    return "".join(steps)


def _chosen(step: str) -> str:
    return ",".join(f"{key}={json.dumps(value)}" for key, value in json.loads(step[2:]).items())
