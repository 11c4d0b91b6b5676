"""Tables, as ``kubectl get`` asks for them: printer columns of CRDs, and a few of our own for built-in kinds."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from mcptasks_local.errors import Object
from mcptasks_local.resources import Resource


class Column(NamedTuple):
    """One column: ``priority`` 1 shows with ``-o wide`` alone."""

    name: str
    kind: str
    read: Callable[[Object], Any]
    priority: int = 0
    description: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """How objects of a kind are represented: as they are, as rows of a Table, or by their metadata alone."""

    resource: Resource
    kind: str
    include: str
    now: datetime

    def of_list(self, items: list[Object], meta: Object) -> Object:
        """A list."""
        if self.kind == "Table":
            return self._table(items, meta)
        if self.kind == "PartialObjectMetadata":
            entries = [self._partial(item) for item in items]
            return {**_META, "kind": "PartialObjectMetadataList", "metadata": meta, "items": entries}
        head = {"kind": self.resource.list_kind, "apiVersion": self.resource.api_version}
        return {**head, "metadata": meta, "items": items}

    def of_one(self, item: Object) -> Object:
        """One object that was asked for by its name."""
        if self.kind == "Table":
            return self._table([item], {"resourceVersion": item["metadata"]["resourceVersion"]})
        return self._partial(item) if self.kind == "PartialObjectMetadata" else item

    def of_event(self, item: Object) -> Object:
        """The object of a watch's event."""
        return self.of_one(item)

    def _table(self, items: list[Object], meta: Object) -> Object:
        columns = _columns(self.resource)
        definitions = [
            {
                "name": column.name,
                "type": column.kind,
                "format": "name" if index == 0 else "",
                "description": column.description,
                "priority": column.priority,
            }
            for index, column in enumerate(columns)
        ]
        rows: list[Object] = []
        for item in items:
            row: Object = {"cells": [_cell(column.kind, column.read(item), self.now) for column in columns]}
            if self.include == "Object":
                row["object"] = item
            elif self.include != "None":
                row["object"] = self._partial(item)
            rows.append(row)
        return {**_META, "kind": "Table", "metadata": meta, "columnDefinitions": definitions, "rows": rows}

    def _partial(self, item: Object) -> Object:
        return {**_META, "kind": "PartialObjectMetadata", "metadata": item["metadata"]}


_META = {"apiVersion": "meta.k8s.io/v1"}


def shape(resource: Resource, accept: str, include: str, now: datetime) -> Shape:
    """What an ``Accept`` header asks for; the first of its choices that is known."""
    for choice in accept.split(","):
        parameters = {part.strip() for part in choice.split(";")[1:]}
        if "as=Table" in parameters:
            return Shape(resource, "Table", include, now)
        if parameters & {"as=PartialObjectMetadata", "as=PartialObjectMetadataList"}:
            return Shape(resource, "PartialObjectMetadata", include, now)
        if not parameters:
            break
    return Shape(resource, "", include, now)


def _columns(resource: Resource) -> list[Column]:
    name = Column("Name", "string", lambda item: item["metadata"]["name"], description="Name within its namespace.")
    if resource.custom:
        own = [
            Column(c["name"], c["type"], _path(c["jsonPath"]), c.get("priority", 0), c.get("description", ""))
            for c in resource.custom.get("additionalPrinterColumns") or ()
        ]
    else:
        own = list(_BUILT_IN.get(resource.id, ()))
    return [name, *(own or [_AGE])]


def _containers(item: Object) -> list[Object]:
    return (item.get("status") or {}).get("containerStatuses") or []


def _ready(item: Object) -> str:
    ready = sum(bool(status.get("ready")) for status in _containers(item))
    return f"{ready}/{len(item['spec'].get('containers') or ())}"


def _pod_state(item: Object) -> str:
    """As kubectl words it: the reason of what waits or has ended, or the phase."""
    status = item.get("status") or {}
    shown: str = status.get("reason") or status.get("phase") or "Unknown"
    for container in _containers(item):
        state = container.get("state") or {}
        told = state.get("waiting") or state.get("terminated")
        if told and told.get("reason"):
            shown = told["reason"]
    return "Terminating" if item["metadata"].get("deletionTimestamp") else shown


def _restarts(item: Object) -> int:
    return sum(int(status.get("restartCount", 0)) for status in _containers(item))


def _job_state(item: Object) -> str:
    for condition in reversed((item.get("status") or {}).get("conditions") or ()):
        if condition.get("status") == "True" and condition["type"] in ("Complete", "Failed", "Suspended"):
            return str(condition["type"])
    return "Terminating" if item["metadata"].get("deletionTimestamp") else "Running"


def _completions(item: Object) -> str:
    return f"{(item.get('status') or {}).get('succeeded', 0)}/{item['spec'].get('completions', 1)}"


def _duration(item: Object) -> str:
    status = item.get("status") or {}
    if not status.get("startTime") or not status.get("completionTime"):
        return ""
    return _age(datetime.fromisoformat(status["startTime"]), datetime.fromisoformat(status["completionTime"]))


def _involved(item: Object) -> str:
    involved = item.get("involvedObject") or {}
    return f"{str(involved.get('kind', '')).lower()}/{involved.get('name', '')}"


def _count(field: str) -> Callable[[Object], Any]:
    return lambda item: len(item.get(field) or ())


def _role(item: Object) -> str:
    return f"{item['roleRef']['kind']}/{item['roleRef']['name']}"


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


_AGE = Column("Age", "date", _path(".metadata.creationTimestamp"), description="Time since it was made.")
_ROLE = (Column("Role", "string", _role), _AGE)
_BUILT_IN: dict[str, tuple[Column, ...]] = {
    "pods": (
        Column("Ready", "string", _ready),
        Column("Status", "string", _pod_state),
        Column("Restarts", "integer", _restarts),
        _AGE,
        Column("IP", "string", _path(".status.podIP"), 1),
        Column("Node", "string", _path(".spec.nodeName"), 1),
    ),
    "jobs.batch": (
        Column("Status", "string", _job_state),
        Column("Completions", "string", _completions),
        Column("Duration", "string", _duration),
        _AGE,
        Column("Images", "string", _path(".spec.template.spec.containers[0].image"), 1),
    ),
    "events": (
        Column("Last Seen", "date", _path(".lastTimestamp")),
        Column("Type", "string", _path(".type")),
        Column("Reason", "string", _path(".reason")),
        Column("Object", "string", _involved),
        Column("Message", "string", _path(".message")),
    ),
    "namespaces": (Column("Status", "string", _path(".status.phase")), _AGE),
    "secrets": (Column("Type", "string", _path(".type")), Column("Data", "integer", _count("data")), _AGE),
    "configmaps": (Column("Data", "integer", _count("data")), _AGE),
    "leases.coordination.k8s.io": (Column("Holder", "string", _path(".spec.holderIdentity")), _AGE),
    "rolebindings.rbac.authorization.k8s.io": _ROLE,
    "clusterrolebindings.rbac.authorization.k8s.io": _ROLE,
    "customresourcedefinitions.apiextensions.k8s.io": (
        Column("Created At", "string", _path(".metadata.creationTimestamp")),
    ),
}


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
