"""The end of a container's log."""

from mcptasks_crds.api import Api
from mcptasks_crds.errors import ApiFailure
from mcptasks_operator.observe import PodState
from mcptasks_operator.outcome import Log

FIRST_LINES = 64


async def tail(api: Api, pod: PodState, limit: int) -> Log | None:
    """The last ``limit`` bytes of what the tool's container printed; None if the log is gone.

    Kubernetes has no tail in bytes (``limitBytes`` keeps the first ones), so lines are asked for, more each time. A
    kubelet rotates a log at 10 MiB and serves the newest file alone: what was cut there can't be known.

    Raises:
        ApiFailure: it can't be read now.
    """
    lines, size = FIRST_LINES, -1
    while True:
        try:
            data = await api.log(pod.namespace, pod.name, pod.container, tail_lines=lines)
        except ApiFailure as error:
            if error.retryable:
                raise
            return None
        if len(data) >= limit or len(data) == size:
            return Log(_whole(data[-limit:]), True) if len(data) > limit else Log(data)
        lines, size = lines * 8, len(data)


def _whole(data: bytes) -> bytes:
    """Without the rest of a character that the cut has halved."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:]
