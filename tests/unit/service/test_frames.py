"""Messages and events as bytes."""

import json

import pytest
from mcp_types import ErrorData

from mcptasks_service import frames


def test_messages() -> None:
    assert frames.response("a", {"x": 1}) == b'{"jsonrpc":"2.0","id":"a","result":{"x":1}}'
    assert json.loads(frames.failure(None, ErrorData(code=-1, message="m"))) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -1, "message": "m"},
    }
    assert frames.notification("m", None) == b'{"jsonrpc":"2.0","method":"m"}'
    assert frames.notification("m", {}) == b'{"jsonrpc":"2.0","method":"m","params":{}}'


def test_an_event_keeps_what_readers_would_take_for_line_ends() -> None:
    text = "a\u2028b\u2029c\u0085d"
    event = frames.event(json.dumps({"x": text}, ensure_ascii=False).encode()).decode()
    assert event.splitlines()[1:] == [event.split("\r\n")[1], ""]
    assert json.loads(event.split("data: ")[1]) == {"x": text}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_text_over_several_lines_is_one_event(end: str) -> None:
    event = frames.event(f'{{{end} "a": 1{end}}}'.encode()).decode()
    lines = [line.removeprefix("data: ") for line in event.strip().split("\r\n")[1:]]
    assert json.loads("\n".join(lines)) == {"a": 1}


def test_the_priming_event_has_an_id_and_no_data() -> None:
    assert frames.priming("abc") == b"id: abc\r\nretry: 200\r\ndata: \r\n\r\n"
