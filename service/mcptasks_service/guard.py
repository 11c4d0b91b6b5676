"""What a request's headers must be before its body is read."""

from collections.abc import Mapping, Sequence


def foreign(headers: Mapping[str, str], allowed_hosts: Sequence[str], allowed_origins: Sequence[str]) -> str | None:
    """Why a request must be refused: a web page that this server does not know made the browser send it.

    A page can point its own name at 127.0.0.1, so on a laptop the Host is checked too. None = it is fine.
    """
    host, origin = headers.get("host", ""), headers.get("origin")
    if allowed_hosts and not _among(host, allowed_hosts):
        return f"Host {host[:80]!r} is not served here (MCPTASKS_ALLOWED_HOSTS)"
    if origin is not None and not _among(origin, allowed_origins):
        return f"Origin {origin[:80]!r} may not call this server (MCPTASKS_ALLOWED_ORIGINS)"
    return None


def _among(value: str, allowed: Sequence[str]) -> bool:
    """Whether a value is allowed; ``localhost:*`` allows any port, and none."""
    name, _, port = value.rpartition(":")
    return value in allowed or any(
        pattern.endswith(":*") and (value == pattern[:-2] or (name == pattern[:-2] and port.isdecimal()))
        for pattern in allowed
    )


def accepts(headers: Mapping[str, str]) -> tuple[bool, bool]:
    """Whether the client takes JSON, and whether it takes a stream of events."""
    kinds = {part.partition(";")[0].strip().lower() for part in headers.get("accept", "*/*").split(",")}
    anything = "*/*" in kinds
    return (
        anything or not kinds.isdisjoint(("application/json", "application/*")),
        anything or not kinds.isdisjoint(("text/event-stream", "text/*")),
    )


def is_json(headers: Mapping[str, str]) -> bool:
    """Whether the body is said to be JSON."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
