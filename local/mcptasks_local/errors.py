"""What the control plane refuses, in the words of the Kubernetes API: one error, one constructor for each reason."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from mcptasks_crds.errors import McpTasksError

Object = dict[str, Any]


class Cause(NamedTuple):
    """One fault of one field, as `details.causes` of a Status holds it."""

    reason: str
    message: str
    field: str


class ApiError(McpTasksError):
    """A request that is answered with a Status object.

    Attributes:
        code: the HTTP status.
        reason: the machine's word: ``NotFound``, ``Conflict``, ``Invalid``, …; empty where Kubernetes gives none.
        message: for people.
        details: ``{name, group, kind, uid, causes, retryAfterSeconds}``, whatever is known.
    """

    def __init__(self, code: int, reason: str, message: str, details: Object | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details

    def status(self) -> Object:
        """The Status object that is sent as the body."""
        body: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure"}
        body["message"] = self.message
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        return {**body, "code": self.code}


def named(name: str, group: str, kind: str) -> Object:
    """`details` of one object; empty parts are left out."""
    return {k: v for k, v in {"name": name, "group": group, "kind": kind}.items() if v}


def qualified(kind: str, group: str) -> str:
    return f"{kind}.{group}" if group else kind


def not_found(group: str, plural: str, name: str) -> ApiError:
    message = f'{qualified(plural, group)} "{name}" not found'
    return ApiError(404, "NotFound", message, named(name, group, plural))


def already_exists(group: str, plural: str, name: str) -> ApiError:
    message = f'{qualified(plural, group)} "{name}" already exists'
    return ApiError(409, "AlreadyExists", message, named(name, group, plural))


def conflict(group: str, kind: str, name: str, why: str) -> ApiError:
    message = f'Operation cannot be fulfilled on {qualified(kind, group)} "{name}": {why}'
    return ApiError(409, "Conflict", message, named(name, group, kind))


def modified(group: str, plural: str, name: str) -> ApiError:
    why = "the object has been modified; please apply your changes to the latest version and try again"
    return conflict(group, plural, name, why)


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause]) -> ApiError:
    """422 with its causes; the message lists them all, as Kubernetes words it."""
    faults = [f"{cause.field}: {cause.message}" for cause in causes]
    listed = faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]"
    details = {**named(name, group, kind), "causes": [cause._asdict() for cause in causes]}
    return ApiError(422, "Invalid", f'{qualified(kind, group)} "{name}" is invalid: {listed}', details)


def rejected_patch() -> ApiError:
    """A JSON patch whose `test` failed or whose path is absent: 422 with empty details, as Kubernetes answers."""
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", {})


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def forbidden(group: str, plural: str, name: str, why: str) -> ApiError:
    subject = f'{qualified(plural, group)} "{name}"' if name else qualified(plural, group)
    return ApiError(403, "Forbidden", f"{subject} is forbidden: {why}", named(name, group, plural))


def expired(revision: int, oldest: int) -> ApiError:
    return ApiError(410, "Expired", f"too old resource version: {revision} ({oldest})")


def method_not_allowed() -> ApiError:
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def unsupported_media_type(accepted: Sequence[str]) -> ApiError:
    message = "the body of the request was in an unknown format - accepted media types include: " + ", ".join(accepted)
    return ApiError(415, "UnsupportedMediaType", message)
