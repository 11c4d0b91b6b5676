"""One request on its way through the SDK."""

import anyio
import pytest
from mcp.shared.exceptions import NoBackChannelError

from mcptasks_crds.names import call_hash
from mcptasks_service.callers import anonymous
from mcptasks_service.exchange import Exchange


def exchange(params: dict[str, object] | None = None) -> Exchange:
    return Exchange(headers={}, modern=False, caller=anonymous("s"), request_id=1, params=params)


async def test_a_client_is_asked_nothing() -> None:
    with pytest.raises(NoBackChannelError):
        await exchange().send_raw_request("elicitation/create", {})


async def test_progress_goes_to_who_gave_a_token() -> None:
    sink, events = anyio.create_memory_object_stream[bytes](8)
    silent, told = exchange(), exchange({"_meta": {"progressToken": "p"}})
    silent.sink = told.sink = sink
    await silent.progress(1)
    await told.progress(1, 0, "")
    await sink.aclose()
    async with events:
        assert [event async for event in events] == [
            b'event: message\r\ndata: {"jsonrpc":"2.0","method":"notifications/progress",'
            b'"params":{"progressToken":"p","progress":1,"total":0,"message":""}}\r\n\r\n'
        ]


async def test_what_can_not_be_sent_is_dropped() -> None:
    await exchange().notify("x", None)
    sink, events = anyio.create_memory_object_stream[bytes](0)
    closed = exchange()
    closed.sink = sink
    await events.aclose()
    await closed.notify("x", None)
    await sink.aclose()


@pytest.mark.req("R-7.1")
def test_a_request_is_known_by_its_session_and_id_also_when_that_is_zero() -> None:
    zero = Exchange(headers={}, modern=False, caller=anonymous("s"), request_id=0, params=None)
    assert zero.call == call_hash("s", 0)
    assert exchange().call == call_hash("s", 1) != call_hash("other", 1)
