"""What a URL of the Kubernetes API means."""

from dataclasses import dataclass

_TEXT_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


@dataclass(frozen=True, slots=True)
class Target:
    """A collection, an object, or a subresource of one."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def id(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def verb(self, method: str, *, watching: bool) -> str:
        """The verb that RBAC knows this request by."""
        if method in ("GET", "HEAD"):
            return "watch" if watching else ("get" if self.name else "list")
        if method == "DELETE" and not self.name:
            return "deletecollection"
        return _TEXT_VERBS.get(method, method.lower())


def target(path: str) -> Target | None:
    """Read /api/v1/… and /apis/GROUP/VERSION/… below the version; None for anything else."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2:
        group, version, rest = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        return None
    namespace = ""
    # /namespaces/NAME and its subresources are the namespace itself; one more part is something inside of it.
    if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    return Target(group, version, plural, namespace, name, subresource)
