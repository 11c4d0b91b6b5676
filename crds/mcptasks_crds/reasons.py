"""Why a task is where it is: every value that ``status.reason`` and the conditions can have."""

from enum import StrEnum


class Reason(StrEnum):
    """CamelCase reasons, stable for alerts and selectors. The comment says when each is true."""

    # Waiting.
    CONCURRENCY_LIMIT = "ConcurrencyLimit"  # the tool, or the owner's share of it, is full: first come, first served
    QUOTA_EXCEEDED = "QuotaExceeded"  # the namespace's quota leaves no room for the pod now
    TOOL_NOT_FOUND = "ToolNotFound"  # no MCPTool of that name: the task failed, or, made by hand, still waits for it
    TOOL_INVALID = "ToolInvalid"  # the API server refused the Job that the tool's template makes
    ARGUMENTS_INVALID = "ArgumentsInvalid"  # made by hand, with arguments that the tool does not take: nothing ran
    # Running.
    JOB_CREATED = "JobCreated"  # the Job exists; its pod is on its way
    RUNNING = "Running"  # the pod's tool container runs
    RETRYING = "Retrying"  # an attempt was lost to a disruption, and the tool allows another
    # Ends that the work itself decided.
    SUCCEEDED = "Succeeded"  # exit code 0, or a result reported by the worker
    TOOL_ERROR = "ToolError"  # the result has isError: a non-zero exit, or the worker said so
    CANCELLED = "Cancelled"  # the requestor or an operator of the cluster cancelled it
    # Ends that the work can't be blamed for.
    IMAGE_PULL = "ImagePull"  # the image could not be pulled before the start time-out
    UNSCHEDULABLE = "Unschedulable"  # no node took the pod before the start time-out
    START_ERROR = "StartError"  # the container could not be started: no such program, a missing Secret or volume
    START_TIMEOUT = "StartTimeout"  # nothing ran before the start time-out, for no reason that the pod names
    POD_NOT_CREATED = "PodNotCreated"  # quota, Pod Security or a missing ServiceAccount refused the pod
    OUT_OF_MEMORY = "OutOfMemory"  # the kernel killed it at its memory limit
    DEADLINE_EXCEEDED = "DeadlineExceeded"  # it ran longer than the tool's run time-out
    EVICTED = "Evicted"  # drained, evicted or pre-empted
    NODE_LOST = "NodeLost"  # its node went away and did not come back
    INTERRUPTED = "Interrupted"  # its pod or Job was deleted by somebody else
    RESULT_TOO_LARGE = "ResultTooLarge"  # more than an MCPTaskResult holds
    RESTORED = "Restored"  # restored from a backup: what became of its work can't be told
