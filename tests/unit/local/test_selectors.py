import pytest

from mcptasks_local.errors import ApiError
from mcptasks_local.selectors import by_fields, by_labels

LABELS = {"app": "web", "tier": "back", "example.dev/n": "5"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [("", True), ("app=web", True), ("app==web", True), ("app=x", False), ("app!=web", False), ("nope!=web", True),
     ("app", True), ("nope", False), ("!app", False), ("!nope", True), ("app in (web,x)", True), ("app in (x)", False),
     ("app notin (x, y)", True), ("app notin (web)", False), ("nope notin (web)", True), ("nope in (web)", False),
     ("app=web,tier=back", True), ("app=web,tier=front", False), ("example.dev/n>4", True), ("example.dev/n<4", False),
     ("app>4", False), ("app=", False), ("nope=", False), (" app = web , tier in ( back ) ", True)],
)  # fmt: skip
def test_label_selectors(text: str, matches: bool) -> None:
    assert by_labels(text)({"metadata": {"labels": LABELS}}) == matches


@pytest.mark.parametrize("text", ["a===b", "a in b", "a in", "=b", "a b", "a=b,", "a=(", "!", "a~b=c"])
def test_label_selectors_that_cannot_be_read(text: str) -> None:
    with pytest.raises(ApiError) as told:
        by_labels(text)
    assert told.value.code == 400


@pytest.mark.parametrize(
    ("text", "matches"),
    [("", True), ("status.phase=Running", True), ("status.phase==Running", True), ("status.phase!=Running", False),
     ("metadata.name=p,status.phase=Running", True), ("spec.hostNetwork=true", True), ("spec.count=3", True),
     ("spec.nope=", True), ("spec.nope!=x", True), ("status.phase=", False)],
)  # fmt: skip
def test_field_selectors(text: str, matches: bool) -> None:
    item = {"metadata": {"name": "p"}, "spec": {"hostNetwork": True, "count": 3}, "status": {"phase": "Running"}}
    supported = ("metadata.name", "status.phase", "spec.hostNetwork", "spec.count", "spec.nope")
    assert by_fields(text, supported)(item) == matches


@pytest.mark.parametrize(
    ("text", "said"), [("spec.foo=3", "field label not supported: spec.foo"), ("bogus", "can't understand 'bogus'")]
)
def test_field_selectors_that_are_refused(text: str, said: str) -> None:
    with pytest.raises(ApiError, match=said) as told:
        by_fields(text, ("metadata.name",))
    assert told.value.code == 400


def test_a_path_through_something_else_is_empty() -> None:
    assert by_fields("a.b.c=", ("a.b.c",))({"a": "text", "metadata": {}})
