"""Who calls."""

import pytest

from mcptasks_crds.names import owner_key
from mcptasks_crds.task import Owner
from mcptasks_service.callers import ANYONE, anonymous


@pytest.mark.req("R-9.1")
def test_without_identity_a_task_belongs_to_its_session() -> None:
    caller = anonymous("s")
    assert caller.owner == Owner(session="s")
    assert caller.keys == (owner_key(Owner(session="s")), owner_key(ANYONE))
    assert (caller.key, caller.session, caller.identified) == (owner_key(Owner(session="s")), "s", False)


@pytest.mark.parametrize("session", [None, ""])
def test_without_a_session_a_caller_has_only_the_ids_it_holds(session: str | None) -> None:
    caller = anonymous(session)
    assert caller.owner == ANYONE
    assert caller.keys == (owner_key(ANYONE),)
    assert caller.session == ""
