"""What becomes of a page and of a message: the states, and the events that move them.

A page is what one recipient is to be told of one alert. It leaves as a message to each contact of
the recipient, by the person's rules to some of them later. These tables are the whole story;
docs/escalations.md shows them.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class PageState(StrEnum):
    """State of a page."""

    #: It is gathered with others, or quiet hours hold it back.
    WAITING = "waiting"
    #: It has left, and no contact has accepted it yet.
    LEFT = "left"
    #: A mail server or a channel of the recipient accepted a message with it.
    ACCEPTED = "accepted"
    #: All contacts of the recipient failed at least once, or there is none. Messages that wait are
    #: tried again.
    FAILED = "failed"
    #: Nobody needs to look at its alert any more.
    WITHDRAWN = "withdrawn"


class PageEvent(StrEnum):
    """What moves a page."""

    DUE = "it is due"
    NOT_ALLOWED = "the person is blocked, gone, or may not see the alert"
    HELD = "the alert is muted, or its project is archived"
    NO_CONTACT = "there is no contact"
    TAKEN = "a contact accepts it"
    FOLLOWS = "a rule of the person is due"
    FIRST_FAILED = "all contacts that were told have failed, and others follow later"
    ALL_FAILED = "all contacts have failed"
    OVER = "the alert is answered or over"


class MessageState(StrEnum):
    """State of a message to a contact."""

    WAITING = "waiting"
    SENT = "sent"
    GIVEN_UP = "given_up"
    #: A code or a test that was not sent; these are tried once.
    FAILED = "failed"
    #: Nothing of it had to be said any more.
    WITHDRAWN = "withdrawn"
    #: It may not be sent any more, or not now. It is stored as withdrawn, with a reason.
    CANCELLED = "cancelled"


#: How a message is stored that was given up and then queued again, as another message.
QUEUED_AGAIN = "again"
#: Attempts to send something to a contact that failed are counted beside messages that ended.
FAILED_ATTEMPT = "failed_attempt"
#: The states of a message that was sent, or will not be.
ENDED = tuple(state for state in MessageState if state is not MessageState.WAITING)


class MessageEvent(StrEnum):
    """What moves a message."""

    TAKEN = "the mail server or channel accepts it"
    FAILED = "an attempt fails"
    REFUSED = "it is refused for good"
    TOO_OLD = "an attempt fails after six hours"
    OTHERS_FAILED = "it leaves later, and all contacts before it have failed"
    NOTHING_TO_SAY = "nothing of it is true any more"
    NOT_ALLOWED = "none of its pages may be sent"


class Move(NamedTuple):
    """Where an event leads, and what is done then, as a sentence."""

    to: str
    what: str


_STAYS = "Nothing changes."
_CANCELLED = (
    "Messages that have not been sent are cancelled, and the activity of the alert gives the "
    "reason."
)
_FOLLOWS = "The contact gets its message: nobody has answered yet."
PAGES: Mapping[PageState, Mapping[PageEvent, Move]] = {
    PageState.WAITING: {
        PageEvent.DUE: Move(
            PageState.LEFT,
            "It leaves with the other due pages of the recipient. A message goes to each contact, "
            "at once or as long after as the person's rules say. If those that are told first are "
            "failing, the others do not wait. If all are, one goes to the address of the account "
            "as well.",
        ),
        PageEvent.NOT_ALLOWED: Move(PageState.FAILED, "The activity of the alert says why."),
        PageEvent.NO_CONTACT: Move(PageState.FAILED, "The activity of the alert says so."),
        PageEvent.HELD: Move(
            PageState.WAITING,
            "It is not sent. The activity of the alert gives the reason, and the page is checked "
            "again within 30 seconds, or later while the project is archived.",
        ),
        PageEvent.OVER: Move(PageState.WITHDRAWN, "It does not leave."),
    },
    PageState.LEFT: {
        PageEvent.TAKEN: Move(PageState.ACCEPTED, "The escalation has reached somebody."),
        PageEvent.FOLLOWS: Move(PageState.LEFT, _FOLLOWS),
        PageEvent.NOT_ALLOWED: Move(PageState.FAILED, _CANCELLED),
        PageEvent.HELD: Move(
            PageState.WAITING,
            "It waits for another message, as a page that was not sent yet. If an attempt may have "
            "succeeded, it stays, and a new page to all contacts waits in its place.",
        ),
        PageEvent.FIRST_FAILED: Move(PageState.LEFT, "The others are told at once."),
        PageEvent.ALL_FAILED: Move(
            PageState.FAILED,
            "If no message went to contacts without a rule, or to the address of the account, one "
            "goes there, and the page stays. Otherwise the activity says it, and maintainers are "
            "told.",
        ),
        PageEvent.OVER: Move(PageState.WITHDRAWN, "Who was told is told what became of it."),
    },
    PageState.FAILED: {
        PageEvent.TAKEN: Move(PageState.ACCEPTED, "A later attempt reached the recipient."),
        PageEvent.NOT_ALLOWED: Move(PageState.FAILED, _CANCELLED),
        PageEvent.HELD: Move(
            PageState.FAILED, "It waits for another message. A later attempt may still reach them."
        ),
        PageEvent.OVER: Move(PageState.WITHDRAWN, "No further attempt is made."),
    },
    PageState.ACCEPTED: {
        PageEvent.TAKEN: Move(PageState.ACCEPTED, _STAYS),
        PageEvent.FOLLOWS: Move(PageState.ACCEPTED, _FOLLOWS),
        PageEvent.NOT_ALLOWED: Move(PageState.ACCEPTED, _CANCELLED),
        PageEvent.HELD: Move(
            PageState.ACCEPTED,
            "Messages to further contacts are cancelled. A new page to all contacts waits.",
        ),
        PageEvent.OVER: Move(PageState.WITHDRAWN, "Who was told is told what became of it."),
    },
    PageState.WITHDRAWN: {},
}
_AGAIN = "It is tried again after 10 seconds, then after pauses of up to 5 minutes."
MESSAGES: Mapping[MessageState, Mapping[MessageEvent, Move]] = {
    MessageState.WAITING: {
        MessageEvent.TAKEN: Move(MessageState.SENT, "Its pages are accepted."),
        MessageEvent.FAILED: Move(MessageState.WAITING, f"{_AGAIN} A code or test ends as failed."),
        MessageEvent.REFUSED: Move(MessageState.GIVEN_UP, "The activity of its alerts says so."),
        MessageEvent.TOO_OLD: Move(MessageState.GIVEN_UP, "The activity of its alerts says so."),
        MessageEvent.OTHERS_FAILED: Move(MessageState.WAITING, "It is due at once."),
        MessageEvent.NOTHING_TO_SAY: Move(MessageState.WITHDRAWN, "It is not sent."),
        MessageEvent.NOT_ALLOWED: Move(
            MessageState.CANCELLED, "It is not sent. The activity of its alerts gives the reason."
        ),
    },
    MessageState.SENT: {},
    MessageState.GIVEN_UP: {},
    MessageState.FAILED: {},
    MessageState.WITHDRAWN: {},
    MessageState.CANCELLED: {},
}


def outcomes_before(outcome: PageState, event: PageEvent) -> frozenset[PageState]:
    """Return the states from which an event leads a page to an outcome."""
    return frozenset(
        state for state, moves in PAGES.items() if event in moves and moves[event].to == outcome
    ) - {outcome}


def stored_outcome(state: MessageState) -> str:
    """Return how an ended message is stored: releases before this one know no `cancelled`."""
    return MessageState.WITHDRAWN.value if state is MessageState.CANCELLED else state.value


def shown_state(outcome: str | None, cancelled_because: str | None) -> MessageState:
    """Return the state of a stored message."""
    if outcome == QUEUED_AGAIN:
        return MessageState.GIVEN_UP
    state = MessageState(outcome or MessageState.WAITING)
    is_cancelled = state is MessageState.WITHDRAWN and cancelled_because is not None
    return MessageState.CANCELLED if is_cancelled else state


def message_after(event: MessageEvent) -> MessageState:
    """Return the state to which an event leads a message that waits."""
    return MessageState(MESSAGES[MessageState.WAITING][event].to)
