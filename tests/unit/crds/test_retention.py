"""How long a task is kept, in the words of each dialect."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptasks_crds.retention import TTL_FLOOR, expires_at, keep_alive, ttl
from mcptasks_crds.task import MILLISECONDS_LIMIT, Retention


def kept(ms: int) -> Retention:
    return Retention(after="Finish", milliseconds=ms)


def from_creation(ms: int) -> Retention:
    return Retention(after="Creation", milliseconds=ms)


@pytest.mark.req("R-5.2")
def test_keep_alive_counts_from_the_end() -> None:
    assert expires_at(kept(60_000), created=100, finished=1000) == 1060
    assert expires_at(kept(0), created=100, finished=1000) == 1000


@pytest.mark.req("R-5.1")
def test_without_a_retention_a_task_is_kept_for_ever() -> None:
    assert expires_at(None, 1, 2) is keep_alive(None, 1, 2) is ttl(None, 1, 2) is None


def test_a_ttl_counts_from_creation() -> None:
    assert expires_at(from_creation(3_600_000), created=100, finished=200) == 3700


@pytest.mark.fault("P17", "E12")
def test_a_ttl_shorter_than_the_run_still_keeps_the_result_after_the_end() -> None:
    assert expires_at(from_creation(30_000), created=0, finished=120) == 150
    assert expires_at(from_creation(90_000), created=0, finished=120) == 120 + TTL_FLOOR


@pytest.mark.fault("P17", "E12")
@given(
    st.sampled_from(["Finish", "Creation"]),
    st.integers(0, MILLISECONDS_LIMIT),
    st.floats(0, 1e9),
    st.floats(0, 1e9),
)
def test_nothing_expires_before_its_end(after: str, ms: int, created: float, run: float) -> None:
    finished = created + run
    end = expires_at(Retention.model_validate({"after": after, "milliseconds": ms}), created, finished)
    assert end is not None
    assert end >= finished


@pytest.mark.req("R-5.1", "R-2.1")
def test_keep_alive_as_sep_1686_shows_it() -> None:
    assert keep_alive(kept(5000), 0, None) == keep_alive(kept(5000), 0, 99) == 5000
    assert keep_alive(from_creation(5000), 0, None) == 5000
    assert keep_alive(from_creation(100_000), created=0, finished=30) == 70_000


def test_a_ttl_as_the_later_dialects_show_it() -> None:
    assert ttl(from_creation(5000), 0, None) == 5000
    assert ttl(kept(5000), 0, None) is None, "not known while it runs"
    assert ttl(kept(5000), created=10, finished=20) == 15_000
    assert ttl(from_creation(1000), created=0, finished=20) == 21_000


@pytest.mark.fault("P19")
@pytest.mark.parametrize("ms", [-1, 1.5, "x", None, float("nan"), float("inf"), 10**18])
def test_a_retention_that_is_no_number_of_milliseconds_is_refused(ms: object) -> None:
    with pytest.raises(ValueError, match="milliseconds"):
        Retention.model_validate({"milliseconds": ms})
