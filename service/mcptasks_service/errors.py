"""What the use cases refuse, in words fit for the wire; `wire_errors` gives each its JSON-RPC code."""

from mcptasks_crds.lifecycle import State


class ServiceError(Exception):
    """The root: ``str()`` of every one of these may be shown to a client."""


class TaskNotFound(ServiceError):
    """No such task for this caller: unknown, expired, or somebody else's, all in the same words (R-2.6, R-9.1)."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"Task not found: {shown(task_id)} is unknown or has expired")
        self.task_id = task_id


class TaskExists(ServiceError):
    """The id is used; nothing was created and nothing runs twice (R-1.6)."""

    def __init__(self, task_id: str) -> None:
        super().__init__(f"Task already exists: {shown(task_id)}; poll it with tasks/get, or choose another taskId")
        self.task_id = task_id


class ResultNotReady(ServiceError):
    """The result of a task that is not completed (R-2.2)."""

    def __init__(self, task_id: str, state: State) -> None:
        super().__init__(f"Task {shown(task_id)} is {state}; it has a result only when it is completed")
        self.task_id, self.state = task_id, state


class TaskEnded(ServiceError):
    """Something was asked of a task that has already ended."""

    def __init__(self, task_id: str, state: State) -> None:
        super().__init__(f"Task {shown(task_id)} has already ended: it is {state}")
        self.task_id, self.state = task_id, state


class ToolNotFound(ServiceError):
    """No MCPTool of that name is offered here."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Unknown tool: {shown(name)}; see tools/list")
        self.name = name


class InvalidParams(ServiceError):
    """A parameter is missing or not what it must be; the text names it and its value."""


class ArgumentsInvalid(InvalidParams):
    """The arguments do not fit the tool's input schema, or can't be carried to its Job."""


class LimitExceeded(ServiceError):
    """A limit refused the request; nothing was created.

    Attributes:
        reason: which limit, as in the metrics: creations, polls, open_tasks, tool_rate.
        limit: the limit itself, as it is configured: ``60/minute`` or ``100``.
        retry_after_ms: when it is worth trying again, in milliseconds.
    """

    def __init__(self, message: str, reason: str, limit: str, retry_after_ms: int) -> None:
        super().__init__(message)
        self.reason, self.limit, self.retry_after_ms = reason, limit, retry_after_ms


class Unavailable(ServiceError):
    """The Kubernetes API can't be reached or is overloaded: the same request may succeed soon."""


def shown(value: str, most: int = 80) -> str:
    """A client's text in an error, quoted, and shortened so that 10 KB don't come back."""
    return repr(value if len(value) <= most else f"{value[:most]}…")
