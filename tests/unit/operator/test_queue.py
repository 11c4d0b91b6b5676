import asyncio

import pytest

from mcptasks_operator.queue import FIRST_PAUSE, LONGEST_PAUSE, WorkQueue


async def next_of(queue: WorkQueue[str]) -> str:
    return await asyncio.wait_for(queue.get(), 2)


async def empty(queue: WorkQueue[str]) -> bool:
    await asyncio.sleep(0)
    return len(queue) == 0


async def test_a_key_that_is_added_twice_is_looked_at_once() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    queue.add("a")
    queue.add("b")
    assert len(queue) == 2
    assert [await next_of(queue), await next_of(queue)] == ["a", "b"]
    assert await empty(queue)


@pytest.mark.fault("O3")
async def test_news_during_the_work_on_a_key_brings_it_back_after() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await next_of(queue)
    queue.add("a")
    queue.add("a")
    assert await empty(queue)
    queue.done("a")
    assert await next_of(queue) == "a"
    queue.done("a")
    assert await empty(queue)


async def test_a_key_comes_when_its_time_has_come() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("late", 0.05)
    queue.add_after("now", 0)
    assert [await next_of(queue), await next_of(queue)] == ["now", "late"]


async def test_the_last_word_on_a_keys_time_counts_and_news_goes_before() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 60)
    queue.add_after("a", 0.01)
    assert await next_of(queue) == "a"
    queue.done("a")
    queue.add_after("a", 60)
    queue.add("a")
    assert await next_of(queue) == "a"
    queue.add("a")
    queue.add_after("a", 60)  # there is news: no need to wait
    queue.done("a")
    assert await next_of(queue) == "a"


async def test_patience_grows_with_each_failure_and_ends_with_success() -> None:
    queue: WorkQueue[str] = WorkQueue()
    pauses = [queue.retry("a") for _ in range(30)]
    assert FIRST_PAUSE * 0.75 <= pauses[0] <= FIRST_PAUSE
    assert pauses[3] > pauses[0]
    assert LONGEST_PAUSE * 0.75 <= pauses[-1] <= LONGEST_PAUSE
    assert queue.failures("a") == 30
    queue.forget("a")
    assert queue.failures("a") == 0
    queue.close()


async def test_what_is_closed_brings_nothing_more() -> None:
    queue: WorkQueue[str] = WorkQueue()
    queue.add_after("a", 0.01)
    queue.close()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(queue.get(), 0.05)


async def test_the_wait_of_a_key_is_told() -> None:
    waits: list[float] = []
    queue: WorkQueue[str] = WorkQueue(waits.append)
    queue.add("a")
    await next_of(queue)
    assert len(waits) == 1
    assert 0 <= waits[0] < 1
