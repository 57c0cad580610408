"""States of escalations, and the transitions between them.

An escalation covers the time since its alert was last opened. The states of pages are defined in
`domain/paging/notifications/states.py`. docs/escalation-states.md lists all transitions, and a test
compares the document with the code.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class EscalationState(StrEnum):
    """The paging state of an alert. All values except UNPROCESSED are stored."""

    #: State of an alert that the worker has not processed yet. The escalation is missing or
    #: outdated.
    UNPROCESSED = "unprocessed"
    #: State in which the next step is due at `next_at`, or the outcomes of the last step are still
    #: missing.
    RUNNING = "running"
    #: State in which a silence, an archived project or another hold delays the next step.
    HELD = "held"
    #: State after all steps of all rounds. A recipient was reached and may still respond.
    EXHAUSTED = "exhausted"
    #: State after nobody responded within the pause between two rounds. The maintainers were
    #: notified.
    UNANSWERED = "unanswered"
    #: State after the alert was acknowledged, ignored or resolved.
    STOPPED = "stopped"
    #: State in which the alert is acknowledged. The acknowledgement expires at `next_at`.
    ACKNOWLEDGED = "acknowledged"
    #: State after the acknowledgement expired. The alert is triggered, and the user who
    #: acknowledged it is notified first.
    LAPSED = "lapsed"
    #: State in which the alert is snoozed until `next_at`. The status of the alert is acknowledged.
    SNOOZED = "snoozed"
    #: State after a user escalated an alert without an active escalation. The next step is about to
    #: be taken.
    ESCALATED = "escalated"
    #: State of an alert to which no policy applies.
    NO_POLICY = "no_policy"
    #: State from earlier releases, in which deleting a policy ended its escalations.
    POLICY_DELETED = "policy_deleted"


#: States of active escalations, in which steps are due or held back.
ACTIVE_STATES = (EscalationState.RUNNING, EscalationState.HELD)


class EscalationEvent(StrEnum):
    """Events that change the state of an escalation."""

    FIRST_PROCESSED = "the worker processes the alert, which is triggered"
    STEP_DUE = "a step is due"
    ACCEPTED = "a contact accepts a page"
    FAILED = "all pages of the last step have failed"
    ROUND_OVER = "the results of the last step of a round are known"
    ALL_TAKEN = "the last step of the last round has ended, and somebody was reached"
    NO_ANSWER = "nobody answers"
    RAISED = "the alert becomes more severe"
    LOWERED = "the alert becomes less severe"
    CRITICAL = "the alert was acknowledged with a lower severity and becomes critical"
    ANSWERED = "the alert is acknowledged, and its policy has no acknowledgement timeout"
    ANSWERED_WITH_TIMEOUT = (
        "the alert is acknowledged, and its policy has an acknowledgement timeout"
    )
    RENEWED = "somebody presses *Still on it*"
    LAPSE = "the acknowledgement expires"
    SNOOZE = "somebody snoozes the alert"
    SNOOZE_ENDED = "the snooze ends, or somebody ends it early"
    ESCALATE = "somebody escalates the alert"
    OVER = "the alert is ignored, resolved or deleted"
    REOPENED = "the alert is triggered again"
    RECURRED = "an alert with the same fingerprint opens soon after this alert ended"
    HOLD = "a silence or maintenance window begins, or the project is archived"
    RELEASE = "the escalation is no longer held back"
    POLICY_CHANGED = "the policy is changed"
    POLICY_GONE = "the policy is deleted, or belongs to a group that the project leaves"
    CLOCK_SET_BACK = "the clock is set back"


class EscalationTransition(NamedTuple):
    """The next state after an event, with a description of the effect."""

    to: EscalationState
    what: str


_POLICY_CHOSEN_AGAIN_TEXT = (
    "The routes choose a new policy. The escalation starts at step 1 of the new policy."
)
_TO_STOPPED = EscalationTransition(EscalationState.STOPPED, "Unsent pages are canceled.")
_TO_ACKNOWLEDGED = EscalationTransition(
    EscalationState.ACKNOWLEDGED,
    "Unsent pages are canceled. The acknowledgement expires after the timeout.",
)
_TO_SNOOZED = EscalationTransition(
    EscalationState.SNOOZED,
    "The alert is acknowledged. Unsent pages are canceled, and nobody is paged until the snooze "
    "ends.",
)
_TO_ESCALATED = EscalationTransition(EscalationState.ESCALATED, "The alert is triggered again.")
_TO_ESCALATED_NOW = EscalationTransition(
    EscalationState.ESCALATED, "The next step is due immediately."
)
_TO_ESCALATED_WITH_POLICY = EscalationTransition(
    EscalationState.ESCALATED,
    "If the routes now choose a policy, its step 1 runs immediately. Otherwise the request is "
    "rejected.",
)
_TO_LAPSED_WHEN_CRITICAL = EscalationTransition(
    EscalationState.LAPSED,
    "The alert is triggered again, and the timeline gives the reason. The policy that the routes "
    "now choose can turn this off.",
)
_TO_RUNNING_NOW = EscalationTransition(
    EscalationState.RUNNING,
    "The next step runs immediately. If the routes now choose another policy, or the round was "
    "over, step 1 runs.",
)
_NO_CHANGE_TEXT = "Nothing changes."


_ANSWER_TRANSITIONS = {
    EscalationEvent.ANSWERED: _TO_STOPPED,
    EscalationEvent.ANSWERED_WITH_TIMEOUT: _TO_ACKNOWLEDGED,
    EscalationEvent.SNOOZE: _TO_SNOOZED,
    EscalationEvent.OVER: _TO_STOPPED,
}


def _build_no_change_transition(
    state: EscalationState, *events: EscalationEvent
) -> dict[EscalationEvent, EscalationTransition]:
    return {event: EscalationTransition(state, _NO_CHANGE_TEXT) for event in events}


_POLICY_KEPT_TEXT = "The policy stays the same. Later pages show the new severity."
_TIMES_MOVED_TEXT = "All stored times of the escalation move back by the same amount."
_SEVERITY_INCREASED_TEXT = (
    "If the routes now choose another policy, the escalation starts at step 1 of this policy. "
    "Otherwise it continues. If the alert is now critical, pages that wait for quiet hours "
    "are sent."
)
_POLICY_DELETED_TEXT = (
    "The routes choose a new policy, and the escalation starts at step 1 of the new policy. "
    "If no policy is found, the activity shows this, and the maintainers are notified."
)

#: Transitions that are applied when the worker first processes an alert.
_UNPROCESSED_TRANSITIONS = {
    EscalationEvent.FIRST_PROCESSED: EscalationTransition(
        EscalationState.RUNNING,
        "The routes choose a policy, and the escalation starts at step 1 of this policy. "
        "Without a policy, nobody is paged.",
    ),
    EscalationEvent.ANSWERED: EscalationTransition(
        EscalationState.STOPPED, "A policy is chosen, but nobody is paged."
    ),
    EscalationEvent.ANSWERED_WITH_TIMEOUT: EscalationTransition(
        EscalationState.ACKNOWLEDGED,
        "A policy is chosen, but nobody is paged. The acknowledgement timeout counts from the "
        "acknowledgement.",
    ),
    EscalationEvent.SNOOZE: EscalationTransition(
        EscalationState.SNOOZED,
        "A policy is chosen immediately. Nobody is paged until the snooze ends.",
    ),
    EscalationEvent.OVER: EscalationTransition(
        EscalationState.STOPPED, "A policy is chosen, but nobody is paged."
    ),
    EscalationEvent.ESCALATE: EscalationTransition(
        EscalationState.ESCALATED, "A policy is chosen immediately. The worker runs its step 1."
    ),
    EscalationEvent.HOLD: EscalationTransition(
        EscalationState.UNPROCESSED, "The worker holds the escalation back when it starts."
    ),
    **_build_no_change_transition(
        EscalationState.UNPROCESSED, EscalationEvent.RAISED, EscalationEvent.LOWERED
    ),
    **_build_no_change_transition(
        EscalationState.UNPROCESSED, EscalationEvent.POLICY_CHANGED, EscalationEvent.POLICY_GONE
    ),
}

ESCALATION_TRANSITIONS: Mapping[EscalationState, Mapping[EscalationEvent, EscalationTransition]] = {
    EscalationState.UNPROCESSED: _UNPROCESSED_TRANSITIONS,
    EscalationState.RUNNING: {
        EscalationEvent.STEP_DUE: EscalationTransition(
            EscalationState.RUNNING,
            "The step pages its targets. If it reaches nobody, the activity gives the reason, and "
            "the next step is due immediately.",
        ),
        EscalationEvent.ACCEPTED: EscalationTransition(
            EscalationState.RUNNING, "The round has reached somebody."
        ),
        EscalationEvent.FAILED: EscalationTransition(
            EscalationState.RUNNING,
            "The activity shows this, and the next step is due immediately.",
        ),
        EscalationEvent.ROUND_OVER: EscalationTransition(
            EscalationState.RUNNING,
            "The next round starts after the pause between repeats. A round that reached nobody "
            "does not count. The maintainers are notified, and another round starts within half "
            "an hour.",
        ),
        EscalationEvent.ALL_TAKEN: EscalationTransition(
            EscalationState.EXHAUSTED, "The activity shows that nobody else is paged."
        ),
        EscalationEvent.RAISED: EscalationTransition(
            EscalationState.RUNNING, _SEVERITY_INCREASED_TEXT
        ),
        EscalationEvent.LOWERED: EscalationTransition(EscalationState.RUNNING, _POLICY_KEPT_TEXT),
        EscalationEvent.ESCALATE: EscalationTransition(
            EscalationState.RUNNING,
            "The next step runs immediately. After the last step of a round, step 1 runs.",
        ),
        **_ANSWER_TRANSITIONS,
        EscalationEvent.HOLD: EscalationTransition(
            EscalationState.HELD, "The activity gives the reason and the end."
        ),
        EscalationEvent.POLICY_CHANGED: EscalationTransition(
            EscalationState.RUNNING, "The escalation continues with the new steps immediately."
        ),
        EscalationEvent.POLICY_GONE: EscalationTransition(
            EscalationState.RUNNING, _POLICY_DELETED_TEXT
        ),
        EscalationEvent.CLOCK_SET_BACK: EscalationTransition(
            EscalationState.RUNNING, _TIMES_MOVED_TEXT
        ),
    },
    EscalationState.HELD: {
        EscalationEvent.ACCEPTED: EscalationTransition(
            EscalationState.HELD, "The round has reached somebody."
        ),
        EscalationEvent.FAILED: EscalationTransition(
            EscalationState.HELD,
            "The failure is processed when the escalation is no longer held back.",
        ),
        EscalationEvent.RAISED: EscalationTransition(
            EscalationState.HELD, _SEVERITY_INCREASED_TEXT
        ),
        EscalationEvent.LOWERED: EscalationTransition(EscalationState.HELD, _POLICY_KEPT_TEXT),
        EscalationEvent.ESCALATE: EscalationTransition(
            EscalationState.RUNNING,
            "The request is rejected while something still holds the escalation back. Otherwise "
            "the next step runs immediately.",
        ),
        **_ANSWER_TRANSITIONS,
        EscalationEvent.HOLD: EscalationTransition(
            EscalationState.HELD, "If the reason changes, the activity shows this."
        ),
        EscalationEvent.RELEASE: EscalationTransition(
            EscalationState.RUNNING,
            "The activity shows this. The delays of the steps continue where they stopped.",
        ),
        EscalationEvent.POLICY_CHANGED: EscalationTransition(
            EscalationState.HELD,
            "The escalation continues with the new steps when it is no longer held back.",
        ),
        EscalationEvent.POLICY_GONE: EscalationTransition(
            EscalationState.RUNNING, _POLICY_DELETED_TEXT
        ),
        EscalationEvent.CLOCK_SET_BACK: EscalationTransition(
            EscalationState.HELD, _TIMES_MOVED_TEXT
        ),
    },
    EscalationState.EXHAUSTED: {
        EscalationEvent.ACCEPTED: EscalationTransition(
            EscalationState.EXHAUSTED, "Nothing changes."
        ),
        EscalationEvent.FAILED: EscalationTransition(
            EscalationState.EXHAUSTED, "Nothing changes: somebody was reached."
        ),
        EscalationEvent.NO_ANSWER: EscalationTransition(
            EscalationState.UNANSWERED,
            "The activity and the lists of alerts show that nobody answered. "
            "The maintainers are notified.",
        ),
        EscalationEvent.HOLD: EscalationTransition(
            EscalationState.EXHAUSTED,
            "The maintainers are not notified while the alert is held back.",
        ),
        EscalationEvent.RELEASE: EscalationTransition(
            EscalationState.EXHAUSTED, "The time to answer starts again."
        ),
        EscalationEvent.RAISED: EscalationTransition(
            EscalationState.RUNNING, _POLICY_CHOSEN_AGAIN_TEXT
        ),
        EscalationEvent.LOWERED: EscalationTransition(
            EscalationState.EXHAUSTED, "Nothing changes."
        ),
        EscalationEvent.ESCALATE: _TO_ESCALATED_NOW,
        **_ANSWER_TRANSITIONS,
        EscalationEvent.POLICY_CHANGED: EscalationTransition(
            EscalationState.EXHAUSTED, "Nothing changes."
        ),
        EscalationEvent.POLICY_GONE: EscalationTransition(
            EscalationState.EXHAUSTED, "Nothing changes."
        ),
        EscalationEvent.CLOCK_SET_BACK: EscalationTransition(
            EscalationState.EXHAUSTED, _TIMES_MOVED_TEXT
        ),
    },
    EscalationState.UNANSWERED: {
        EscalationEvent.ACCEPTED: EscalationTransition(
            EscalationState.UNANSWERED, "Nothing changes."
        ),
        EscalationEvent.FAILED: EscalationTransition(
            EscalationState.UNANSWERED, "Nothing changes."
        ),
        EscalationEvent.RAISED: EscalationTransition(
            EscalationState.RUNNING, _POLICY_CHOSEN_AGAIN_TEXT
        ),
        EscalationEvent.LOWERED: EscalationTransition(
            EscalationState.UNANSWERED, "Nothing changes."
        ),
        EscalationEvent.ESCALATE: _TO_ESCALATED_NOW,
        **_ANSWER_TRANSITIONS,
        EscalationEvent.POLICY_CHANGED: EscalationTransition(
            EscalationState.UNANSWERED, "Nothing changes."
        ),
        EscalationEvent.POLICY_GONE: EscalationTransition(
            EscalationState.UNANSWERED, "Nothing changes."
        ),
    },
    EscalationState.STOPPED: {
        EscalationEvent.REOPENED: EscalationTransition(
            EscalationState.RUNNING, _POLICY_CHOSEN_AGAIN_TEXT
        ),
        EscalationEvent.RECURRED: EscalationTransition(
            EscalationState.RUNNING,
            "If nobody had answered, the new alert continues where this alert ended, and the same "
            "people are paged again: immediately, or less often while the alert is flapping. "
            "Otherwise the escalation starts at step 1.",
        ),
        EscalationEvent.ANSWERED_WITH_TIMEOUT: EscalationTransition(
            EscalationState.ACKNOWLEDGED,
            "A step that was due at the same time had already stopped the escalation.",
        ),
        EscalationEvent.ESCALATE: _TO_ESCALATED,
        EscalationEvent.SNOOZE: _TO_SNOOZED,
        EscalationEvent.CRITICAL: _TO_LAPSED_WHEN_CRITICAL,
    },
    EscalationState.ACKNOWLEDGED: {
        EscalationEvent.RENEWED: EscalationTransition(
            EscalationState.ACKNOWLEDGED,
            "The acknowledgement expires after another full timeout.",
        ),
        EscalationEvent.LAPSE: EscalationTransition(
            EscalationState.LAPSED, "The alert is triggered again."
        ),
        EscalationEvent.CRITICAL: _TO_LAPSED_WHEN_CRITICAL,
        EscalationEvent.ESCALATE: _TO_ESCALATED,
        **_ANSWER_TRANSITIONS,
        EscalationEvent.REOPENED: EscalationTransition(
            EscalationState.RUNNING, _POLICY_CHOSEN_AGAIN_TEXT
        ),
        EscalationEvent.CLOCK_SET_BACK: EscalationTransition(
            EscalationState.ACKNOWLEDGED, _TIMES_MOVED_TEXT
        ),
        **_build_no_change_transition(
            EscalationState.ACKNOWLEDGED, EscalationEvent.RAISED, EscalationEvent.LOWERED
        ),
        **_build_no_change_transition(
            EscalationState.ACKNOWLEDGED,
            EscalationEvent.POLICY_CHANGED,
            EscalationEvent.POLICY_GONE,
        ),
    },
    EscalationState.LAPSED: {
        EscalationEvent.REOPENED: EscalationTransition(
            EscalationState.RUNNING,
            "The user who acknowledged the alert last is paged first. Step 1 of the policy that "
            "the routes now choose follows after five minutes, or immediately if that user cannot "
            "be reached.",
        ),
        EscalationEvent.ESCALATE: _TO_ESCALATED,
        **_ANSWER_TRANSITIONS,
        **_build_no_change_transition(
            EscalationState.LAPSED, EscalationEvent.RAISED, EscalationEvent.LOWERED
        ),
    },
    EscalationState.SNOOZED: {
        EscalationEvent.SNOOZE_ENDED: EscalationTransition(
            EscalationState.STOPPED, "The alert is triggered again."
        ),
        EscalationEvent.RAISED: EscalationTransition(
            EscalationState.STOPPED, "The alert is triggered again."
        ),
        EscalationEvent.ESCALATE: _TO_ESCALATED,
        EscalationEvent.SNOOZE: EscalationTransition(
            EscalationState.SNOOZED, "The new end time replaces the previous end time."
        ),
        EscalationEvent.OVER: _TO_STOPPED,
        EscalationEvent.REOPENED: EscalationTransition(
            EscalationState.RUNNING, _POLICY_CHOSEN_AGAIN_TEXT
        ),
        EscalationEvent.CLOCK_SET_BACK: EscalationTransition(
            EscalationState.SNOOZED, _TIMES_MOVED_TEXT
        ),
        **_build_no_change_transition(
            EscalationState.SNOOZED,
            EscalationEvent.ANSWERED,
            EscalationEvent.ANSWERED_WITH_TIMEOUT,
            EscalationEvent.LOWERED,
        ),
        **_build_no_change_transition(
            EscalationState.SNOOZED, EscalationEvent.POLICY_CHANGED, EscalationEvent.POLICY_GONE
        ),
    },
    EscalationState.ESCALATED: {
        EscalationEvent.REOPENED: _TO_RUNNING_NOW,
        EscalationEvent.STEP_DUE: _TO_RUNNING_NOW,
        **_ANSWER_TRANSITIONS,
        **_build_no_change_transition(
            EscalationState.ESCALATED,
            EscalationEvent.RAISED,
            EscalationEvent.LOWERED,
            EscalationEvent.ESCALATE,
        ),
    },
    EscalationState.NO_POLICY: {
        EscalationEvent.RAISED: EscalationTransition(
            EscalationState.RUNNING,
            "If the routes now choose a policy, the escalation starts at step 1 of this policy.",
        ),
        EscalationEvent.LOWERED: EscalationTransition(
            EscalationState.NO_POLICY, "Nothing changes."
        ),
        EscalationEvent.SNOOZE: _TO_SNOOZED,
        EscalationEvent.ESCALATE: _TO_ESCALATED_WITH_POLICY,
        EscalationEvent.CRITICAL: _TO_LAPSED_WHEN_CRITICAL,
        **_build_no_change_transition(
            EscalationState.NO_POLICY, EscalationEvent.ANSWERED, EscalationEvent.OVER
        ),
        EscalationEvent.REOPENED: EscalationTransition(
            EscalationState.RUNNING, _POLICY_CHOSEN_AGAIN_TEXT
        ),
    },
    EscalationState.POLICY_DELETED: {
        EscalationEvent.RAISED: EscalationTransition(
            EscalationState.RUNNING, _POLICY_CHOSEN_AGAIN_TEXT
        ),
        EscalationEvent.LOWERED: EscalationTransition(
            EscalationState.POLICY_DELETED, "Nothing changes."
        ),
        EscalationEvent.SNOOZE: _TO_SNOOZED,
        EscalationEvent.ESCALATE: _TO_ESCALATED_WITH_POLICY,
        EscalationEvent.CRITICAL: _TO_LAPSED_WHEN_CRITICAL,
        **_build_no_change_transition(
            EscalationState.POLICY_DELETED, EscalationEvent.ANSWERED, EscalationEvent.OVER
        ),
        EscalationEvent.REOPENED: EscalationTransition(
            EscalationState.RUNNING, _POLICY_CHOSEN_AGAIN_TEXT
        ),
    },
}


def get_next_state(state: EscalationState, event: EscalationEvent) -> EscalationState:
    """Return the state of an escalation after an event.

    Raise LookupError if the event cannot happen in this state.
    """
    return ESCALATION_TRANSITIONS[state][event].to


def find_states_before(
    event: EscalationEvent, escalation_state: EscalationState
) -> tuple[EscalationState, ...]:
    """Return the other states from which an event leads to `escalation_state`."""
    return tuple(
        state
        for state, moves in ESCALATION_TRANSITIONS.items()
        if state is not escalation_state and event in moves and moves[event].to is escalation_state
    )
