"""Times and durations on the wire."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptasks_crds.errors import InvalidValue
from mcptasks_crds.times import DURATION_PATTERN, RATE_PATTERN, milliseconds, parse, render, seconds


def test_a_time_is_written_in_utc_with_milliseconds_and_a_z() -> None:
    assert render(0) == "1970-01-01T00:00:00.000Z"
    assert render(1_785_240_000.1234) == "2026-07-28T12:00:00.123Z"


@given(st.integers(min_value=0, max_value=10_000_000_000_000))
def test_a_written_time_is_read_back_to_the_millisecond(ms: int) -> None:
    assert parse(render(ms / 1000)) == pytest.approx(ms / 1000, abs=0.0011)


@pytest.mark.fault("P19")
def test_a_time_after_the_last_that_rfc_3339_can_write_becomes_that_last_one() -> None:
    assert render(2**53) == render(1e20) == "9999-12-31T23:59:59.000Z"


@pytest.mark.parametrize(
    "text",
    ["2026-07-28T12:00:00Z", "2026-07-28T14:00:00+02:00", "2026-07-28T12:00:00", "2026-07-28T12:00:00.000000Z"],
)
def test_every_form_of_a_time_is_read(text: str) -> None:
    assert parse(text) == 1_785_240_000


@pytest.mark.parametrize("text", ["", "now", "2026-13-01T00:00:00Z", "12:00", "2026-07-28T12:00:61Z"])
def test_what_is_no_time_is_refused_with_its_value(text: str) -> None:
    with pytest.raises(InvalidValue, match=re.escape(repr(text))):
        parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0s", 0), ("500ms", 500), ("90s", 90_000), ("1h30m", 5_400_000), ("7d", 604_800_000), ("1m1ms", 60_001)],
)
def test_a_duration_is_read(text: str, expected: int) -> None:
    assert milliseconds(text) == expected
    assert seconds(text) == expected / 1000
    assert re.search(DURATION_PATTERN, text)


@pytest.mark.parametrize("text", ["", "1", "s", "1 h", "-1s", "1.5h", "1h\n", "١s", "1w", "1H"])
def test_what_is_no_duration_is_refused_with_a_form_to_use(text: str) -> None:
    with pytest.raises(InvalidValue, match="1h30m"):
        milliseconds(text)


@pytest.mark.parametrize(
    ("rate", "fits"), [("60/minute", True), ("1/day", True), ("0/minute", False), ("5/week", False)]
)
def test_a_rate_has_one_form(rate: str, fits: bool) -> None:
    assert bool(re.search(RATE_PATTERN, rate)) is fits
