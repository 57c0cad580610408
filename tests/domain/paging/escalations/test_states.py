"""The tables of states are complete, and the documents contain them."""

from pathlib import Path

import pytest

from domain.paging.escalations.reporting.state_tables import replace_tables
from domain.paging.escalations.state import (
    ESCALATION_TRANSITIONS,
    EscalationEvent,
    EscalationState,
    find_states_before,
    get_next_state,
)
from domain.paging.notifications.states import (
    MESSAGE_TRANSITIONS,
    PAGE_TRANSITIONS,
    REQUEUED_OUTCOME,
    MessageState,
    PageState,
    get_message_state,
)


def test_each_state_has_a_row_and_each_event_is_used() -> None:
    assert set(ESCALATION_TRANSITIONS) == set(EscalationState)
    assert set(PAGE_TRANSITIONS) == set(PageState)
    assert set(MESSAGE_TRANSITIONS) == set(MessageState)
    assert {event for moves in ESCALATION_TRANSITIONS.values() for event in moves} == set(
        EscalationEvent
    )


def test_an_answer_stops_all_states_that_page_or_have_paged() -> None:
    pages = {
        EscalationState.RUNNING,
        EscalationState.HELD,
        EscalationState.EXHAUSTED,
        EscalationState.UNANSWERED,
    }
    waits = {
        EscalationState.UNPROCESSED,
        EscalationState.ACKNOWLEDGED,
        EscalationState.LAPSED,
        EscalationState.ESCALATED,
    }
    assert (
        set(find_states_before(EscalationEvent.ANSWERED, EscalationState.STOPPED)) == pages | waits
    )
    assert set(
        find_states_before(EscalationEvent.OVER, EscalationState.STOPPED)
    ) == pages | waits | {EscalationState.SNOOZED}
    assert pages <= set(
        find_states_before(EscalationEvent.ANSWERED_WITH_TIMEOUT, EscalationState.ACKNOWLEDGED)
    )
    assert set(find_states_before(EscalationEvent.SNOOZE, EscalationState.SNOOZED)) == set(
        EscalationState
    ) - {EscalationState.SNOOZED}


def test_only_an_answer_or_the_last_step_ends_a_running_escalation() -> None:
    ends = {
        event
        for event, move in ESCALATION_TRANSITIONS[EscalationState.RUNNING].items()
        if move.to not in {EscalationState.RUNNING, EscalationState.HELD}
    }
    answers = {
        EscalationEvent.ANSWERED,
        EscalationEvent.ANSWERED_WITH_TIMEOUT,
        EscalationEvent.SNOOZE,
        EscalationEvent.OVER,
    }
    assert ends == {*answers, EscalationEvent.ALL_TAKEN}


def test_an_impossible_event_is_an_error() -> None:
    with pytest.raises(LookupError):
        get_next_state(EscalationState.STOPPED, EscalationEvent.STEP_DUE)


def test_each_outcome_of_a_message_is_shown_as_a_state() -> None:
    assert get_message_state(None, None) is MessageState.WAITING
    assert get_message_state("withdrawn", None) is MessageState.WITHDRAWN
    assert (
        get_message_state("withdrawn", "is not active and was not paged") is MessageState.CANCELLED
    )
    assert get_message_state(REQUEUED_OUTCOME, None) is MessageState.GIVEN_UP


def test_the_document_contains_the_tables_of_the_code() -> None:
    text = Path("docs/escalation-states.md").read_text(encoding="utf-8")
    assert replace_tables(text) == text
