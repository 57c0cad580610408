"""The states of an escalation, and the events that move it: one table, which the code asks.

An escalation belongs to an alert since it was last opened. `domain/paging/notifications/states.py`
has the states of its pages. docs/escalations.md shows these tables, and a test compares them.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class State(StrEnum):
    """How it stands with the paging for an alert; the value is stored, except for UNPROCESSED."""

    #: The worker has not processed the alert yet, so the alert has no row or one that is outdated.
    UNPROCESSED = "unprocessed"
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
    #: Somebody acknowledged the alert, which holds until `next_at`.
    ACKNOWLEDGED = "acknowledged"
    #: The acknowledgement does not hold any more: the alert is triggered, and the user who
    #: acknowledged it is notified first.
    LAPSED = "lapsed"
    #: The alert rests until `next_at`; its status is acknowledged.
    SNOOZED = "snoozed"
    #: Somebody escalated an alert that pages nobody: the next step is about to be taken.
    ESCALATED = "escalated"
    #: No policy is there for the alert.
    NO_POLICY = "no_policy"
    #: Of releases that ended an escalation with its policy.
    POLICY_DELETED = "policy_deleted"


#: Something is decided when the time has come.
UNDER_WAY = (State.RUNNING, State.HELD)


class Event(StrEnum):
    """What moves an escalation."""

    FIRST_LOOK = "the worker processes the alert, which is triggered"
    STEP_DUE = "a step is due"
    ACCEPTED = "a contact accepts a page"
    FAILED = "all pages of the last step have failed"
    ROUND_OVER = "the last step of a round was judged"
    ALL_TAKEN = "the last step of the last round was judged, and somebody was reached"
    NO_ANSWER = "nobody answers"
    RAISED = "the alert becomes more severe"
    LOWERED = "the alert becomes less severe"
    CRITICAL = "the alert was acknowledged below critical and becomes critical"
    ANSWERED = "the alert is acknowledged, and its policy has no time-out"
    TIMED = "the alert is acknowledged, and its policy has a time-out"
    RENEWED = "somebody is still on it"
    LAPSE = "the acknowledgement runs out"
    SNOOZE = "somebody snoozes the alert"
    WOKEN = "the snooze ends, or somebody wakes the alert"
    ESCALATE = "somebody escalates the alert"
    OVER = "the alert is ignored, resolved or deleted"
    REOPENED = "the alert is triggered again"
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
_TIMED = Move(
    State.ACKNOWLEDGED, "Pages that have not left do not leave. The acknowledgement holds so long."
)
_SNOOZED = Move(
    State.SNOOZED,
    "The alert is acknowledged, and pages nobody until then. Pages that have not left do not "
    "leave.",
)
_ESCALATED = Move(State.ESCALATED, "The alert is triggered again.")
_AT_ONCE = Move(State.ESCALATED, "Its next step is due at once.")
_CHOSEN = Move(
    State.ESCALATED,
    "If a policy is chosen now, its first step is taken immediately. Otherwise this is rejected.",
)
_CRITICAL = Move(
    State.LAPSED,
    "The alert is triggered again, and the timeline says why, unless the policy that is chosen now "
    "turns this off.",
)
_GOES_ON = Move(
    State.RUNNING,
    "The step that would have been next is taken immediately. If another policy is chosen now, "
    "or the round was over, step 1 is.",
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

#: These say what the worker finds when it processes the alert for the first time.
_UNPROCESSED = {
    Event.FIRST_LOOK: Move(
        State.RUNNING,
        "The policy that is chosen now begins at step 1. If there is none, nobody is paged.",
    ),
    Event.ANSWERED: Move(State.STOPPED, "The policy is chosen and pages nobody."),
    Event.TIMED: Move(
        State.ACKNOWLEDGED,
        "The policy is chosen and pages nobody. Its acknowledgement time-out counts from the "
        "acknowledgement.",
    ),
    Event.SNOOZE: Move(
        State.SNOOZED, "The policy is chosen immediately and pages nobody until then."
    ),
    Event.OVER: Move(State.STOPPED, "The policy is chosen and pages nobody."),
    Event.ESCALATE: Move(
        State.ESCALATED, "The policy is chosen immediately. The worker takes its first step."
    ),
    Event.HOLD: Move(State.UNPROCESSED, "The worker holds the escalation back when it begins."),
    **_stays(State.UNPROCESSED, Event.RAISED, Event.LOWERED),
    **_stays(State.UNPROCESSED, Event.POLICY_CHANGED, Event.POLICY_GONE),
}

MOVES: Mapping[State, Mapping[Event, Move]] = {
    State.UNPROCESSED: _UNPROCESSED,
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
        Event.ESCALATE: Move(
            State.RUNNING,
            "The next step is taken immediately, and after the last step of a round step 1.",
        ),
        **_ANSWERS,
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
        Event.ESCALATE: Move(
            State.RUNNING,
            "While something holds it back, this is rejected. Otherwise the next step is taken "
            "immediately.",
        ),
        **_ANSWERS,
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
        Event.HOLD: Move(
            State.EXHAUSTED, "No maintainers are told until nothing holds the alert back."
        ),
        Event.RELEASE: Move(State.EXHAUSTED, "The time in which somebody can answer begins again."),
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
            "If nobody had answered, the new alert goes on where this one ended, and those who "
            "were paged are paged again: at once, or while it flaps once in a while. Otherwise it "
            "begins anew.",
        ),
        Event.TIMED: Move(
            State.ACKNOWLEDGED, "A step that was due at this moment had stopped it already."
        ),
        Event.ESCALATE: _ESCALATED,
        Event.SNOOZE: _SNOOZED,
        Event.CRITICAL: _CRITICAL,
    },
    State.ACKNOWLEDGED: {
        Event.RENEWED: Move(State.ACKNOWLEDGED, "The acknowledgement holds so long again."),
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
            "Whoever acknowledged it last is paged first. Step 1 of the policy that is chosen now "
            "follows after five minutes, or at once if that person cannot be reached.",
        ),
        Event.ESCALATE: _ESCALATED,
        **_ANSWERS,
        **_stays(State.LAPSED, Event.RAISED, Event.LOWERED),
    },
    State.SNOOZED: {
        Event.WOKEN: Move(State.STOPPED, "The alert is triggered again."),
        Event.RAISED: Move(State.STOPPED, "The alert is triggered again."),
        Event.ESCALATE: _ESCALATED,
        Event.SNOOZE: Move(State.SNOOZED, "The new time counts."),
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
        Event.RAISED: Move(State.RUNNING, "If a policy is chosen now, it begins at step 1."),
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
    """Return the state to which an event leads, or raise LookupError: it cannot happen there."""
    return MOVES[state][event].to


def moved_by(event: Event, to: State) -> tuple[State, ...]:
    """Return the states that an event leads to another one."""
    return tuple(
        state
        for state, moves in MOVES.items()
        if state is not to and event in moves and moves[event].to is to
    )
