"""What the API server fills in and refuses for built-in kinds: the part of it that clients of tasks meet."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from mcptasks_local import errors
from mcptasks_local.errors import Cause, Object, bad_request, invalid
from mcptasks_local.metadata import LABEL_WORDS
from mcptasks_local.resources import Resource

Lookup = Callable[[str, str, str], Object | None]
"""Reads an object by resource id, namespace and name."""

DATA_LIMIT = 1024 * 1024
"""Bytes of a Secret's or ConfigMap's values."""
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_MICRO_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(Z|[+-]\d\d:\d\d)")
_RBAC = "rbac.authorization.k8s.io"


def admit(resource: Resource, item: Object, old: Object | None, lookup: Lookup) -> None:
    """Fill in defaults of ``item`` and check it, against its state before an update.

    Raises:
        ApiError: 400 (a wrong type), 403 (a ServiceAccount that is not there), 422.
    """
    if (rule := _RULES.get(resource.id)) is None:
        return
    if found := list(rule(item, old, lookup)):
        raise invalid(resource.group, resource.kind, item["metadata"].get("name", ""), found)


def _required(field: str, words: str = "") -> Cause:
    return Cause("FieldValueRequired", f"Required value: {words}" if words else "Required value", field)


def _wrong(field: str, value: Any, words: str) -> Cause:
    shown = f'"{value}"' if isinstance(value, str) else value
    return Cause("FieldValueInvalid", f"Invalid value: {shown}: {words}", field)


def _unsupported(field: str, value: str, choices: tuple[str, ...]) -> Cause:
    listed = ", ".join(f'"{choice}"' for choice in choices)
    return Cause("FieldValueNotSupported", f'Unsupported value: "{value}": supported values: {listed}', field)


def _mistyped(kind: str, field: str, wanted: str) -> Exception:
    return bad_request(f'{kind} in version "v1" cannot be handled as a {kind}: {field} must be of type {wanted}')


def _namespace(item: Object, old: Object | None, _: Lookup) -> Iterator[Cause]:
    item["metadata"].setdefault("labels", {})["kubernetes.io/metadata.name"] = item["metadata"]["name"]
    item.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    item["status"] = (old or item).get("status") or {"phase": "Active"}
    yield from ()


def _secret(item: Object, old: Object | None, _: Lookup) -> Iterator[Cause]:
    data = item.get("data") or {}
    texts = item.pop("stringData", None) or {}
    if not isinstance(data, dict) or not isinstance(texts, dict):
        raise _mistyped("Secret", "data", "map[string]string")
    for key, text in texts.items():
        if not isinstance(text, str):
            raise _mistyped("Secret", "stringData", "map[string]string")
        data[key] = base64.b64encode(text.encode()).decode()
    size = 0
    for value in data.values():
        try:
            size += len(base64.b64decode(value, validate=True))
        except (TypeError, ValueError, binascii.Error):
            raise _mistyped("Secret", "data", "base64 text") from None
    if data:
        item["data"] = data
    item.setdefault("type", "Opaque")
    if size > DATA_LIMIT:
        yield Cause("FieldValueTooLong", f"Too long: may not be more than {DATA_LIMIT} bytes", "data")
    if old is not None and item["type"] != old["type"]:
        yield _wrong("type", item["type"], "field is immutable")
    yield from _frozen(item, old)


def _config_map(item: Object, old: Object | None, _: Lookup) -> Iterator[Cause]:
    data = item.get("data") or {}
    if not isinstance(data, dict) or not all(isinstance(value, str) for value in data.values()):
        raise _mistyped("ConfigMap", "data", "map[string]string")
    if sum(len(value.encode()) for value in data.values()) > DATA_LIMIT:
        yield Cause("FieldValueTooLong", f"Too long: may not be more than {DATA_LIMIT} bytes", "")
    yield from _frozen(item, old)


def _frozen(item: Object, old: Object | None) -> Iterator[Cause]:
    if old is not None and old.get("immutable"):
        for field in ("data", "immutable"):
            if item.get(field) != old.get(field):
                words = "Forbidden: field is immutable when `immutable` is set"
                yield Cause("FieldValueForbidden", words, field)


def _event(item: Object, _old: Object | None, _: Lookup) -> Iterator[Cause]:
    place = (item.get("involvedObject") or {}).get("namespace") or "default"
    if place != item["metadata"].get("namespace"):
        yield _wrong("involvedObject.namespace", place, "does not match event.namespace")


def _lease(item: Object, _old: Object | None, _: Lookup) -> Iterator[Cause]:
    spec = item.get("spec") or {}
    for field in ("acquireTime", "renewTime"):
        # MicroTime: exactly six digits. A client that drops them on a whole second is refused by Kubernetes too.
        if (at := spec.get(field)) is not None and not _MICRO_TIME.fullmatch(str(at)):
            layout = "2006-01-02T15:04:05.000000Z07:00"
            raise bad_request(
                f'Lease in version "v1" cannot be handled as a Lease: parsing time "{at}" as "{layout}": cannot parse'
            )
    for field in ("leaseDurationSeconds", "leaseTransitions"):
        if (number := spec.get(field)) is not None and not isinstance(number, int):
            raise _mistyped("Lease", f"spec.{field}", "int32")
    if (seconds := spec.get("leaseDurationSeconds")) is not None and seconds <= 0:
        yield _wrong("spec.leaseDurationSeconds", seconds, "must be greater than 0")


def _binding(item: Object, old: Object | None, _: Lookup) -> Iterator[Cause]:
    item.setdefault("roleRef", {}).setdefault("apiGroup", _RBAC)
    for index, subject in enumerate(item.get("subjects") or ()):
        if subject.get("kind") in ("User", "Group"):
            subject.setdefault("apiGroup", _RBAC)
        elif subject.get("kind") != "ServiceAccount":
            choices = ("Group", "ServiceAccount", "User")
            yield _unsupported(f"subjects[{index}].kind", subject.get("kind", ""), choices)
        elif not subject.get("namespace") and "namespace" not in item["metadata"]:
            yield _required(f"subjects[{index}].namespace")
    if not item["roleRef"].get("name"):
        yield _required("roleRef.name")
    if item["roleRef"].get("kind") not in ("Role", "ClusterRole"):
        yield _unsupported("roleRef.kind", item["roleRef"].get("kind", ""), ("Role", "ClusterRole"))
    if old is not None and item["roleRef"] != old["roleRef"]:
        yield _wrong("roleRef", json.dumps(item["roleRef"]), "cannot change roleRef")


def _role(item: Object, _old: Object | None, _: Lookup) -> Iterator[Cause]:
    for index, rule in enumerate(item.get("rules") or ()):
        if not rule.get("verbs"):
            yield _required(f"rules[{index}].verbs", "verbs must contain at least one value")


def _pod(item: Object, old: Object | None, lookup: Lookup) -> Iterator[Cause]:
    spec = _typed(item, "Pod")
    fill_pod_spec(spec)
    spec.setdefault("serviceAccountName", "default")
    spec.setdefault("serviceAccount", spec["serviceAccountName"])
    if old is not None:
        if {**spec, **_mutable(spec)} != {**old["spec"], **_mutable(spec)}:
            words = "Forbidden: pod updates may not change fields other than `spec.containers[*].image`, "
            words += "`spec.initContainers[*].image`, `spec.activeDeadlineSeconds`, `spec.tolerations`"
            yield Cause("FieldValueForbidden", words, "spec")
        return
    item["status"] = {"phase": "Pending", **(item.get("status") or {})}
    name, place = spec["serviceAccountName"], item["metadata"]["namespace"]
    if lookup("serviceaccounts", place, name) is None:
        why = f'error looking up service account {place}/{name}: serviceaccount "{name}" not found'
        raise errors.forbidden("", "pods", item["metadata"]["name"], why)
    yield from _pod_faults(spec, "spec", ("Always", "OnFailure", "Never"))


def _mutable(spec: Object) -> Object:
    """The parts of a pod's spec that may change, for leaving them out of a comparison."""
    return {key: spec.get(key) for key in ("activeDeadlineSeconds", "tolerations", "containers", "initContainers")}


def _job(item: Object, old: Object | None, _: Lookup) -> Iterator[Cause]:
    spec, meta = _typed(item, "Job"), item["metadata"]
    template = spec.setdefault("template", {})
    if not isinstance(template, dict):
        raise _mistyped("Job", "spec.template", "object")
    pod = template.setdefault("spec", {})
    restart = pod.get("restartPolicy")
    fill_pod_spec(pod)
    for field, value in (
        ("parallelism", 1), ("completions", 1), ("backoffLimit", 6), ("completionMode", "NonIndexed"),
        ("suspend", False), ("manualSelector", False), ("podReplacementPolicy", "TerminatingOrFailed"),
    ):  # fmt: skip
        spec.setdefault(field, value)
    for field in ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished"):
        if (number := spec.get(field)) is not None:
            if not isinstance(number, int) or isinstance(number, bool):
                raise _mistyped("Job", f"spec.{field}", "int32")
            if number < 0:
                yield _wrong(f"spec.{field}", number, "must be greater than or equal to 0")
    if old is None:
        own = {
            "batch.kubernetes.io/controller-uid": meta["uid"], "batch.kubernetes.io/job-name": meta["name"],
            "controller-uid": meta["uid"], "job-name": meta["name"],
        }  # fmt: skip
        spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": meta["uid"]}}
        labels = template.setdefault("metadata", {}).setdefault("labels", {})
        labels.update(own)
        meta.setdefault("labels", dict(labels))
        if len(meta["name"]) > 63:
            yield _wrong("spec.template.labels", meta["name"], "must be no more than 63 bytes")
        yield from _pod_faults(pod, "spec.template.spec", ())
        if restart not in ("OnFailure", "Never"):
            choices = 'valid values: "OnFailure", "Never"'
            if restart is None or restart == "Always":
                yield _required("spec.template.spec.restartPolicy", choices)
            else:
                yield _unsupported("spec.template.spec.restartPolicy", restart, ("OnFailure", "Never"))
        return
    for field in ("completions", "selector", "completionMode", "template"):
        # A suspended Job's template may change before it has begun: schedulers of batches do so.
        if spec.get(field) != old["spec"].get(field) and not (field == "template" and old["spec"].get("suspend")):
            given = spec.get(field)
            yield _wrong(f"spec.{field}", given if isinstance(given, int | str) else "object", "field is immutable")


def _typed(item: Object, kind: str) -> Object:
    spec = item.setdefault("spec", {})
    if not isinstance(spec, dict):
        raise _mistyped(kind, "spec", "object")
    return spec


def fill_pod_spec(spec: Object) -> None:
    """The defaults of a pod's spec, which a template in a Job gets too."""
    for field, value in (
        ("restartPolicy", "Always"), ("terminationGracePeriodSeconds", 30), ("dnsPolicy", "ClusterFirst"),
        ("securityContext", {}), ("schedulerName", "default-scheduler"),
    ):  # fmt: skip
        spec.setdefault(field, value)
    for container in _containers(spec):
        image = str(container.get("image", ""))
        latest = ":" not in image.rpartition("/")[2] or image.endswith(":latest")
        container.setdefault("imagePullPolicy", "Always" if latest and "@" not in image else "IfNotPresent")
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        container.setdefault("resources", {})
        for port in container.get("ports") or ():
            port.setdefault("protocol", "TCP")


def _containers(spec: Object) -> list[Object]:
    found = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    if not all(isinstance(container, dict) for container in found):
        raise _mistyped("Pod", "spec.containers", "array of objects")
    return found


def _pod_faults(spec: Object, path: str, restarts: tuple[str, ...]) -> Iterator[Cause]:
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    if not spec.get("containers"):
        yield _required(f"{path}.containers")
    for field in ("containers", "initContainers"):
        names: set[str] = set()
        for index, container in enumerate(spec.get(field) or ()):
            where = f"{path}.{field}[{index}]"
            name = container.get("name", "")
            if not name:
                yield _required(f"{where}.name")
            elif not _LABEL.fullmatch(name):
                yield _wrong(f"{where}.name", name, LABEL_WORDS)
            elif name in names:
                yield Cause("FieldValueDuplicate", f'Duplicate value: "{name}"', f"{where}.name")
            names.add(name)
            if not container.get("image"):
                yield _required(f"{where}.image")
            for at, variable in enumerate(container.get("env") or ()):
                if not variable.get("name"):
                    yield _required(f"{where}.env[{at}].name")
            for at, mount in enumerate(container.get("volumeMounts") or ()):
                if mount.get("name") not in volumes:
                    message = f'Not found: "{mount.get("name", "")}"'
                    yield Cause("FieldValueNotFound", message, f"{where}.volumeMounts[{at}].name")
    if restarts and spec["restartPolicy"] not in restarts:
        yield _unsupported(f"{path}.restartPolicy", spec["restartPolicy"], restarts)


def _definition(item: Object, _old: Object | None, _: Lookup) -> Iterator[Cause]:
    spec = _typed(item, "CustomResourceDefinition")
    names = spec.setdefault("names", {})
    for field in ("plural", "kind"):
        if not names.get(field):
            yield _required(f"spec.names.{field}")
    expected = f"{names.get('plural')}.{spec.get('group')}"
    if item["metadata"]["name"] != expected:
        yield _wrong("metadata.name", item["metadata"]["name"], 'must be spec.names.plural+"."+spec.group')
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        yield _unsupported("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced"))
    versions = spec.get("versions") or []
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield _wrong("spec.versions", "object", "must have exactly one version marked as storage version")
    for index, version in enumerate(versions):
        if "openAPIV3Schema" not in (version.get("schema") or {}):
            yield _required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required")
    names.setdefault("singular", str(names.get("kind", "")).lower())
    names.setdefault("listKind", f"{names.get('kind', '')}List")
    spec.setdefault("conversion", {"strategy": "None"})


_RULES: dict[str, Callable[[Object, Object | None, Lookup], Iterator[Cause]]] = {
    "namespaces": _namespace,
    "secrets": _secret,
    "configmaps": _config_map,
    "events": _event,
    "leases.coordination.k8s.io": _lease,
    f"roles.{_RBAC}": _role,
    f"clusterroles.{_RBAC}": _role,
    f"rolebindings.{_RBAC}": _binding,
    f"clusterrolebindings.{_RBAC}": _binding,
    "pods": _pod,
    "jobs.batch": _job,
    "customresourcedefinitions.apiextensions.k8s.io": _definition,
}
