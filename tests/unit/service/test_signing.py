"""Signed tokens."""

import pytest
from pydantic import SecretStr

from mcptasks_service.cursors import Cursors
from mcptasks_service.errors import InvalidParams
from mcptasks_service.signing import Signer

OLD, NEW = b"o" * 32, b"n" * 32


def test_what_was_signed_is_read_for_its_purpose_alone() -> None:
    signer = Signer([NEW])
    token = signer.sign("session", {"a": "ü\ud800", "n": 1})
    assert signer.verify("session", token) == {"a": "ü\ud800", "n": 1}
    assert signer.verify("event", token) is None


def test_keys_are_rotated() -> None:
    token = Signer([OLD]).sign("session", {})
    assert Signer([NEW, OLD]).verify("session", token) == {}
    assert Signer([NEW]).verify("session", token) is None
    assert Signer([OLD]).verify("session", Signer([NEW, OLD]).sign("session", {})) is None


@pytest.mark.parametrize("token", ["", ".", "a.b", "ü.ü", "a" * 5000, "\ud800.x"])
def test_anything_else_is_nothing(token: str) -> None:
    assert Signer([NEW]).verify("session", token) is None


def test_a_token_that_was_touched_is_nothing() -> None:
    payload, _, mac = Signer([NEW]).sign("session", {"sid": "a"}).partition(".")
    assert Signer([NEW]).verify("session", f"{payload[:-1]}A.{mac}") is None
    assert Signer([NEW]).verify("session", f"{payload}.{'A' * len(mac)}") is None


def test_short_keys_are_refused_and_none_is_replaced_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ValueError, match="32 characters"):
        Signer.of([SecretStr("short")])
    own = Signer.of([])
    assert "MCPTASKS_SIGNING_KEYS" in caplog.text
    assert own.verify("x", own.sign("x", {})) == {}
    assert Signer.of([]).verify("x", own.sign("x", {})) is None


@pytest.mark.req("R-2.3")
def test_cursors_come_back_as_positions() -> None:
    cursors = Cursors(Signer([NEW]))
    cursor = cursors.wrap("12.5 t-abc")
    assert cursor is not None
    assert "t-abc" not in cursor
    assert cursors.unwrap(cursor) == "12.5 t-abc"
    assert (cursors.wrap(None), cursors.unwrap(None)) == (None, None)


@pytest.mark.req("R-2.3")
@pytest.mark.parametrize("cursor", ["", "x", 7, {}, Signer([OLD]).sign("cursor", {"p": "1 a"})])
def test_other_cursors_are_refused(cursor: object) -> None:
    with pytest.raises(InvalidParams, match="Invalid cursor"):
        Cursors(Signer([NEW])).unwrap(cursor)
