"""What can go wrong between us, the kinds and the Kubernetes API: one small tree."""


class McpTasksError(Exception):
    """The root of every error this project raises on purpose; its text is fit for a user."""


class IllegalMove(McpTasksError):
    """A task was asked to go to a state that it can't reach from where it is."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__(f"a task that is {old} cannot become {new}")
        self.old, self.new = old, new


class InvalidValue(McpTasksError):
    """A value that a person or a client gave is not what its field takes."""


class ApiFailure(McpTasksError):
    """The Kubernetes API refused a request, or could not be reached.

    Attributes:
        code: the HTTP status; 0 if no answer came.
        reason: the Status object's ``reason`` (``Conflict``, ``Invalid``, …), or ``Unreachable``.
        causes: the Status object's ``details.causes``.
    """

    def __init__(self, code: int, reason: str, message: str, causes: tuple[dict[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.code, self.reason, self.causes = code, reason, causes

    @property
    def retryable(self) -> bool:
        """True when the same request may succeed later: no answer, overload, a server's own fault.

        403 is not in it, though an API server that has just started answers 403 until its roles are loaded:
        who runs at start-up decides that.
        """
        return self.code == 0 or self.code == 429 or self.code >= 500


class NotFound(ApiFailure):
    """404: no such object."""


class AlreadyExists(ApiFailure):
    """409 on a create: the name is taken."""


class Conflict(ApiFailure):
    """409 on a patch or delete: the object has changed, or is another one, since it was read."""


class Gone(ApiFailure):
    """410: the resourceVersion or the ``continue`` token is too old; list again."""


class Refused(ApiFailure):
    """422 or 400: the API server found the object invalid."""
