import json
from typing import Any

import pytest

from mcptasks_crds.reasons import Reason
from mcptasks_operator.outcome import Log, outcome, wants_log


def text_of(result: str) -> str:
    (block,) = json.loads(result)["content"]
    assert block["type"] == "text"
    text: str = block["text"]
    return text


def test_the_log_of_a_program_that_ended_well_is_its_result() -> None:
    got = outcome(0, "", Log(b"one\ntwo\n"))
    assert json.loads(got.text) == {"content": [{"type": "text", "text": "one\ntwo\n"}], "isError": False}
    assert (got.is_error, got.reason, got.message) == (False, Reason.SUCCEEDED, "two")


@pytest.mark.req("R-3.5")
def test_an_exit_code_is_a_result_that_says_error() -> None:
    got = outcome(3, "", Log(b"trying\nno such host\n\n"))
    assert json.loads(got.text)["isError"] is True
    assert (got.is_error, got.reason, got.message) == (True, Reason.TOOL_ERROR, "exit code 3: no such host")


def test_what_was_cut_is_said() -> None:
    text = text_of(outcome(0, "", Log(b"the end", cut=True)).text)
    assert text == "[cut: only the last 7 bytes of the output follow]\nthe end"


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert text_of(outcome(0, "", Log(b"\xff\xfe ok \x00")).text) == "\ufffd\ufffd ok \x00"


def test_silence_and_a_lost_log_are_said() -> None:
    assert text_of(outcome(0, "", Log(b"")).text) == "exit code 0; it printed nothing"
    got = outcome(2, "", None)
    assert text_of(got.text) == "exit code 2; its output was gone before it could be read"
    assert got.message == "exit code 2"


def test_a_termination_message_goes_before_the_log() -> None:
    got = outcome(0, "42", Log(b"much noise"))
    assert (text_of(got.text), got.message) == ("42", "42")


def test_a_whole_tool_result_in_the_termination_message_is_taken_exactly() -> None:
    message = '{ "content": [{"type":"text","text":"caf\\u00e9"}], "structuredContent": {"n": 1.0} }'
    got = outcome(0, message, None)
    assert got.text == message
    assert (got.is_error, got.message) == (False, "café")
    failed = outcome(0, '{"content": [], "isError": true}', None)
    assert (failed.is_error, failed.message) == (True, "")


def test_a_tool_result_of_a_program_that_failed_says_error() -> None:
    got = outcome(3, '{"content": [{"type": "text", "text": "half \\ud83d"}]}', None)
    assert json.loads(got.text)["isError"] is True
    assert got.message == "exit code 3: half ?"
    got.text.encode()


@pytest.mark.parametrize(
    "message",
    [
        '{"content": "text"}',
        '{"content": [1]}',
        '{"content": [{"text": "no type"}]}',
        '{"content": [], "isError": "no"}',
        '{"content": [], "n": NaN}',
        "[" * 5000,
        "[]",
        "{",
    ],
)
def test_what_is_no_tool_result_is_text(message: str) -> None:
    assert text_of(outcome(0, message, None).text) == message


def test_a_tool_result_printed_into_the_log_is_text() -> None:
    printed = b'{"content": []}'
    assert text_of(outcome(0, "", Log(printed)).text) == printed.decode()


@pytest.mark.parametrize("log", [b'first\n{"content": []}\n', b'{"content": []}'])
def test_a_logs_end_that_the_kubelet_put_as_message_is_not_taken_for_one(log: bytes) -> None:
    got = outcome(1, '{"content": []}', Log(log), log_as_message=True)
    assert text_of(got.text) == log.decode()


def test_a_message_of_a_failed_program_that_is_not_its_logs_end_counts() -> None:
    assert text_of(outcome(1, "disk full", Log(b"noise"), log_as_message=True).text) == "disk full"
    assert text_of(outcome(1, "the log's end", None, log_as_message=True).text) == "the log's end"


def test_a_long_last_line_is_shortened_in_the_message_alone() -> None:
    got = outcome(0, "", Log(b"x" * 500))
    assert got.message == "x" * 200 + "…"
    assert len(text_of(got.text)) == 500


def test_half_a_surrogate_pair_does_no_harm() -> None:
    got = outcome(0, "a\ud800b", None)
    got.text.encode()
    assert got.message == "a?b"


@pytest.mark.parametrize(
    ("code", "message", "fallback", "wanted"),
    [(0, "", True, True), (0, "m", True, False), (1, "m", False, False), (1, "m", True, True), (1, "", False, True)],
)
def test_the_log_is_read_only_where_it_counts(code: int, message: str, fallback: bool, wanted: bool) -> None:
    arguments: dict[str, Any] = {"log_as_message": fallback}
    assert wants_log(code, message, **arguments) is wanted
