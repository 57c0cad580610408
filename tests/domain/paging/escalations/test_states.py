"""The tables of states are complete, and the documents contain them."""

from pathlib import Path

import pytest

from domain.paging.escalations.document import with_tables
from domain.paging.escalations.state import MOVES, Event, State, after, moved_by
from domain.paging.notifications.states import (
    MESSAGES,
    PAGES,
    QUEUED_AGAIN,
    MessageState,
    PageState,
    shown_state,
)


def test_each_state_has_a_row_and_each_event_is_used() -> None:
    assert set(MOVES) == set(State)
    assert set(PAGES) == set(PageState)
    assert set(MESSAGES) == set(MessageState)
    assert {event for moves in MOVES.values() for event in moves} == set(Event)


def test_an_answer_stops_all_states_that_page_or_have_paged() -> None:
    pages = {State.RUNNING, State.HELD, State.EXHAUSTED, State.UNANSWERED}
    waits = {State.UNPROCESSED, State.ACKNOWLEDGED, State.LAPSED, State.ESCALATED}
    assert set(moved_by(Event.ANSWERED, State.STOPPED)) == pages | waits
    assert set(moved_by(Event.OVER, State.STOPPED)) == pages | waits | {State.SNOOZED}
    assert pages <= set(moved_by(Event.TIMED, State.ACKNOWLEDGED))
    assert set(moved_by(Event.SNOOZE, State.SNOOZED)) == set(State) - {State.SNOOZED}


def test_only_an_answer_or_the_last_step_ends_a_running_escalation() -> None:
    ends = {
        event
        for event, move in MOVES[State.RUNNING].items()
        if move.to not in {State.RUNNING, State.HELD}
    }
    answers = {Event.ANSWERED, Event.TIMED, Event.SNOOZE, Event.OVER}
    assert ends == {*answers, Event.ALL_TAKEN}


def test_an_impossible_event_is_an_error() -> None:
    with pytest.raises(LookupError):
        after(State.STOPPED, Event.STEP_DUE)


def test_each_outcome_of_a_message_is_shown_as_a_state() -> None:
    assert shown_state(None, None) is MessageState.WAITING
    assert shown_state("withdrawn", None) is MessageState.WITHDRAWN
    assert shown_state("withdrawn", "is not active and was not paged") is MessageState.CANCELLED
    assert shown_state(QUEUED_AGAIN, None) is MessageState.GIVEN_UP


def test_the_document_contains_the_tables_of_the_code() -> None:
    text = Path("docs/escalation-states.md").read_text(encoding="utf-8")
    assert with_tables(text) == text
