"""Tables, as ``kubectl get`` asks for them: printer columns of CRDs, and a few of our own for built-in kinds."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from mcptasks_local.errors import Object
from mcptasks_local.resources import Resource

Column = tuple[str, str, int, Callable[[Object], Any]]
"""Name, type, priority (1 = only with -o wide), and how a cell is read."""


def table(resource: Resource, items: list[Object], now: datetime, meta: Object, *, headers: bool = True) -> Object:
    """A meta.k8s.io/v1 Table of ``items``; each row carries the object's metadata."""
    columns = _columns(resource)
    definitions = [
        {"name": name, "type": kind, "format": "name" if index == 0 else "", "description": name, "priority": priority}
        for index, (name, kind, priority, _) in enumerate(columns)
    ]
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": meta,
        "columnDefinitions": definitions if headers else None,
        "rows": [
            {
                "cells": [_cell(kind, read(item), now) for _, kind, _, read in columns],
                "object": {
                    "kind": "PartialObjectMetadata",
                    "apiVersion": "meta.k8s.io/v1",
                    "metadata": item["metadata"],
                },
            }
            for item in items
        ],
    }


def _columns(resource: Resource) -> list[Column]:
    name: Column = ("Name", "string", 0, lambda item: item["metadata"]["name"])
    if resource.custom:
        own = [
            (c["name"], c["type"], c.get("priority", 0), _path(c["jsonPath"]))
            for c in resource.custom.get("additionalPrinterColumns") or ()
        ]
    else:
        own = [(title, kind, 0, _path(path)) for title, kind, path in _BUILTIN.get(resource.id, ())]
    age: list[Column] = [("Age", "date", 0, _path(".metadata.creationTimestamp"))]
    return [name, *(own or age)]


_AGE = ("Age", "date", ".metadata.creationTimestamp")
_BUILTIN: dict[str, tuple[tuple[str, str, str], ...]] = {
    "pods": (("Status", "string", ".status.phase"), ("Reason", "string", ".status.reason"), _AGE),
    "jobs.batch": (
        ("Active", "integer", ".status.active"),
        ("Succeeded", "integer", ".status.succeeded"),
        ("Failed", "integer", ".status.failed"),
        _AGE,
    ),
    "events": (
        ("Last Seen", "date", ".lastTimestamp"),
        ("Type", "string", ".type"),
        ("Reason", "string", ".reason"),
        ("Object", "string", ".involvedObject.name"),
        ("Message", "string", ".message"),
    ),
    "namespaces": (("Status", "string", ".status.phase"), _AGE),
    "secrets": (("Type", "string", ".type"), _AGE),
    "leases.coordination.k8s.io": (("Holder", "string", ".spec.holderIdentity"), _AGE),
    "customresourcedefinitions.apiextensions.k8s.io": (("Created At", "string", ".metadata.creationTimestamp"),),
}

_STEP = re.compile(r"\.(?P<key>[^.\[]+)|\[(?P<index>\d+)\]|\[\?\(@\.(?P<field>\w+)==['\"](?P<value>[^'\"]*)['\"]\)\]")


def _path(text: str) -> Callable[[Object], Any]:
    """The simple JSON paths that printer columns use: keys, an index, and a filter by equality."""
    steps = [match.groupdict() for match in _STEP.finditer(text)]

    def read(item: Any) -> Any:
        for step in steps:
            if step["key"] is not None:
                item = item.get(step["key"]) if isinstance(item, dict) else None
            elif not isinstance(item, list):
                return None
            elif step["index"] is not None:
                index = int(step["index"])
                item = item[index] if index < len(item) else None
            else:
                item = next((child for child in item if child.get(step["field"]) == step["value"]), None)
        return item

    return read


def _cell(kind: str, value: Any, now: datetime) -> Any:
    if value is None:
        return "" if kind == "string" else None
    if kind == "date":
        return _age(datetime.fromisoformat(value), now)
    return str(value) if kind == "string" else value


def _age(since: datetime, now: datetime) -> str:
    """As kubectl words an age: 42s, 5m10s, 3h, 2d."""
    seconds = int((now.astimezone(UTC) - since).total_seconds())
    if seconds < 0:
        return "<invalid>"
    if seconds < 120:
        return f"{seconds}s"
    minutes, rest = divmod(seconds, 60)
    if minutes < 10:
        return f"{minutes}m{rest}s" if rest else f"{minutes}m"
    if minutes < 180:
        return f"{minutes}m"
    hours, rest = divmod(minutes, 60)
    if hours < 8:
        return f"{hours}h{rest}m" if rest else f"{hours}h"
    return f"{hours}h" if hours < 48 else f"{hours // 24}d"
