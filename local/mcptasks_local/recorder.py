"""Events: what `kubectl describe` shows below an object. A bounded number is kept."""

import contextlib
import secrets
from collections import deque

from mcptasks_local.errors import ApiError, Object
from mcptasks_local.objects import Objects
from mcptasks_local.pod_status import stamp

KEPT = 500
"""Events that are kept; Kubernetes keeps all of them for an hour."""


class Recorder:
    """Writes events of one component: ``kubelet`` or ``job-controller``."""

    def __init__(self, objects: Objects, component: str, kept: int = KEPT) -> None:
        self._objects, self._component, self._kept = objects, component, kept
        events, _ = objects.list(objects.resource("events"))
        mine = [event["metadata"] for event in events if (event.get("source") or {}).get("component") == component]
        mine.sort(key=lambda meta: int(meta["resourceVersion"]))
        self._names = deque((meta["namespace"], meta["name"]) for meta in mine)

    def record(self, about: Object, reason: str, message: str, now: float, *, warning: bool = False) -> None:
        """Write one event; an object whose namespace has gone gets none."""
        meta, at = about["metadata"], stamp(now)
        resource, namespace = self._objects.resource("events"), meta["namespace"]
        name = f"{meta['name']}.{secrets.token_hex(8)}"
        involved = {"apiVersion": about["apiVersion"], "kind": about["kind"]}
        involved |= {key: meta[key] for key in ("name", "namespace", "uid", "resourceVersion")}
        event: Object = {
            "metadata": {"name": name, "namespace": namespace},
            "involvedObject": involved,
            "reason": reason,
            "message": message,
            "type": "Warning" if warning else "Normal",
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": "",
            "firstTimestamp": at,
            "lastTimestamp": at,
            "eventTime": None,
            "count": 1,
        }
        with contextlib.suppress(ApiError):
            self._objects.create(resource, namespace, event)
            self._names.append((namespace, name))
        while len(self._names) > self._kept:
            with contextlib.suppress(ApiError):
                self._objects.delete(resource, *self._names.popleft())
