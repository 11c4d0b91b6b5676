import pytest

from mcptasks_crds.record import TaskRecord
from mcptasks_crds.tool import Concurrency
from mcptasks_operator.decide import Turn
from mcptasks_operator.slots import Key, Slots

from .cluster import NAMESPACE, START
from .objects import task

TOOL = (NAMESPACE, "echo")


def of(number: int, owner: str = "alice", **fields: object) -> TaskRecord:
    return task(number, created=START + number, owner={"subject": owner}, **fields)


def numbers(keys: list[Key]) -> list[int]:
    return [int(name.lstrip("t-0"), 16) for _, name in keys]


def opened(total: int | None = None, per_owner: int | None = None) -> Slots:
    slots = Slots()
    slots.open()
    slots.limit(TOOL, Concurrency(total=total, per_owner=per_owner))
    return slots


def place(slots: Slots, *tasks: TaskRecord) -> list[int]:
    return numbers([key for t in tasks for key in slots.place(t, running=False)])


def test_without_limits_every_task_has_its_turn() -> None:
    slots = Slots()
    slots.open()
    assert place(slots, of(1), of(2)) == [1, 2]
    assert slots.turn(of(1)) == Turn()


def test_first_come_first_served() -> None:
    slots = opened(total=2)
    assert place(slots, of(1), of(2), of(4), of(3)) == [1, 2]
    assert slots.turn(of(3)) == Turn(False, "the tool runs 2 of at most 2 tasks")
    assert numbers(slots.place(of(1, status={"state": "failed"}), running=True)) == [3]
    assert numbers(slots.remove(of(2))) == [4]
    assert slots.counts(TOOL) == (2, 0)


def test_the_order_is_of_creation_not_of_arrival_after_a_restart() -> None:
    slots = Slots()
    slots.limit(TOOL, Concurrency(total=1))
    assert place(slots, of(3), of(1), of(2)) == []
    assert numbers(slots.open()) == [1]


def test_the_order_is_of_time_also_between_owners() -> None:
    slots = opened(total=1)
    place(slots, of(1))
    first = task(9, created=START + 2, owner={"subject": "zoe"})
    second = task(3, created=START + 3, owner={"subject": "bob"})
    assert place(slots, second, first) == []
    assert numbers(slots.remove(of(1))) == [9]


def test_an_owner_who_is_at_the_limit_holds_up_nobody_else() -> None:
    slots = opened(total=3, per_owner=1)
    assert place(slots, of(1), of(2), of(3, "bob"), of(4)) == [1, 3]
    assert slots.turn(of(2)) == Turn(False, "the owner runs 1 of at most 1 tasks of the tool")
    assert numbers(slots.remove(of(3, "bob"))) == []
    assert numbers(slots.remove(of(1))) == [2]


def test_a_task_that_runs_has_its_slot_whatever_the_limit() -> None:
    slots = opened(total=1)
    for number in (1, 2):
        slots.place(of(number), running=True)
    assert place(slots, of(3)) == []
    assert slots.counts(TOOL) == (2, 1)
    assert list(slots.usage()) == [(TOOL, 2, 1, 1)]


def test_a_raised_limit_lets_the_next_ones_in() -> None:
    slots = opened(total=1)
    place(slots, of(1), of(2), of(3))
    assert numbers(slots.limit(TOOL, Concurrency(total=2))) == [2]
    assert numbers(slots.limit(TOOL, Concurrency())) == [3]


def test_a_task_that_stops_waiting_is_passed_over() -> None:
    slots = opened(total=1)
    place(slots, of(1), of(2), of(3))
    slots.place(of(2, status={"state": "cancelled"}), running=False)
    assert numbers(slots.remove(of(1))) == [3]
    assert numbers(slots.remove(of(3))) == []
    assert place(slots, of(4)) == [4]


def test_waiting_twice_is_waiting_once() -> None:
    slots = opened(total=1)
    assert place(slots, of(1), of(1), of(2), of(2)) == [1]
    assert slots.counts(TOOL) == (1, 1)


def test_a_tool_that_never_was_leaves_nothing_behind() -> None:
    slots = opened()
    place(slots, of(1, tool="nope"), of(2))
    slots.remove(of(1, tool="nope"))
    assert [tool for tool, *_ in slots.usage()] == [TOOL]


def test_what_is_not_known_has_no_turn_and_no_count() -> None:
    slots = Slots()
    assert slots.turn(of(1)) == Turn(False, "earlier tasks go first")
    assert slots.counts(TOOL) == (0, 0)
    assert slots.remove(of(1)) == []


@pytest.mark.fault("E19")
def test_a_long_queue_drains_at_the_limit() -> None:
    slots = opened(total=10)
    ready = place(slots, *(of(n) for n in range(1, 201)))
    ended: list[int] = []
    while ready:
        number = ready.pop(0)
        assert slots.counts(TOOL)[0] == min(10, 200 - len(ended))
        ended.append(number)
        ready += numbers(slots.remove(of(number)))
    assert ended == list(range(1, 201))
