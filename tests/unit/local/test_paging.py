from typing import Any

import pytest

from mcptasks_local.errors import ApiError
from mcptasks_local.objects import Objects
from mcptasks_local.paging import page
from mcptasks_local.storage import Storage
from tests.unit.local.widgets import new_objects, widget


def filled(count: int, storage: Storage | None = None) -> Objects:
    objects = new_objects(storage)
    for n in range(count):
        objects.create(objects.resource("widgets.example.dev"), "default", widget(f"w{n}"))
    return objects


def names(items: object) -> list[str]:
    return [item["metadata"]["name"] for item in items]  # type: ignore[attr-defined]


def test_pages_show_the_state_of_the_first_one() -> None:
    objects = filled(5)
    kind = objects.resource("widgets.example.dev")
    first, meta = page(objects, kind, "default", limit=2)
    assert (names(first), meta["remainingItemCount"]) == (["w0", "w1"], 3)
    objects.delete(kind, "default", "w3")
    objects.create(kind, "default", widget("w9"))
    objects.patch(kind, "default", "w4", {"spec": {"size": 7}})
    second, more = page(objects, kind, "default", limit=2, token=meta["continue"])
    third, last = page(objects, kind, "default", limit=2, token=more["continue"])
    assert (names(second), names(third)) == (["w2", "w3"], ["w4"])
    assert third[0]["spec"]["size"] == 3
    assert last == {"resourceVersion": meta["resourceVersion"]}


def test_a_page_that_is_exactly_full_is_the_last() -> None:
    objects = filled(2)
    _, meta = page(objects, objects.resource("widgets.example.dev"), None, limit=2)
    assert "continue" not in meta


def test_what_was_searched_is_not_counted() -> None:
    objects = filled(3)
    items, meta = page(objects, objects.resource("widgets.example.dev"), None, fields="spec.owner=ann", limit=1)
    assert len(items) == 1
    assert "remainingItemCount" not in meta


def test_a_state_that_is_no_longer_known_is_410() -> None:
    objects = filled(4, Storage(None, kept_events=3))
    kind = objects.resource("widgets.example.dev")
    _, meta = page(objects, kind, None, limit=1)
    for n in range(5):
        objects.create(kind, "default", widget(f"x{n}"))
    asked: list[dict[str, Any]] = [{"token": meta["continue"]}, {"exactly": int(meta["resourceVersion"])}]
    for ask in asked:
        with pytest.raises(ApiError) as told:
            page(objects, kind, None, **ask)
        assert (told.value.code, told.value.reason) == (410, "Expired")


@pytest.mark.parametrize("token", ["abc", "e30", "ä", "bnVsbA"])
def test_a_token_that_is_none_is_400(token: str) -> None:
    objects = filled(0)
    with pytest.raises(ApiError, match="invalid continue token") as told:
        page(objects, objects.resource("widgets.example.dev"), None, token=token)
    assert told.value.code == 400
