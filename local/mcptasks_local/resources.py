"""The kinds that are served: a table of built-in ones, and those that stored CustomResourceDefinitions add."""

import copy
from dataclasses import dataclass, field

from mcptasks_local.errors import Object

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind in one version.

    Attributes:
        status: whether it has a status subresource.
        fields: field selectors beside metadata.name and metadata.namespace.
        custom: the version's part of its CustomResourceDefinition; None for built-in kinds.
    """

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    status: bool = False
    fields: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    custom: Object | None = field(default=None, compare=False, repr=False)

    @property
    def id(self) -> str:
        """Its name in storage and in messages: ``pods``, ``jobs.batch``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def singular(self) -> str:
        return self.kind.lower()

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"

    @property
    def subresources(self) -> tuple[str, ...]:
        own = {"pods": ("log",), "serviceaccounts": ("token",)}.get(self.id, ())
        return (*(("status",) if self.status else ()), *own)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def schema(self) -> Object | None:
        """The structural schema of a custom kind."""
        if self.custom is None:
            return None
        schema: Object = self.custom["schema"]["openAPIV3Schema"]
        return schema


def _review(group: str, plural: str, kind: str) -> Resource:
    return Resource(group, "v1", plural, kind, namespaced=False, verbs=("create",))


_EVENT_FIELDS = (
    *(f"involvedObject.{name}" for name in ("kind", "namespace", "name", "uid", "apiVersion", "fieldPath")),
    "reason",
    "reportingComponent",
    "type",
)
_POD_FIELDS = ("spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "status.phase", "status.podIP")
_RBAC = "rbac.authorization.k8s.io"

BUILT_IN = (
    Resource("", "v1", "namespaces", "Namespace", False, ("ns",), status=True, fields=("status.phase",)),
    Resource("", "v1", "pods", "Pod", True, ("po",), ("all",), status=True, fields=_POD_FIELDS),
    Resource("", "v1", "secrets", "Secret", fields=("type",)),
    Resource("", "v1", "configmaps", "ConfigMap", True, ("cm",)),
    Resource("", "v1", "events", "Event", True, ("ev",), fields=_EVENT_FIELDS),
    Resource("", "v1", "serviceaccounts", "ServiceAccount", True, ("sa",)),
    Resource("batch", "v1", "jobs", "Job", True, (), ("all",), status=True, fields=("status.successful",)),
    Resource("coordination.k8s.io", "v1", "leases", "Lease"),
    Resource(
        "apiextensions.k8s.io",
        "v1",
        "customresourcedefinitions",
        "CustomResourceDefinition",
        False,
        ("crd", "crds"),
        ("api-extensions",),
        status=True,
    ),
    Resource(_RBAC, "v1", "roles", "Role"),
    Resource(_RBAC, "v1", "rolebindings", "RoleBinding"),
    Resource(_RBAC, "v1", "clusterroles", "ClusterRole", False),
    Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", False),
    _review("authentication.k8s.io", "tokenreviews", "TokenReview"),
    _review("authorization.k8s.io", "subjectaccessreviews", "SubjectAccessReview"),
    _review("authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
)


def of_definition(definition: Object) -> list[Resource]:
    """The kinds that a CustomResourceDefinition adds: one for each version that it serves."""
    spec, names = definition["spec"], definition["spec"]["names"]
    return [
        Resource(
            spec["group"],
            version["name"],
            names["plural"],
            names["kind"],
            spec.get("scope") == "Namespaced",
            tuple(names.get("shortNames") or ()),
            tuple(names.get("categories") or ()),
            status="status" in (version.get("subresources") or {}),
            fields=tuple(selectable["jsonPath"].lstrip(".") for selectable in version.get("selectableFields") or ()),
            custom=version,
        )
        for version in spec["versions"]
        if version.get("served", True)
    ]


def established(definition: Object, now: str) -> Object:
    """A CustomResourceDefinition as it is once its kinds are served."""
    conditions = [
        {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now}
        for kind, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    spec = definition["spec"]
    status = {
        "conditions": conditions,
        "acceptedNames": spec["names"],
        "storedVersions": [version["name"] for version in spec["versions"] if version.get("storage")],
    }
    return {**copy.deepcopy(definition), "status": status}
