"""How the operator is set up from its environment."""

import pytest
from pydantic import ValidationError

from mcptasks_operator.settings import Settings


def test_namespaces_are_read_with_commas_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPTASKS_NAMESPACES", "team-a, team-b,")
    assert Settings().namespaces == ["team-a", "team-b"]


def test_one_namespace_may_be_named_as_the_service_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPTASKS_NAMESPACE", "team-a")
    assert Settings().namespaces == ["team-a"]


def test_without_namespaces_all_are_served() -> None:
    assert Settings().namespaces == []
    assert Settings(namespaces=["a"]).namespaces == ["a"]


def test_an_empty_lease_name_means_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Settings().lease_name == "mcptasks-operator"
    monkeypatch.setenv("MCPTASKS_LEASE_NAME", "")
    assert Settings().lease_name is None


def test_a_process_that_comes_after_a_killed_one_has_its_name() -> None:
    assert Settings().replica == Settings().replica


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(ValidationError):
        Settings(starts_per_second=0)
