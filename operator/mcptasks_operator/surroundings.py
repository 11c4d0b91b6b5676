"""What every tool's pod gets from the operator, whatever its template: where to report, and who it may be."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

USER = 65532
"""User and group of a program whose template names none: an image's own default is mostly root."""

Object = dict[str, Any]


@dataclass(frozen=True)
class Surroundings:
    """The operator's settings about pods."""

    worker_url: str
    """Where a pod reaches the worker API."""
    service_account: str | None = None
    """ServiceAccount of a pod whose template names none; None = the namespace's default."""
    restricted: bool = True
    """Whether a template that says nothing of security means what Pod Security calls ``restricted``."""

    def apply(self, spec: Object) -> None:
        """Complete a pod's ``spec`` in place. What the template says stands."""
        spec["automountServiceAccountToken"] = False
        if self.service_account is not None:
            spec.setdefault("serviceAccountName", self.service_account)
        if self.restricted:
            _restrict(spec)


def _restrict(spec: Object) -> None:
    pod = spec["securityContext"] = dict(spec.get("securityContext") or {})
    pod.setdefault("seccompProfile", {"type": "RuntimeDefault"})
    if "runAsUser" not in pod and "runAsNonRoot" not in pod:  # runAsNonRoot alone means the image's own user
        pod |= {"runAsUser": USER, "runAsGroup": pod.get("runAsGroup", USER), "fsGroup": pod.get("fsGroup", USER)}
    pod.setdefault("runAsNonRoot", pod.get("runAsUser") != 0)
    for container in (*(spec.get("initContainers") or []), *spec["containers"]):
        own = container["securityContext"] = dict(container.get("securityContext") or {})
        if own.get("runAsUser") == 0:
            own.setdefault("runAsNonRoot", False)
        if not _raised(own):
            own.setdefault("allowPrivilegeEscalation", False)
        own["capabilities"] = {"drop": ["ALL"], **(own.get("capabilities") or {})}


def _raised(context: Mapping[str, Any]) -> bool:
    """Whether the API server refuses ``allowPrivilegeEscalation: false`` beside this."""
    added = (context.get("capabilities") or {}).get("add") or []
    return bool(context.get("privileged")) or "SYS_ADMIN" in added or "CAP_SYS_ADMIN" in added
