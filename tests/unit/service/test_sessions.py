"""What a session id carries."""

from mcptasks_service.sessions import DAY, Resumption, Session, Sessions, carried_capabilities, carried_info
from mcptasks_service.signing import Signer

SESSION = Session(sid="s", version="2025-11-25", info={"name": "n", "version": "1"}, capabilities={"sampling": {}})


def at(now: float) -> Sessions:
    return Sessions(Signer([b"k" * 32]), days=2, clock=lambda: now)


def test_a_token_is_the_session_until_it_runs_out() -> None:
    token = at(0).token(SESSION)
    assert len(token) < 300
    assert at(2 * DAY - 1).read(token) == SESSION
    assert at(2 * DAY).read(token) is None


def test_an_event_id_is_the_request_and_its_task() -> None:
    what = Resumption(request_id=7, task_id="t", kind="plain")
    event_id = at(0).event_id(SESSION, what)
    assert event_id is not None
    assert at(0).resumption(SESSION, event_id) == what
    other = Session(sid="other", version="", info={}, capabilities={})
    assert at(0).resumption(other, event_id) is None


def test_names_of_sessions_have_128_bits_and_differ() -> None:
    names = {at(0).new_sid() for _ in range(100)}
    assert len(names) == 100
    assert all(len(name) >= 22 for name in names)


def test_large_declarations_are_cut_to_what_fits_a_header() -> None:
    declared = {"elicitation": {"form": {}}, "roots": {}, "experimental": {"x": "y" * 9000}, "sampling": 7}
    assert carried_capabilities(declared) == {"elicitation": {"form": {}}}
    assert carried_capabilities({"elicitation": {"x": "y" * 9000}}) == {"elicitation": {}}
    assert carried_info({"name": "n" * 9000, "icons": []}) == {"name": "n" * 64, "version": ""}
