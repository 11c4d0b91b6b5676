from mcptasks_operator.pace import Pace


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_goes_at_once_and_the_rest_at_the_pace() -> None:
    clock = Clock()
    pace: Pace[int] = Pace(rate=10, burst=2, clock=clock)
    delays = [pace.turn(n) for n in range(5)]
    assert delays[:3] == [0, 0, 0]
    assert [round(d, 3) for d in delays[3:]] == [0.1, 0.2]


def test_who_asks_again_keeps_the_place() -> None:
    clock = Clock()
    pace: Pace[str] = Pace(rate=1, burst=0, clock=clock)
    assert pace.turn("a") == 0
    assert pace.turn("b") == 1
    assert pace.turn("c") == 2
    clock.now = 0.5
    assert pace.turn("b") == 0.5
    clock.now = 1.0
    assert pace.turn("b") == 0
    assert pace.turn("c") == 1


def test_a_pause_saves_up_no_more_than_the_burst() -> None:
    clock = Clock()
    pace: Pace[int] = Pace(rate=10, burst=1, clock=clock)
    clock.now = 100.0
    assert [pace.turn(n) > 0 for n in range(4)] == [False, False, True, True]


def test_who_leaves_loses_the_place() -> None:
    clock = Clock()
    pace: Pace[str] = Pace(rate=1, burst=0, clock=clock)
    pace.turn("a")
    assert pace.turn("b") == 1
    pace.leave("b")
    pace.leave("nobody")
    assert pace.turn("b") == 2
