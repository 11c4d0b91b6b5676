from typing import Any

import pytest

from mcptasks_local.errors import ApiError
from mcptasks_local.patches import JSON_PATCH, MERGE, STRATEGIC, apply_patch, merge, strategic


def test_merge_patch() -> None:
    before = {"a": {"b": 1, "c": 2}, "l": [1, 2], "x": 1}
    assert merge(before, {"a": {"b": None, "d": {"e": 1}}, "l": [3], "x": {"y": 1}}) == {
        "a": {"c": 2, "d": {"e": 1}}, "l": [3], "x": {"y": 1}}  # fmt: skip
    assert before["a"] == {"b": 1, "c": 2}


CONTAINERS = {"containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]}


@pytest.mark.parametrize(
    ("patch", "after"),
    [
        ({"containers": [{"name": "a", "image": "2"}]},
         {"containers": [{"name": "a", "image": "2", "env": [{"name": "X", "value": "1"}]}, {"name": "b"}]}),
        ({"containers": [{"name": "a", "env": [{"name": "Y", "value": "2"}]}]},
         {"containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]},
                         {"name": "b"}]}),
        ({"containers": [{"name": "b", "$patch": "delete"}]}, {"containers": [CONTAINERS["containers"][0]]}),
        ({"containers": [{"$patch": "replace"}, {"name": "z"}]}, {"containers": [{"name": "z"}]}),
        ({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}], "containers": [{"name": "b", "image": "3"}]},
         {"containers": [{"name": "b", "image": "3"}, CONTAINERS["containers"][0]]}),
        ({"containers": None}, {}),
        ({"$patch": "replace", "x": 1}, {"x": 1}),
        ({"args": ["x"], "$setElementOrder/nope": []}, CONTAINERS | {"args": ["x"]}),
    ],
)  # fmt: skip
def test_strategic_merge(patch: Any, after: Any) -> None:
    assert strategic(CONTAINERS, patch) == after


def test_strategic_merge_of_texts_and_maps() -> None:
    before = {"finalizers": ["a", "b"], "m": {"x": 1, "y": 2}, "n": {"z": 1}}
    patch = {"finalizers": ["c"], "$deleteFromPrimitiveList/finalizers": ["a"], "m": {"$retainKeys": ["x"]},
             "n": {"$patch": "delete"}, "$setElementOrder/finalizers": ["c", "b"]}  # fmt: skip
    after = strategic(before, patch)
    assert (sorted(after["finalizers"]), after["m"], after["n"]) == (["b", "c"], {"x": 1}, {})


@pytest.mark.parametrize(
    ("kind", "custom", "code"),
    [(STRATEGIC, True, 415), ("application/json", True, 415), ("text/plain", False, 415), (MERGE, True, 400),
     (STRATEGIC, False, 400)],
)  # fmt: skip
def test_patches_that_are_refused(kind: str, custom: bool, code: int) -> None:
    with pytest.raises(ApiError) as told:
        apply_patch({}, [1], kind, custom=custom)
    assert told.value.code == code
    assert (STRATEGIC in str(told.value)) == (code == 415 and not custom)


@pytest.mark.parametrize("patch", [[{"op": "zz", "path": "/a"}], [{"op": "add", "path": "a"}], [{"nope": 1}], ["x"]])
def test_json_patches_that_do_not_apply(patch: Any) -> None:
    with pytest.raises(ApiError) as told:
        apply_patch({}, patch, JSON_PATCH, custom=True)
    assert (told.value.code, told.value.details) == (422, {})


def test_a_json_patch_is_a_list() -> None:
    with pytest.raises(ApiError) as told:
        apply_patch({}, {"op": "x"}, JSON_PATCH + "; charset=utf-8", custom=True)
    assert told.value.code == 400
