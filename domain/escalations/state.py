"""The states of an escalation, and the events that move it: one table, which the code asks.

An escalation belongs to an alert since it was last opened. What becomes of its pages is told by
`domain/notifications/states.py`. docs/escalations.md shows these tables, and a test compares them.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    """How it stands with the paging for an alert; the value is stored."""

    #: The next step is due at `next_at`, or the pages of the last one are waited for.
    RUNNING = "running"
    #: A silence, the archived project or the like holds the next step back.
    HELD = "held"
    #: All steps of all rounds were taken, somebody was reached, and may still answer.
    EXHAUSTED = "exhausted"
    #: Nobody answered in the time that the policy gives between two rounds; maintainers know.
    UNANSWERED = "unanswered"
    #: Somebody acknowledged or ignored the alert, or it was resolved.
    STOPPED = "stopped"
    #: No policy is there for the alert.
    NO_POLICY = "no_policy"
    #: Of releases that ended an escalation with its policy.
    POLICY_DELETED = "policy_deleted"


#: Something is decided when the time has come.
UNDER_WAY = (State.RUNNING, State.HELD)


class Event(StrEnum):
    """What moves an escalation."""

    STEP_DUE = "a step is due"
    ACCEPTED = "a contact accepts a page"
    FAILED = "all pages of the last step have failed"
    ROUND_OVER = "the last step of a round was judged"
    ALL_TAKEN = "the last step of the last round was judged, and somebody was reached"
    NO_ANSWER = "nobody answers"
    RAISED = "the alert becomes more severe"
    LOWERED = "the alert becomes less severe"
    ANSWERED = "the alert is acknowledged, ignored, resolved or deleted"
    REOPENED = "the alert is triggered again by hand"
    BACK = "an alert with the same fingerprint opens soon after this one ended"
    HOLD = "a silence or window begins, or the project is archived"
    RELEASE = "nothing holds it back any more"
    POLICY_CHANGED = "its policy is changed"
    POLICY_GONE = "its policy is deleted, or of a group that its project leaves"
    CLOCK_BACK = "the clock is set back"


class Move(NamedTuple):
    """Where an event leads; `what` says what is done, as sentences."""

    to: State
    what: str


_ANEW = "It begins anew at step 1 of the policy that is chosen now."
_STOPS = Move(State.STOPPED, "Pages that have not left do not leave.")
_KEEPS = "It stays with its policy. Further pages carry the new severity."
_MOVED = "All its times move back by as much as the clock."
_RISES = (
    "If another policy is chosen now, it begins anew there. Otherwise it goes on, and a page that "
    "quiet hours hold back leaves if the alert is critical now."
)
_ROUTED = (
    "The alert goes to the policy that is chosen now, from step 1. If there is none, the activity "
    "and maintainers are told."
)

MOVES: Mapping[State, Mapping[Event, Move]] = {
    State.RUNNING: {
        Event.STEP_DUE: Move(
            State.RUNNING,
            "The step pages whom it reaches. If that is nobody, the activity says why, and the "
            "next step is due at once.",
        ),
        Event.ACCEPTED: Move(State.RUNNING, "The round has reached somebody."),
        Event.FAILED: Move(
            State.RUNNING, "The activity says so, and the next step is due at once."
        ),
        Event.ROUND_OVER: Move(
            State.RUNNING,
            "The next round follows after the pause of the policy. A round that reached nobody "
            "does not count: maintainers are told, and another one follows within half an hour.",
        ),
        Event.ALL_TAKEN: Move(State.EXHAUSTED, "The activity says that nobody else is paged."),
        Event.RAISED: Move(State.RUNNING, _RISES),
        Event.LOWERED: Move(State.RUNNING, _KEEPS),
        Event.ANSWERED: _STOPS,
        Event.HOLD: Move(State.HELD, "The activity says by what, and until when."),
        Event.POLICY_CHANGED: Move(State.RUNNING, "It goes on with the new steps at once."),
        Event.POLICY_GONE: Move(State.RUNNING, _ROUTED),
        Event.CLOCK_BACK: Move(State.RUNNING, _MOVED),
    },
    State.HELD: {
        Event.ACCEPTED: Move(State.HELD, "The round has reached somebody."),
        Event.FAILED: Move(State.HELD, "It counts when nothing holds the escalation back."),
        Event.RAISED: Move(State.HELD, _RISES),
        Event.LOWERED: Move(State.HELD, _KEEPS),
        Event.ANSWERED: _STOPS,
        Event.HOLD: Move(State.HELD, "If it is something else now, the activity says so."),
        Event.RELEASE: Move(
            State.RUNNING, "The activity says so. No time has passed for the steps."
        ),
        Event.POLICY_CHANGED: Move(State.HELD, "It goes on with the new steps when released."),
        Event.POLICY_GONE: Move(State.RUNNING, _ROUTED),
        Event.CLOCK_BACK: Move(State.HELD, _MOVED),
    },
    State.EXHAUSTED: {
        Event.ACCEPTED: Move(State.EXHAUSTED, "Nothing changes."),
        Event.FAILED: Move(State.EXHAUSTED, "Nothing changes: somebody was reached."),
        Event.NO_ANSWER: Move(
            State.UNANSWERED, "The activity says so, maintainers are told, and lists show it."
        ),
        Event.RAISED: Move(State.RUNNING, _ANEW),
        Event.LOWERED: Move(State.EXHAUSTED, "Nothing changes."),
        Event.ANSWERED: _STOPS,
        Event.POLICY_CHANGED: Move(State.EXHAUSTED, "Nothing changes."),
        Event.POLICY_GONE: Move(State.EXHAUSTED, "Nothing changes."),
        Event.CLOCK_BACK: Move(State.EXHAUSTED, _MOVED),
    },
    State.UNANSWERED: {
        Event.ACCEPTED: Move(State.UNANSWERED, "Nothing changes."),
        Event.FAILED: Move(State.UNANSWERED, "Nothing changes."),
        Event.RAISED: Move(State.RUNNING, _ANEW),
        Event.LOWERED: Move(State.UNANSWERED, "Nothing changes."),
        Event.ANSWERED: _STOPS,
        Event.POLICY_CHANGED: Move(State.UNANSWERED, "Nothing changes."),
        Event.POLICY_GONE: Move(State.UNANSWERED, "Nothing changes."),
    },
    State.STOPPED: {
        Event.REOPENED: Move(State.RUNNING, _ANEW),
        Event.BACK: Move(
            State.RUNNING,
            "If nobody had answered, the new alert goes on where this one ended, and those who "
            "were paged are paged again: at once, or while it flaps once in a while. Otherwise it "
            "begins anew.",
        ),
    },
    State.NO_POLICY: {
        Event.RAISED: Move(State.RUNNING, "If a policy is chosen now, it begins at step 1."),
        Event.LOWERED: Move(State.NO_POLICY, "Nothing changes."),
        Event.ANSWERED: Move(State.NO_POLICY, "Nothing changes."),
        Event.REOPENED: Move(State.RUNNING, _ANEW),
    },
    State.POLICY_DELETED: {
        Event.RAISED: Move(State.RUNNING, _ANEW),
        Event.LOWERED: Move(State.POLICY_DELETED, "Nothing changes."),
        Event.ANSWERED: Move(State.POLICY_DELETED, "Nothing changes."),
        Event.REOPENED: Move(State.RUNNING, _ANEW),
    },
}


def after(state: State, event: Event) -> State:
    """Return the state to which an event leads, or raise LookupError: it cannot happen there."""
    return MOVES[state][event].to


def moved_by(event: Event, to: State) -> tuple[State, ...]:
    """Return the states that an event leads to another one."""
    return tuple(
        state
        for state, moves in MOVES.items()
        if state is not to and event in moves and moves[event].to is to
    )
