"""Who may do what: RBAC, from the Roles and bindings that are stored."""

from dataclasses import dataclass

from mcptasks_local.errors import ApiError, Object
from mcptasks_local.identity import User
from mcptasks_local.objects import Objects

_RBAC = "rbac.authorization.k8s.io"


@dataclass(frozen=True, slots=True)
class Attributes:
    """One request, as rules see it; ``resource`` has its subresource behind a slash."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""


class Access:
    """Answers from the present Roles, at each question."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def allowed(self, user: User, asked: Attributes) -> tuple[bool, str]:
        """Whether, and through which binding."""
        if "system:masters" in user.groups:
            return True, ""
        for binding in self._bindings("clusterrolebindings", ""):
            if self._grants(binding, user, asked):
                return True, f'RBAC: allowed by ClusterRoleBinding "{binding["metadata"]["name"]}"'
        for binding in self._bindings("rolebindings", asked.namespace) if asked.namespace else ():
            if self._grants(binding, user, asked):
                name = f"{binding['metadata']['name']}/{asked.namespace}"
                return True, f'RBAC: allowed by RoleBinding "{name}"'
        return False, ""

    def review(self, spec: Object) -> Object:
        """The status of a SubjectAccessReview.

        Raises:
            ApiError: 422, neither a user nor a group is named.
        """
        if not spec.get("user") and not spec.get("groups"):
            raise ApiError(422, "Invalid", "spec.user: Required value: at least one of user or group must be specified")
        asked = spec.get("resourceAttributes") or {}
        resource = "/".join(part for part in (asked.get("resource", ""), asked.get("subresource", "")) if part)
        allowed, reason = self.allowed(
            User(spec.get("user", ""), tuple(spec.get("groups") or ())),
            Attributes(
                asked.get("verb", ""),
                asked.get("group", ""),
                resource,
                asked.get("namespace", ""),
                asked.get("name", ""),
            ),
        )
        return {"allowed": allowed, **({"reason": reason} if reason else {})}

    def _bindings(self, plural: str, namespace: str) -> list[Object]:
        return self._objects.list(self._objects.resource(f"{plural}.{_RBAC}"), namespace or None)[0]

    def _grants(self, binding: Object, user: User, asked: Attributes) -> bool:
        if not any(_subject_is(subject, user) for subject in binding.get("subjects") or ()):
            return False
        reference = binding["roleRef"]
        plural = "clusterroles" if reference["kind"] == "ClusterRole" else "roles"
        namespace = "" if plural == "clusterroles" else binding["metadata"]["namespace"]
        try:
            role = self._objects.get(self._objects.resource(f"{plural}.{_RBAC}"), namespace, reference["name"])
        except ApiError:
            return False
        return any(_rule_allows(rule, asked) for rule in role.get("rules") or ())


def _subject_is(subject: Object, user: User) -> bool:
    if subject["kind"] == "ServiceAccount":
        return user.name == f"system:serviceaccount:{subject.get('namespace', '')}:{subject['name']}"
    if subject["kind"] == "Group":
        return subject["name"] in user.groups
    return bool(subject["name"] == user.name)


def _rule_allows(rule: Object, asked: Attributes) -> bool:
    def has(field: str, value: str) -> bool:
        return "*" in rule.get(field, ()) or value in rule.get(field, ())

    names = rule.get("resourceNames") or ()
    return (
        has("verbs", asked.verb)
        and has("apiGroups", asked.group)
        and has("resources", asked.resource)
        and (not names or asked.name in names)
    )
