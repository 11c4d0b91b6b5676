"""Cursors of ``tasks/list``: opaque to clients, and refused unless they are ours (R-2.3)."""

from mcptasks_service.errors import InvalidParams, shown
from mcptasks_service.signing import Signer


class Cursors:
    """Wraps the position that the core gives."""

    def __init__(self, signer: Signer) -> None:
        self._signer = signer

    def wrap(self, position: str | None) -> str | None:
        """The cursor of a position; None, at the end of the list, stays None."""
        return None if position is None else self._signer.sign("cursor", {"p": position})

    def unwrap(self, cursor: object) -> str | None:
        """The position of a cursor as a request carries it; None = from the start.

        Raises:
            InvalidParams: it is not one that we gave.
        """
        if cursor is None:
            return None
        claims = self._signer.verify("cursor", cursor) if isinstance(cursor, str) else None
        if claims is None:
            raise InvalidParams(f"Invalid cursor: {shown(str(cursor))}; use a nextCursor as it came, or none")
        return str(claims["p"])
