"""The body of a request: read within a limit, parsed once, strictly."""

import json
from typing import Any, NoReturn

from starlette.types import Receive


class BodyTooLarge(Exception):
    """The body is over the limit."""


class NotJSON(Exception):
    """The body is no JSON; ``str()`` says why, fit for the wire."""


class Disconnected(Exception):
    """The client went away before it had sent its request."""


async def read(receive: Receive, content_length: str | None, limit: int) -> bytes:
    """All of the body.

    Raises:
        BodyTooLarge: seen before more than ``limit`` bytes are held.
        Disconnected
    """
    if content_length is not None and content_length.isdecimal() and int(content_length) > limit:
        raise BodyTooLarge
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise BodyTooLarge
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


def parse(body: bytes) -> Any:
    """JSON as RFC 8259 has it: no NaN, no Infinity, and no name twice in an object, which readers settle differently.

    Raises:
        NotJSON
    """
    try:
        return json.loads(body.decode(), object_pairs_hook=_object, parse_constant=_constant)
    except NotJSON:
        raise
    except json.JSONDecodeError as error:
        raise NotJSON(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except UnicodeDecodeError as error:
        raise NotJSON(f"not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise NotJSON("nested too deeply") from None
    except ValueError:
        raise NotJSON("a number has too many digits") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise NotJSON(f"the name {twice[:80]!r} stands twice in one object")
    return value


def _constant(name: str) -> NoReturn:
    raise NotJSON(f"{name} is no JSON")
