"""Settings."""

import pytest

from mcptasks_service.settings import Settings


def test_a_setting_comes_from_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCPTASKS_POLLS", "7/second")
    monkeypatch.setenv("MCPTASKS_OPEN_TASKS", "3")
    monkeypatch.setenv("MCPTASKS_ALLOWED_HOSTS", '["localhost:*"]')
    settings = Settings()
    assert (settings.polls, settings.open_tasks, settings.allowed_hosts) == ("7/second", 3, ["localhost:*"])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("POLLS", "many"),
        ("CREATIONS", "0/minute"),
        ("OPEN_TASKS", "0"),
        ("PORT", "70000"),
        ("ARGUMENT_LIMIT", "2000000"),
        ("IDENTITY", "guess"),
    ],
)
def test_a_setting_that_makes_no_sense_is_refused_by_name(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"MCPTASKS_{name}", value)
    with pytest.raises(ValueError, match=name.lower()):
        Settings()


def test_keys_are_not_printed() -> None:
    assert "secret" not in repr(Settings.model_validate({"signing_keys": ["secret" * 8]}))


def test_every_setting_is_described() -> None:
    assert all(field.description for field in Settings.model_fields.values())
