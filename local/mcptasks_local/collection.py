"""Owner-reference collection: what no living owner holds any more is deleted, in the background."""

import asyncio
import contextlib
from collections import defaultdict

from mcptasks_local.errors import ApiError, Object
from mcptasks_local.objects import Objects
from mcptasks_local.resources import Resource

Dependent = tuple[str, str, str]
"""Resource id, namespace, name."""


class Collector:
    """Follows every change; a deletion costs what depends on it, not a search."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._held: defaultdict[str, set[Dependent]] = defaultdict(set)

    async def run(self) -> None:
        """Collect until cancelled; begins with what lost its owner while nobody looked."""
        events = self._objects.watch()
        items = [(r, item) for r in self._objects.resources() for item in self._objects.list(r)[0]]
        for resource, item in items:
            self._note(resource.id, item)
        for resource, item in items:
            self._check(resource, item)
        async for event in events:
            meta = event.object["metadata"]
            if event.type == "DELETED":
                for name, namespace, dependent in list(self._held.pop(meta["uid"], ())):
                    with contextlib.suppress(ApiError):
                        resource = self._objects.resource(name)
                        self._check(resource, self._objects.get(resource, namespace, dependent))
            else:
                self._note(event.resource, event.object)
                with contextlib.suppress(ApiError):
                    self._check(self._objects.resource(event.resource), event.object)
            await asyncio.sleep(0)

    def _note(self, resource: str, item: Object) -> None:
        meta = item["metadata"]
        for owner in meta.get("ownerReferences") or ():
            self._held[owner["uid"]].add((resource, meta.get("namespace", ""), meta["name"]))

    def _check(self, resource: Resource, item: Object) -> None:
        """Delete ``item`` if it has owners and none of them lives."""
        meta = item["metadata"]
        owners = meta.get("ownerReferences") or ()
        if not owners or "deletionTimestamp" in meta or any(self._lives(owner, meta) for owner in owners):
            return
        with contextlib.suppress(ApiError):
            self._objects.delete(
                resource, meta.get("namespace", ""), meta["name"], uid=meta["uid"], propagation="Background"
            )

    def _lives(self, owner: Object, dependent: Object) -> bool:
        """Whether an owner is there with that very uid: a wrong uid counts as gone, as in Kubernetes."""
        group = owner["apiVersion"].rpartition("/")[0]
        for resource in self._objects.resources():
            if resource.kind == owner["kind"] and resource.group == group:
                namespace = dependent.get("namespace", "") if resource.namespaced else ""
                try:
                    there = self._objects.get(resource, namespace, owner["name"])
                except ApiError:
                    return False
                return bool(there["metadata"]["uid"] == owner["uid"])
        return False
