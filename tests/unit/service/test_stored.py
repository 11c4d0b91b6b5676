"""Stored results on their way out."""

import json

import pytest

from mcptasks_service.stored import Raw, encode, merged, plain, whole


@pytest.mark.req("R-2.2")
@pytest.mark.parametrize("stored", [b'{"content":[],"n":1.50,"big":1e400}', b' {\n "content" : [] }\n', b"{}", b"{ }"])
def test_stored_text_is_not_encoded_again(stored: bytes) -> None:
    body = stored.strip()[1:].lstrip()
    head = b'{"_meta":{"a":1}'
    assert merged(stored, {"_meta": {"a": 1}}) == (head + b"}" if body == b"}" else head + b"," + body)
    assert merged(stored, {}) == stored.strip()


def test_a_results_own_meta_stays_beside_ours() -> None:
    stored = b'{"content":[],"_meta":{"own":1,"both":"theirs"},"resultType":"x"}'
    added = {"resultType": "complete", "_meta": {"both": "ours"}}
    assert json.loads(merged(stored, added)) == {
        "content": [],
        "resultType": "complete",
        "_meta": {"own": 1, "both": "ours"},
    }
    assert json.loads(merged(b'{"a":"\\"_meta\\"","_meta":null}', {"resultType": "complete"})) == {
        "a": '"_meta"',
        "_meta": None,
        "resultType": "complete",
    }


def test_an_object_may_hold_stored_text() -> None:
    assert encode({"a": 1, "result": Raw(b'{"n":1.50}'), "b": None}) == b'{"result":{"n":1.50},"a":1,"b":null}'
    assert encode({"result": Raw(b"{}")}) == b'{"result":{}}'
    assert encode(whole(b'{"n":1.50}')) == b'{"n":1.50}'
    assert encode({"a": [1, "ü"]}) == '{"a":[1,"ü"]}'.encode()


def test_half_a_surrogate_pair_goes_out_as_its_escape() -> None:
    assert plain({"id": "\ud800"}) == b'{"id": "\\ud800"}'
