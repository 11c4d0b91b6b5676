from pathlib import Path

from mcptasks_local.recorder import Recorder

from .laptop import Laptop, job


async def test_an_event_names_what_it_is_about(tmp_path: Path) -> None:
    world = Laptop(tmp_path)
    about = world.run(job("a", "true"))
    Recorder(world.objects, "job-controller").record(about, "Failed", "words", 1_800_000_000, warning=True)
    (event,), _ = world.objects.list(world.objects.resource("events"))
    assert event["involvedObject"]["uid"] == about["metadata"]["uid"]
    assert (event["type"], event["reason"], event["message"]) == ("Warning", "Failed", "words")
    assert (event["source"], event["lastTimestamp"]) == ({"component": "job-controller"}, "2027-01-15T08:00:00Z")
    world.storage.close()


async def test_a_bounded_number_is_kept_over_restarts_and_others_are_left_alone(tmp_path: Path) -> None:
    world = Laptop(tmp_path)
    about = world.run(job("a", "true"))
    Recorder(world.objects, "kubelet").record(about, "Other", "", 0)
    for number in range(4):
        Recorder(world.objects, "job-controller", kept=2).record(about, f"R{number}", "", 0)
    assert sorted(world.events()) == ["Other", "R2", "R3"]
    world.storage.close()


async def test_an_event_for_a_namespace_that_has_gone_is_dropped(tmp_path: Path) -> None:
    world = Laptop(tmp_path)
    about = world.run(job("a", "true"))
    about = {**about, "metadata": {**about["metadata"], "namespace": "gone"}}
    Recorder(world.objects, "kubelet").record(about, "R", "", 0)
    assert world.events() == []
    world.storage.close()
