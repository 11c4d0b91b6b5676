"""Encoded sizes, against what a real API server stored and refused."""

import json

import pytest

from mcptasks_crds.sizes import ARGUMENTS_LIMIT, RESULT_LIMIT, stored_size

ETCD = 1_572_864
"""Bytes of a request to etcd at most."""


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("", 2),
        ("abc", 5),
        ("<>&", 20),
        ("\u2028\u2029", 14),
        ('"\\\n', 8),
        ("\x00\x1f", 14),
        ("é", 4),
        ("日", 5),
        ("😀", 6),
        ("\ud800", 5),
    ],
)
def test_each_kind_of_character_takes_what_go_writes(text: str, size: int) -> None:
    assert stored_size(text) == size


@pytest.mark.fault("E8")
@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("a" * 1_500_000, True),
        ("a" * 1_600_000, False),
        ("<" * 260_000, True),
        ("<" * 500_000, False),
        ('"' * 700_000, True),
        ('"' * 900_000, False),
    ],
)
def test_the_size_tells_what_a_real_api_server_stored(text: str, stored: bool) -> None:
    assert (stored_size(text) < ETCD) is stored


@pytest.mark.fault("E8")
def test_arguments_and_result_at_their_limits_fit_far_below_the_store() -> None:
    assert ARGUMENTS_LIMIT + 64 * 1024 < ETCD
    assert RESULT_LIMIT + 64 * 1024 < ETCD


def test_a_result_is_json_inside_json() -> None:
    result = json.dumps({"text": 'a"b\n'})
    assert stored_size(result) == len(json.dumps(result))
