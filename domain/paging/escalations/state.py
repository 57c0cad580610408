"""The states of an escalation and the events that change them, as a table that the code uses.

An escalation covers the time since its alert was last opened.
`domain/paging/notifications/states.py` has the states of pages. docs/escalation-states.md shows
both tables, and a test compares them.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    """The state of the paging for an alert. All values but UNPROCESSED are stored."""

    #: The worker has not processed the alert yet, so its row is missing or outdated.
    UNPROCESSED = "unprocessed"
    #: The next step is due at `next_at`, or the outcomes of the last step are still missing.
    RUNNING = "running"
    #: A silence, an archived project or another hold delays the next step.
    HELD = "held"
    #: All steps of all rounds were taken. A recipient was reached and may still respond.
    EXHAUSTED = "exhausted"
    #: Nobody responded within the pause between two rounds. The maintainers were notified.
    UNANSWERED = "unanswered"
    #: The alert was acknowledged, ignored or resolved.
    STOPPED = "stopped"
    #: The alert is acknowledged. The acknowledgement expires at `next_at`.
    ACKNOWLEDGED = "acknowledged"
    #: The acknowledgement has expired: the alert is triggered, and the user who acknowledged it is
    #: notified first.
    LAPSED = "lapsed"
    #: The alert is snoozed until `next_at`. Its status is acknowledged.
    SNOOZED = "snoozed"
    #: A user escalated an alert that paged nobody. The next step is about to be taken.
    ESCALATED = "escalated"
    #: No policy applies to the alert.
    NO_POLICY = "no_policy"
    #: State from former releases, in which deleting a policy ended its escalations.
    POLICY_DELETED = "policy_deleted"


#: States in which the worker acts when `next_at` is reached.
UNDER_WAY = (State.RUNNING, State.HELD)


class Event(StrEnum):
    """The events that change the state of an escalation."""

    FIRST_LOOK = "the worker processes the alert, which is triggered"
    STEP_DUE = "a step is due"
    ACCEPTED = "a contact accepts a page"
    FAILED = "all pages of the last step have failed"
    ROUND_OVER = "the results of the last step of a round are known"
    ALL_TAKEN = "the last step of the last round has ended, and somebody was reached"
    NO_ANSWER = "nobody answers"
    RAISED = "the alert becomes more severe"
    LOWERED = "the alert becomes less severe"
    CRITICAL = "the alert was acknowledged below critical and becomes critical"
    ANSWERED = "the alert is acknowledged, and its policy has no acknowledgement timeout"
    TIMED = "the alert is acknowledged, and its policy has an acknowledgement timeout"
    RENEWED = "somebody presses *Still on it*"
    LAPSE = "the acknowledgement expires"
    SNOOZE = "somebody snoozes the alert"
    WOKEN = "the snooze ends, or somebody ends it early"
    ESCALATE = "somebody escalates the alert"
    OVER = "the alert is ignored, resolved or deleted"
    REOPENED = "the alert is triggered again"
    BACK = "an alert with the same fingerprint opens soon after this one ended"
    HOLD = "a silence or maintenance window begins, or the project is archived"
    RELEASE = "nothing holds the escalation back anymore"
    POLICY_CHANGED = "the policy is changed"
    POLICY_GONE = "the policy is deleted, or belongs to a group that the project leaves"
    CLOCK_BACK = "the clock is set back"


class Move(NamedTuple):
    """The next state after an event, with a description of the effect in sentences."""

    to: State
    what: str


_ANEW = "The routes choose a policy again. The escalation starts at its step 1."
_STOPS = Move(State.STOPPED, "Unsent pages are cancelled.")
_TIMED = Move(
    State.ACKNOWLEDGED,
    "Unsent pages are cancelled. The acknowledgement expires after the timeout.",
)
_SNOOZED = Move(
    State.SNOOZED,
    "The alert is acknowledged. Unsent pages are cancelled, and nobody is paged until the snooze "
    "ends.",
)
_ESCALATED = Move(State.ESCALATED, "The alert is triggered again.")
_AT_ONCE = Move(State.ESCALATED, "The next step is due immediately.")
_CHOSEN = Move(
    State.ESCALATED,
    "If the routes now choose a policy, its step 1 runs immediately. Otherwise the request is "
    "rejected.",
)
_CRITICAL = Move(
    State.LAPSED,
    "The alert is triggered again, and the timeline gives the reason. The policy that the routes "
    "now choose can turn this off.",
)
_GOES_ON = Move(
    State.RUNNING,
    "The next step runs immediately. If the routes now choose another policy, or the round was "
    "over, step 1 runs.",
)
_SAME = "Nothing changes."


_ANSWERS = {
    Event.ANSWERED: _STOPS,
    Event.TIMED: _TIMED,
    Event.SNOOZE: _SNOOZED,
    Event.OVER: _STOPS,
}


def _stays(state: State, *events: Event) -> dict[Event, Move]:
    return {event: Move(state, _SAME) for event in events}


_KEEPS = "The policy stays the same. Later pages show the new severity."
_MOVED = "All stored times of the escalation move back by the same amount."
_RISES = (
    "If the routes now choose another policy, the escalation starts at its step 1. Otherwise it "
    "continues. If the alert is now critical, pages that wait for quiet hours are sent."
)
_ROUTED = (
    "The routes choose a policy again, and the escalation starts at its step 1. If there is no "
    "policy, the activity shows this, and the maintainers are notified."
)

#: Transitions that the worker applies when it first processes the alert.
_UNPROCESSED = {
    Event.FIRST_LOOK: Move(
        State.RUNNING,
        "The routes choose a policy, and the escalation starts at its step 1. Without a policy, "
        "nobody is paged.",
    ),
    Event.ANSWERED: Move(State.STOPPED, "A policy is chosen, but nobody is paged."),
    Event.TIMED: Move(
        State.ACKNOWLEDGED,
        "A policy is chosen, but nobody is paged. The acknowledgement timeout counts from the "
        "acknowledgement.",
    ),
    Event.SNOOZE: Move(
        State.SNOOZED,
        "A policy is chosen immediately. Nobody is paged until the snooze ends.",
    ),
    Event.OVER: Move(State.STOPPED, "A policy is chosen, but nobody is paged."),
    Event.ESCALATE: Move(
        State.ESCALATED, "A policy is chosen immediately. The worker runs its step 1."
    ),
    Event.HOLD: Move(State.UNPROCESSED, "The worker holds the escalation back when it starts."),
    **_stays(State.UNPROCESSED, Event.RAISED, Event.LOWERED),
    **_stays(State.UNPROCESSED, Event.POLICY_CHANGED, Event.POLICY_GONE),
}

MOVES: Mapping[State, Mapping[Event, Move]] = {
    State.UNPROCESSED: _UNPROCESSED,
    State.RUNNING: {
        Event.STEP_DUE: Move(
            State.RUNNING,
            "The step pages its targets. If it reaches nobody, the activity gives the reason, and "
            "the next step is due immediately.",
        ),
        Event.ACCEPTED: Move(State.RUNNING, "The round has reached somebody."),
        Event.FAILED: Move(
            State.RUNNING, "The activity shows this, and the next step is due immediately."
        ),
        Event.ROUND_OVER: Move(
            State.RUNNING,
            "The next round starts after the pause between repeats. A round that reached nobody "
            "does not count. The maintainers are notified, and another round starts within half "
            "an hour.",
        ),
        Event.ALL_TAKEN: Move(State.EXHAUSTED, "The activity shows that nobody else is paged."),
        Event.RAISED: Move(State.RUNNING, _RISES),
        Event.LOWERED: Move(State.RUNNING, _KEEPS),
        Event.ESCALATE: Move(
            State.RUNNING,
            "The next step runs immediately. After the last step of a round, step 1 runs.",
        ),
        **_ANSWERS,
        Event.HOLD: Move(State.HELD, "The activity gives the reason and the end."),
        Event.POLICY_CHANGED: Move(
            State.RUNNING, "The escalation continues with the new steps immediately."
        ),
        Event.POLICY_GONE: Move(State.RUNNING, _ROUTED),
        Event.CLOCK_BACK: Move(State.RUNNING, _MOVED),
    },
    State.HELD: {
        Event.ACCEPTED: Move(State.HELD, "The round has reached somebody."),
        Event.FAILED: Move(
            State.HELD, "The failure counts when nothing holds the escalation back anymore."
        ),
        Event.RAISED: Move(State.HELD, _RISES),
        Event.LOWERED: Move(State.HELD, _KEEPS),
        Event.ESCALATE: Move(
            State.RUNNING,
            "The request is rejected while something still holds the escalation back. Otherwise "
            "the next step runs immediately.",
        ),
        **_ANSWERS,
        Event.HOLD: Move(State.HELD, "If the reason changes, the activity shows this."),
        Event.RELEASE: Move(
            State.RUNNING,
            "The activity shows this. The delays of the steps continue where they stopped.",
        ),
        Event.POLICY_CHANGED: Move(
            State.HELD,
            "The escalation continues with the new steps when it is no longer held back.",
        ),
        Event.POLICY_GONE: Move(State.RUNNING, _ROUTED),
        Event.CLOCK_BACK: Move(State.HELD, _MOVED),
    },
    State.EXHAUSTED: {
        Event.ACCEPTED: Move(State.EXHAUSTED, "Nothing changes."),
        Event.FAILED: Move(State.EXHAUSTED, "Nothing changes: somebody was reached."),
        Event.NO_ANSWER: Move(
            State.UNANSWERED,
            "The activity shows this, the maintainers are notified, and lists of alerts show it.",
        ),
        Event.HOLD: Move(
            State.EXHAUSTED, "The maintainers are not notified while the alert is held back."
        ),
        Event.RELEASE: Move(State.EXHAUSTED, "The time to answer starts again."),
        Event.RAISED: Move(State.RUNNING, _ANEW),
        Event.LOWERED: Move(State.EXHAUSTED, "Nothing changes."),
        Event.ESCALATE: _AT_ONCE,
        **_ANSWERS,
        Event.POLICY_CHANGED: Move(State.EXHAUSTED, "Nothing changes."),
        Event.POLICY_GONE: Move(State.EXHAUSTED, "Nothing changes."),
        Event.CLOCK_BACK: Move(State.EXHAUSTED, _MOVED),
    },
    State.UNANSWERED: {
        Event.ACCEPTED: Move(State.UNANSWERED, "Nothing changes."),
        Event.FAILED: Move(State.UNANSWERED, "Nothing changes."),
        Event.RAISED: Move(State.RUNNING, _ANEW),
        Event.LOWERED: Move(State.UNANSWERED, "Nothing changes."),
        Event.ESCALATE: _AT_ONCE,
        **_ANSWERS,
        Event.POLICY_CHANGED: Move(State.UNANSWERED, "Nothing changes."),
        Event.POLICY_GONE: Move(State.UNANSWERED, "Nothing changes."),
    },
    State.STOPPED: {
        Event.REOPENED: Move(State.RUNNING, _ANEW),
        Event.BACK: Move(
            State.RUNNING,
            "If nobody had answered, the new alert continues where this one ended, and the same "
            "people are paged again: immediately, or less often while the alert is flapping. "
            "Otherwise the escalation starts at step 1.",
        ),
        Event.TIMED: Move(
            State.ACKNOWLEDGED, "A step that was due at the same moment had already stopped it."
        ),
        Event.ESCALATE: _ESCALATED,
        Event.SNOOZE: _SNOOZED,
        Event.CRITICAL: _CRITICAL,
    },
    State.ACKNOWLEDGED: {
        Event.RENEWED: Move(
            State.ACKNOWLEDGED, "The acknowledgement expires after the full timeout again."
        ),
        Event.LAPSE: Move(State.LAPSED, "The alert is triggered again."),
        Event.CRITICAL: _CRITICAL,
        Event.ESCALATE: _ESCALATED,
        **_ANSWERS,
        Event.REOPENED: Move(State.RUNNING, _ANEW),
        Event.CLOCK_BACK: Move(State.ACKNOWLEDGED, _MOVED),
        **_stays(State.ACKNOWLEDGED, Event.RAISED, Event.LOWERED),
        **_stays(State.ACKNOWLEDGED, Event.POLICY_CHANGED, Event.POLICY_GONE),
    },
    State.LAPSED: {
        Event.REOPENED: Move(
            State.RUNNING,
            "The user who acknowledged the alert last is paged first. Step 1 of the policy that "
            "the routes now choose follows after five minutes, or immediately if that user cannot "
            "be reached.",
        ),
        Event.ESCALATE: _ESCALATED,
        **_ANSWERS,
        **_stays(State.LAPSED, Event.RAISED, Event.LOWERED),
    },
    State.SNOOZED: {
        Event.WOKEN: Move(State.STOPPED, "The alert is triggered again."),
        Event.RAISED: Move(State.STOPPED, "The alert is triggered again."),
        Event.ESCALATE: _ESCALATED,
        Event.SNOOZE: Move(State.SNOOZED, "The new end replaces the old one."),
        Event.OVER: _STOPS,
        Event.REOPENED: Move(State.RUNNING, _ANEW),
        Event.CLOCK_BACK: Move(State.SNOOZED, _MOVED),
        **_stays(State.SNOOZED, Event.ANSWERED, Event.TIMED, Event.LOWERED),
        **_stays(State.SNOOZED, Event.POLICY_CHANGED, Event.POLICY_GONE),
    },
    State.ESCALATED: {
        Event.REOPENED: _GOES_ON,
        Event.STEP_DUE: _GOES_ON,
        **_ANSWERS,
        **_stays(State.ESCALATED, Event.RAISED, Event.LOWERED, Event.ESCALATE),
    },
    State.NO_POLICY: {
        Event.RAISED: Move(
            State.RUNNING, "If the routes now choose a policy, the escalation starts at its step 1."
        ),
        Event.LOWERED: Move(State.NO_POLICY, "Nothing changes."),
        Event.SNOOZE: _SNOOZED,
        Event.ESCALATE: _CHOSEN,
        Event.CRITICAL: _CRITICAL,
        **_stays(State.NO_POLICY, Event.ANSWERED, Event.OVER),
        Event.REOPENED: Move(State.RUNNING, _ANEW),
    },
    State.POLICY_DELETED: {
        Event.RAISED: Move(State.RUNNING, _ANEW),
        Event.LOWERED: Move(State.POLICY_DELETED, "Nothing changes."),
        Event.SNOOZE: _SNOOZED,
        Event.ESCALATE: _CHOSEN,
        Event.CRITICAL: _CRITICAL,
        **_stays(State.POLICY_DELETED, Event.ANSWERED, Event.OVER),
        Event.REOPENED: Move(State.RUNNING, _ANEW),
    },
}


def after(state: State, event: Event) -> State:
    """Return the state that follows an event.

    Raise LookupError if the event cannot happen in this state.
    """
    return MOVES[state][event].to


def moved_by(event: Event, to: State) -> tuple[State, ...]:
    """Return the other states from which an event leads to a state."""
    return tuple(
        state
        for state, moves in MOVES.items()
        if state is not to and event in moves and moves[event].to is to
    )
