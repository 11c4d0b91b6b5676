from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mcptasks_local.tables import shape
from tests.unit.local.widgets import job_spec, new_objects, widget

NOW = datetime(2026, 12, 1, 12, 0, 0, tzinfo=UTC)
OBJECTS = new_objects()
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


def table(kind: str, *items: Any, include: str = "") -> Any:
    shown = shape(OBJECTS.resource(kind), TABLE, include, NOW)
    return shown.of_list(
        [{**i, "metadata": {"name": "x", **(i.get("metadata") or {})}} for i in items], {"resourceVersion": "7"}
    )


def cells(kind: str, item: Any) -> dict[str, Any]:
    shown = table(kind, item)
    return dict(zip((c["name"] for c in shown["columnDefinitions"]), shown["rows"][0]["cells"], strict=True))


def test_printer_columns_of_a_custom_kind() -> None:
    item = widget(status={"state": "busy"}) | {"metadata": {"creationTimestamp": "2026-12-01T11:58:59Z"}}
    shown = table("widgets.example.dev", item)
    assert shown["kind"] == "Table"
    assert [(c["name"], c["priority"]) for c in shown["columnDefinitions"]] == [
        ("Name", 0), ("State", 0), ("Size", 0), ("Age", 0), ("Owner", 1)]  # fmt: skip
    assert shown["rows"][0]["cells"] == ["x", "busy", None, "61s", "ann"]
    assert shown["columnDefinitions"][4]["description"] == "whose"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (119, "119s"), (120, "2m"), (310, "5m10s"), (900, "15m"), (3 * 3600, "3h"), (3 * 3600 + 300, "3h5m"),
     (10 * 3600, "10h"), (49 * 3600, "2d"), (-5, "<invalid>")],
)  # fmt: skip
def test_ages_are_worded_as_kubectl_words_them(seconds: int, text: str) -> None:
    made = (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert cells("configmaps", {"metadata": {"creationTimestamp": made}, "data": {"a": "1"}}) == {
        "Name": "x", "Data": 1, "Age": text}  # fmt: skip


def status(**state: Any) -> Any:
    return {"containerStatuses": [{"ready": "running" in state, "restartCount": 2, "state": state}], "phase": "Running"}


@pytest.mark.parametrize(
    ("pod", "shown"),
    [
        ({"status": {"phase": "Pending"}}, ("0/1", "Pending", 0)),
        ({"status": status(running={})}, ("1/1", "Running", 2)),
        ({"status": status(waiting={"reason": "ErrImagePull"})}, ("0/1", "ErrImagePull", 2)),
        ({"status": status(terminated={"reason": "OOMKilled"})}, ("0/1", "OOMKilled", 2)),
        ({"status": {"phase": "Failed", "reason": "Evicted"}}, ("0/1", "Evicted", 0)),
        ({"metadata": {"deletionTimestamp": "2026-12-01T11:58:59Z"}}, ("0/1", "Terminating", 0)),
        ({}, ("0/1", "Unknown", 0)),
    ],
)
def test_pods(pod: Any, shown: Any) -> None:
    row = cells("pods", {"spec": {"containers": [{}]}, **pod})
    assert (row["Ready"], row["Status"], row["Restarts"]) == shown


@pytest.mark.parametrize(
    ("told", "state", "done", "duration"),
    [
        ({}, "Running", "0/1", ""),
        ({"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1, "startTime": "2026-12-01T11:00:00Z",
          "completionTime": "2026-12-01T11:00:07Z"}, "Complete", "1/1", "7s"),
        ({"conditions": [{"type": "Failed", "status": "True"}, {"type": "X", "status": "False"}]}, "Failed", "0/1", ""),
    ],
)  # fmt: skip
def test_jobs(told: Any, state: str, done: str, duration: str) -> None:
    row = cells("jobs.batch", {"spec": job_spec(completions=1), "status": told})
    assert (row["Status"], row["Completions"], row["Duration"], row["Images"]) == (state, done, duration, "busybox")
    gone = {"spec": job_spec(), "metadata": {"deletionTimestamp": "x"}}
    assert cells("jobs.batch", gone)["Status"] == "Terminating"


def test_events_and_bindings() -> None:
    event = {
        "involvedObject": {"kind": "Pod", "name": "p"},
        "reason": "Started",
        "message": "hi",
        "lastTimestamp": "2026-12-01T11:59:00Z",
    }
    assert cells("events", event) | {"Type": None} == {
        "Name": "x",
        "Last Seen": "60s",
        "Type": None,
        "Reason": "Started",
        "Object": "pod/p",
        "Message": "hi",
    }
    binding = {"roleRef": {"kind": "Role", "name": "r"}}
    assert cells("rolebindings.rbac.authorization.k8s.io", binding)["Role"] == "Role/r"


def test_kinds_without_columns_show_their_age() -> None:
    assert list(cells("serviceaccounts", {})) == ["Name", "Age"]


@pytest.mark.parametrize(("include", "kind"), [("", "PartialObjectMetadata"), ("Object", "Widget"), ("None", None)])
def test_rows_carry_what_was_asked_for(include: str, kind: str | None) -> None:
    row = table("widgets.example.dev", widget(), include=include)["rows"][0]
    assert row.get("object", {}).get("kind") == kind


def test_metadata_alone() -> None:
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    shown = shape(OBJECTS.resource("widgets.example.dev"), accept, "", NOW)
    listed = shown.of_list([widget()], {"resourceVersion": "7"})
    assert listed["kind"] == "PartialObjectMetadataList"
    assert set(listed["items"][0]) == {"kind", "apiVersion", "metadata"}
    assert shown.of_event(widget())["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize("accept", ["*/*", "application/json", "application/json, application/json;as=Table"])
def test_objects_as_they_are(accept: str) -> None:
    shown = shape(OBJECTS.resource("widgets.example.dev"), accept, "", NOW)
    assert shown.of_list([widget()], {})["kind"] == "WidgetList"
    assert shown.of_one(widget()) == widget()


def test_paths_with_filters_and_indices() -> None:
    from mcptasks_local.tables import _path

    item = {"conditions": [{"type": "A", "status": "1"}, {"type": "B", "status": "2"}], "list": [5]}
    assert _path(".conditions[?(@.type=='B')].status")(item) == "2"
    assert _path(".conditions[?(@.type=='C')].status")(item) is None
    assert (_path(".list[0]")(item), _path(".list[3]")(item), _path(".nope[0]")(item)) == (5, None, None)
