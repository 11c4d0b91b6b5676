"""The lifecycle table against SEP-1686's own words."""

import itertools

import pytest

from mcptasks_crds.errors import IllegalMove
from mcptasks_crds.lifecycle import MOVES, State, check_move, may_move

ENDS = {"completed", "failed", "cancelled", "unknown"}
BY_THE_TEXT = {
    "submitted": {"working", "input_required", *ENDS},
    "working": {"input_required", *ENDS},
    "input_required": {"working", *ENDS},
    **{end: set() for end in ENDS},
}
"""R-3.2, written down a second time on purpose."""

PAIRS = list(itertools.product(State, State))


@pytest.mark.req("R-3.1", "R-3.2", "R-3.3")
def test_the_table_has_the_moves_of_the_proposal_and_no_others() -> None:
    assert {str(old): {str(new) for new in news} for old, news in MOVES.items()} == BY_THE_TEXT


@pytest.mark.req("R-3.2")
@pytest.mark.parametrize(("old", "new"), PAIRS)
def test_every_pair_is_allowed_exactly_if_the_table_has_it_or_nothing_changes(old: State, new: State) -> None:
    allowed = old == new or str(new) in BY_THE_TEXT[str(old)]
    assert may_move(old, new) is allowed
    if allowed:
        check_move(old, new)
    else:
        with pytest.raises(IllegalMove, match=f"a task that is {old} cannot become {new}") as refused:
            check_move(old, new)
        assert (refused.value.old, refused.value.new) == (old, new)


@pytest.mark.req("R-3.2")
def test_the_ends_are_terminal_and_the_others_are_not() -> None:
    assert {str(state) for state in State if state.terminal} == ENDS
