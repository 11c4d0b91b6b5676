import pytest

from mcptasks_crds.api import Api
from mcptasks_crds.errors import ApiFailure, Refused
from mcptasks_operator.logs import FIRST_LINES, tail
from mcptasks_operator.outcome import Log

from .cluster import FakeApi
from .objects import pod


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


async def last(api: FakeApi, limit: int = 100) -> Log | None:
    real: Api = api  # type: ignore[assignment]
    return await tail(real, pod(), limit)


async def test_a_short_log_is_read_whole(api: FakeApi) -> None:
    api.logs["pod-1-1"] = b"one\ntwo\n"
    assert await last(api) == Log(b"one\ntwo\n")


async def test_an_empty_log_is_empty(api: FakeApi) -> None:
    api.logs["pod-1-1"] = b""
    assert await last(api) == Log(b"")


async def test_a_long_log_is_cut_at_its_beginning(api: FakeApi) -> None:
    api.logs["pod-1-1"] = b"".join(b"%d\n" % n for n in range(10_000))
    got = await last(api)
    assert got is not None
    assert got.cut
    assert len(got.data) == 100
    assert got.data.endswith(b"9998\n9999\n")


async def test_more_lines_are_asked_for_until_there_is_enough(api: FakeApi) -> None:
    api.logs["pod-1-1"] = b"\n" * 3000
    assert await last(api, 1000) == Log(b"\n" * 1000, cut=True)
    assert api.requests == [f"log pod-1-1/tool {FIRST_LINES * 8**n}" for n in range(3)]


async def test_a_log_of_exactly_the_limit_is_not_cut(api: FakeApi) -> None:
    api.logs["pod-1-1"] = b"x" * 100
    assert await last(api) == Log(b"x" * 100)


async def test_no_character_is_halved_by_the_cut(api: FakeApi) -> None:
    api.logs["pod-1-1"] = "é".encode() * 51
    got = await last(api, 101)
    assert got == Log("é".encode() * 50, cut=True)


async def test_a_log_that_is_gone_is_none(api: FakeApi) -> None:
    assert await last(api) is None
    api.faults["log"] = [Refused(400, "BadRequest", "container is waiting")]
    assert await last(api) is None


async def test_a_kubelet_that_does_not_answer_is_asked_again_later(api: FakeApi) -> None:
    api.faults["log"] = [ApiFailure(500, "InternalError", "dial tcp: i/o timeout")]
    with pytest.raises(ApiFailure):
        await last(api)
