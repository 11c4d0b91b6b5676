"""A Kubernetes API in memory, as far as the operator uses one."""

import copy
from collections.abc import Callable
from typing import Any

from mcptasks_crds.api import Object
from mcptasks_crds.errors import AlreadyExists, ApiFailure, Conflict, NotFound
from mcptasks_crds.kinds import Kind
from mcptasks_crds.times import render

START = 1_785_000_000.0
NAMESPACE = "team-a"


class FakeApi:
    """Objects by plural, namespace and name, one resourceVersion for all, and a record of every request."""

    def __init__(self, now: float = START) -> None:
        self.now = now
        self.objects: dict[tuple[str, str, str], Object] = {}
        self.requests: list[str] = []
        self.faults: dict[str, list[ApiFailure]] = {}
        """What the next requests of that name (``create jobs``) are answered with."""
        self.before: dict[str, Callable[[], object]] = {}
        """What happens just before the next request of that name is served: somebody else was faster."""
        self.logs: dict[str, bytes] = {}
        self.version = 100

    @property
    def writes(self) -> list[str]:
        """The requests that changed something."""
        return [r for r in self.requests if r.split()[0] in ("create", "patch", "replace", "delete")]

    def add(self, kind: Kind, body: Object) -> Object:
        """Put an object there without a request, as the cluster does."""
        item = copy.deepcopy(body)
        item.setdefault("metadata", {})
        item["metadata"].setdefault("namespace", NAMESPACE)
        item["metadata"].setdefault("uid", f"uid-{self.version}")
        item["metadata"].setdefault("creationTimestamp", render(self.now))
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        item |= {"apiVersion": kind.api_version, "kind": kind.name}
        self.objects[kind.plural, item["metadata"]["namespace"], item["metadata"]["name"]] = item
        return copy.deepcopy(item)

    def one(self, kind: Kind, name: str) -> Object:
        """An object as it is, without a request."""
        return self.objects[kind.plural, NAMESPACE, name]

    def all(self, kind: Kind) -> list[Object]:
        """All of a kind, without a request."""
        return [item for (plural, _, _), item in self.objects.items() if plural == kind.plural]

    async def create(self, kind: Kind, namespace: str, body: Object, *, dry_run: bool = False) -> Object:
        self._asked("create", kind)
        item = {**body, "metadata": {**body["metadata"], "namespace": namespace}}
        if dry_run:
            return item
        if (kind.plural, namespace, item["metadata"]["name"]) in self.objects:
            raise AlreadyExists(409, "AlreadyExists", f"{kind.plural} {item['metadata']['name']!r} already exists")
        return self.add(kind, item)

    async def get(self, kind: Kind, namespace: str, name: str) -> Object:
        self._asked("get", kind)
        return copy.deepcopy(self._found(kind, namespace, name))

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
        self._asked("list", kind)
        name, _, value = labels.partition("=")
        items = [
            copy.deepcopy(item)
            for (plural, where, _), item in self.objects.items()
            if plural == kind.plural
            and namespace in (None, where)
            and (not name or item["metadata"].get("labels", {}).get(name) == value)
            and _selected(item, fields)
        ]
        begin = int(after or 0)
        rest = str(begin + limit) if len(items) > begin + limit else ""
        return {
            "items": items[begin : begin + limit],
            "metadata": {"resourceVersion": str(self.version), "continue": rest},
        }

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
        self._asked("patch", kind)
        item = self._found(kind, namespace, name)
        if resource_version not in (None, item["metadata"]["resourceVersion"]):
            raise Conflict(409, "Conflict", "the object has been modified")
        assert subresource == "status"
        item["status"] = _merged(item.get("status") or {}, body["status"])
        return self._touched(item)

    async def replace(self, kind: Kind, namespace: str, name: str, body: Object) -> Object:
        self._asked("replace", kind)
        item = self._found(kind, namespace, name)
        if body["metadata"].get("resourceVersion") != item["metadata"]["resourceVersion"]:
            raise Conflict(409, "Conflict", "the object has been modified")
        item["spec"] = copy.deepcopy(body["spec"])
        return self._touched(item)

    async def delete(
        self, kind: Kind, namespace: str, name: str, *, uid: str | None = None, resource_version: str | None = None
    ) -> None:
        self._asked("delete", kind)
        meta = self._found(kind, namespace, name)["metadata"]
        if uid not in (None, meta["uid"]) or resource_version not in (None, meta["resourceVersion"]):
            raise Conflict(409, "Conflict", "the precondition failed")
        del self.objects[kind.plural, namespace, name]

    async def log(self, namespace: str, pod: str, container: str, *, tail_lines: int) -> bytes:
        self.requests.append(f"log {pod}/{container} {tail_lines}")
        self._fails("log")
        if pod not in self.logs:
            raise NotFound(404, "NotFound", f"pods {pod!r} not found")
        lines = self.logs[pod].splitlines(keepends=True)
        return b"".join(lines[-tail_lines:])

    def change(self, kind: Kind, name: str, status: Object) -> Object:
        """Somebody else's status patch."""
        item = self.one(kind, name)
        item["status"] = _merged(item.get("status") or {}, status)
        return self._touched(item)

    def _touched(self, item: Object) -> Object:
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        return copy.deepcopy(item)

    def _found(self, kind: Kind, namespace: str, name: str) -> Object:
        if (item := self.objects.get((kind.plural, namespace, name))) is None:
            raise NotFound(404, "NotFound", f"{kind.plural} {name!r} not found")
        return item

    def _asked(self, verb: str, kind: Kind) -> None:
        name = f"{verb} {kind.plural}"
        self.requests.append(name)
        if (happens := self.before.pop(name, None)) is not None:
            happens()
        self._fails(name)

    def _fails(self, name: str) -> None:
        if self.faults.get(name):
            raise self.faults[name].pop(0)


def _merged(old: Object, new: Object) -> Object:
    """RFC 7396."""
    result: dict[str, Any] = {**old}
    for key, value in new.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _merged(old[key] if isinstance(old.get(key), dict) else {}, value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def _selected(item: Object, fields: str) -> bool:
    for one in filter(None, fields.split(",")):
        path, _, value = one.partition("=")
        differ, path = path.endswith("!"), path.rstrip("!")
        found: Any = item
        for part in path.split("."):
            found = (found or {}).get(part)
        if (str(found) == value) == differ:
            return False
    return True
