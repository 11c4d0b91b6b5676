"""Derived names: the same for the same task, and never the same for two."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptasks_crds.names import (
    TASK_NAME_PATTERN,
    call_hash,
    job_name,
    owner_hash,
    owner_key,
    result_name,
    session_hash,
    task_name,
)
from mcptasks_crds.task import Owner

IDS = ["", "a", "A", "a ", "\0", "a\0b", "日本語 😀", "\ud800", "x" * 1024, "x" * 1025, "../..", "'; --", "a\nb"]

part = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
owners = st.one_of(
    st.just(Owner()),
    st.builds(Owner, session=part),
    st.builds(Owner, subject=part),
    st.builds(Owner, issuer=part, subject=part),
)


@pytest.mark.parametrize("task_id", IDS)
def test_a_task_name_is_a_name_that_kubernetes_takes_whatever_the_id(task_id: str) -> None:
    name = task_name("", task_id)
    assert re.fullmatch(TASK_NAME_PATTERN, name)
    assert name == task_name("", task_id)


@pytest.mark.req("R-1.6", "R-9.1")
def test_other_ids_and_other_owners_have_other_names() -> None:
    keys = [owner_key(o) for o in (Owner(), Owner(session="s"), Owner(subject="s"), Owner(issuer="i", subject="s"))]
    names = {task_name(key, task_id) for key, task_id in itertools.product(keys, IDS)}
    assert len(names) == len(keys) * len(IDS)


@pytest.mark.req("R-9.1")
@pytest.mark.fault("P6")
@given(owners, owners)
def test_two_owners_never_share_a_key(one: Owner, other: Owner) -> None:
    assert (owner_key(one) == owner_key(other)) is (one == other)


@pytest.mark.req("R-9.1")
@given(owners, owners, st.text(max_size=6), st.text(max_size=6))
def test_owners_with_a_known_key_never_share_a_name_through_their_ids(
    one: Owner, other: Owner, id_of_one: str, id_of_other: str
) -> None:
    if Owner() in (one, other):
        return  # its ids are made here; a made-up one is the next test's
    same_name = task_name(owner_key(one), id_of_one) == task_name(owner_key(other), id_of_other)
    assert same_name is ((one, id_of_one) == (other, id_of_other))


def test_an_id_made_up_without_an_owner_can_lead_to_anothers_name() -> None:
    """Why a look-up compares owner key and id, and does not trust the name."""
    theirs = task_name(owner_key(Owner(subject="alice")), "build")
    assert task_name(owner_key(Owner()), "alice\0build") == theirs


@pytest.mark.parametrize("field", ["issuer", "subject", "session"])
@pytest.mark.parametrize("value", ["", "\0", "a\0b", "\0a"])
def test_an_owner_with_an_empty_part_or_a_nul_is_refused(field: str, value: str) -> None:
    with pytest.raises(ValueError, match=field):
        Owner.model_validate({field: value})


def test_an_owner_hash_is_a_label_value_that_does_not_tell_the_owner() -> None:
    key = owner_key(Owner(issuer="https://id.example", subject="alice"))
    assert re.fullmatch(r"[0-9a-f]{32}", owner_hash(key))
    assert "alice" not in owner_hash(key)
    assert owner_hash(owner_key(Owner())) == "anyone"


def test_the_names_of_what_belongs_to_a_task_fit_kubernetes() -> None:
    uid = "9f0b2d2e-6f5e-4d3e-9c39-0f6a4b7d9c11"
    assert len(job_name(uid, 11)) <= 63
    assert job_name(uid, 1) != job_name(uid, 2)
    assert uid in result_name(uid)


@pytest.mark.req("R-7.1")
def test_a_call_is_found_by_session_and_request_with_an_echoed_id_as_text_or_number() -> None:
    assert call_hash("s", 7) == call_hash("s", "7")
    assert call_hash("s", 0) == call_hash("s", "0") != call_hash("s", "")
    assert len({call_hash("s", 7), call_hash("t", 7), call_hash("s", 8), call_hash("\ud800", 7)}) == 4
    assert call_hash("s", 7).startswith(f"{session_hash('s')}.")
    assert re.fullmatch(r"[0-9a-f.]{1,63}", call_hash("s" * 5000, "x" * 5000)), "a label value"
