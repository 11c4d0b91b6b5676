"""Who calls, and which tasks that lets them see."""

from dataclasses import dataclass

from mcptasks_crds.names import owner_key
from mcptasks_crds.task import Owner

ANYONE = Owner()


@dataclass(frozen=True, slots=True)
class Caller:
    """One caller. Without identity a SEP-1686 task belongs to its session (R-9.1); the ids that the service makes for
    the later dialects have 128 random bits and are the key themselves, so that they survive a reconnect."""

    owner: Owner
    """What a task with an id of the requestor's own choice belongs to."""
    keys: tuple[str, ...]
    """The owner keys under which the caller may find tasks, its own first."""
    identified: bool
    """Whether somebody vouches for the caller."""
    session: str
    """The MCP session's id; empty where the era has none."""

    @property
    def key(self) -> str:
        """The caller's own owner key, which its limits count under."""
        return self.keys[0]


def anonymous(session: str | None) -> Caller:
    """A caller whom nobody vouches for: its session, if there is one, and every id it holds."""
    if not session:
        return Caller(owner=ANYONE, keys=(owner_key(ANYONE),), identified=False, session="")
    owner = Owner(session=session)
    return Caller(owner=owner, keys=(owner_key(owner), owner_key(ANYONE)), identified=False, session=session)
