"""Who may do what: RBAC, from the Roles and bindings that are stored."""

from dataclasses import dataclass

from mcptasks_local.errors import ApiError, Cause, Object, invalid
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
            if subject := self._grants(binding, user, asked):
                return True, _granted("ClusterRoleBinding", binding["metadata"]["name"], binding, subject)
        for binding in self._bindings("rolebindings", asked.namespace) if asked.namespace else ():
            if subject := self._grants(binding, user, asked):
                name = f"{binding['metadata']['name']}/{asked.namespace}"
                return True, _granted("RoleBinding", name, binding, subject)
        return False, ""

    def review(self, spec: Object) -> Object:
        """The status of a SubjectAccessReview.

        Raises:
            ApiError: 422, neither a user nor a group is named.
        """
        if not spec.get("user") and not spec.get("groups"):
            message = 'Invalid value: "": at least one of user or group must be specified'
            raise invalid("authorization.k8s.io", "", "", [Cause("FieldValueInvalid", message, "spec.user")])
        if bool(spec.get("resourceAttributes")) == bool(spec.get("nonResourceAttributes")):
            message = (
                "Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified"
            )
            cause = Cause("FieldValueInvalid", message, "spec.resourceAttributes")
            raise invalid("authorization.k8s.io", "", "", [cause])
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

    def _grants(self, binding: Object, user: User, asked: Attributes) -> Object | None:
        """The subject through which a binding allows it."""
        place = binding["metadata"].get("namespace", "")
        subject = next((s for s in binding.get("subjects") or () if _subject_is(s, user, place)), None)
        if subject is None:
            return None
        reference = binding["roleRef"]
        plural = "clusterroles" if reference["kind"] == "ClusterRole" else "roles"
        try:
            resource = self._objects.resource(f"{plural}.{_RBAC}")
            role = self._objects.get(resource, "" if plural == "clusterroles" else place, reference["name"])
        except ApiError:
            return None
        return subject if any(_rule_allows(rule, asked) for rule in role.get("rules") or ()) else None


def _granted(kind: str, name: str, binding: Object, subject: Object) -> str:
    role, who = binding["roleRef"], subject["name"]
    if subject["kind"] == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or binding['metadata'].get('namespace', '')}"
    return f'RBAC: allowed by {kind} "{name}" of {role["kind"]} "{role["name"]}" to {subject["kind"]} "{who}"'


def _subject_is(subject: Object, user: User, place: str) -> bool:
    if subject["kind"] == "ServiceAccount":
        return user.name == f"system:serviceaccount:{subject.get('namespace') or place}:{subject['name']}"
    if subject["kind"] == "Group":
        return subject["name"] in user.groups
    return bool(subject["name"] == user.name)


def _rule_allows(rule: Object, asked: Attributes) -> bool:
    def has(field: str, value: str) -> bool:
        return "*" in rule.get(field, ()) or value in rule.get(field, ())

    _, slash, below = asked.resource.partition("/")
    resources = rule.get("resources", ())
    names = rule.get("resourceNames") or ()
    return (
        has("verbs", asked.verb)
        and has("apiGroups", asked.group)
        and (has("resources", asked.resource) or bool(slash and f"*/{below}" in resources))
        and (not names or asked.name in names)
    )
