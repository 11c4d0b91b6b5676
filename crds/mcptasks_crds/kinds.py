"""Where each kind lives in the Kubernetes API."""

from dataclasses import dataclass

GROUP = "mcptasks.dev"
VERSION = "v1alpha1"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of the Kubernetes API; ``group`` is empty for the core group."""

    group: str
    version: str
    plural: str
    name: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The URL path of the collection (all namespaces if none is given), an object, or its subresource."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part]
        return "/".join(parts)


TASK = Kind(GROUP, VERSION, "mcptasks", "MCPTask")
RESULT = Kind(GROUP, VERSION, "mcptaskresults", "MCPTaskResult")
TOOL = Kind(GROUP, VERSION, "mcptools", "MCPTool")

JOB = Kind("batch", "v1", "jobs", "Job")
POD = Kind("", "v1", "pods", "Pod")
SECRET = Kind("", "v1", "secrets", "Secret")
EVENT = Kind("", "v1", "events", "Event")
NAMESPACE = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
LEASE = Kind("coordination.k8s.io", "v1", "leases", "Lease")
CRD = Kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
TOKEN_REVIEW = Kind("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
