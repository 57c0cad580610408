"""The states of pages and messages, and the events that change them.

A page notifies one recipient about one alert. It is sent as a message to each contact of the
recipient; notification rules can delay some of these messages. docs/escalation-states.md shows
these tables.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class PageState(StrEnum):
    """State of a page."""

    #: The page waits for batching, or quiet hours hold it.
    WAITING = "waiting"
    #: The page is in a batch, and no contact has accepted it yet.
    LEFT = "left"
    #: A mail server or a channel of the recipient accepted a message with the page.
    ACCEPTED = "accepted"
    #: All contacts of the recipient failed at least once, or there are none. Queued messages are
    #: retried.
    FAILED = "failed"
    #: The alert no longer needs attention.
    WITHDRAWN = "withdrawn"


class PageEvent(StrEnum):
    """The events that change the state of a page."""

    DUE = "it is due"
    NOT_ALLOWED = "the person is locked, deleted, or cannot see the alert"
    HELD = "the alert is muted, or its project is archived"
    NO_CONTACT = "there is no contact"
    TAKEN = "a contact accepts it"
    FOLLOWS = "a notification rule of the person is due"
    FIRST_FAILED = "all contacts that were notified have failed, and others follow later"
    ALL_FAILED = "all contacts have failed"
    OVER = "the alert is acknowledged, snoozed, ignored or resolved"


class MessageState(StrEnum):
    """State of a message to a contact."""

    WAITING = "waiting"
    SENT = "sent"
    GIVEN_UP = "given_up"
    #: A code or test could not be sent. These are tried only once.
    FAILED = "failed"
    #: The message had no content any more.
    WITHDRAWN = "withdrawn"
    #: The message may not be sent now or at all. It is stored as withdrawn, with a reason.
    CANCELLED = "cancelled"


#: Stored outcome of a message that was given up and then queued again as another message.
QUEUED_AGAIN = "again"
#: Key of the total of failed attempts, which is stored with the totals of ended messages.
FAILED_ATTEMPT = "failed_attempt"
#: States of a message that was sent, or will never be sent.
ENDED = tuple(state for state in MessageState if state is not MessageState.WAITING)


class MessageEvent(StrEnum):
    """The events that change the state of a message."""

    TAKEN = "the mail server or channel accepts it"
    FAILED = "an attempt fails"
    REFUSED = "it is rejected permanently"
    TOO_OLD = "an attempt fails after six hours"
    OTHERS_FAILED = "it was to be sent later, and all earlier contacts have failed"
    NOTHING_TO_SAY = "none of its alerts needs attention anymore"
    NOT_ALLOWED = "none of its pages may be sent"


class Move(NamedTuple):
    """The next state after an event, with a description of the effect in sentences."""

    to: str
    what: str


_STAYS = "Nothing changes."
_CANCELLED = (
    "Messages that have not been sent are cancelled, and the activity of the alert gives the "
    "reason."
)
_FOLLOWS = "The message to this contact is sent, because nobody has answered yet."
PAGES: Mapping[PageState, Mapping[PageEvent, Move]] = {
    PageState.WAITING: {
        PageEvent.DUE: Move(
            PageState.LEFT,
            "It is sent together with the other due pages of the recipient. Each contact gets a "
            "message, immediately or after the delay of its notification rule. If the contacts "
            "that come first are failing, the others do not wait. If all contacts are failing, "
            "the email address of the account gets a message as well.",
        ),
        PageEvent.NOT_ALLOWED: Move(
            PageState.FAILED, "The activity of the alert gives the reason."
        ),
        PageEvent.NO_CONTACT: Move(PageState.FAILED, "The activity of the alert shows this."),
        PageEvent.HELD: Move(
            PageState.WAITING,
            "It is not sent. The activity of the alert gives the reason, and the page is checked "
            "again within 30 seconds, or later while the project is archived.",
        ),
        PageEvent.OVER: Move(PageState.WITHDRAWN, "It is not sent."),
    },
    PageState.LEFT: {
        PageEvent.TAKEN: Move(PageState.ACCEPTED, "The escalation has reached somebody."),
        PageEvent.FOLLOWS: Move(PageState.LEFT, _FOLLOWS),
        PageEvent.NOT_ALLOWED: Move(PageState.FAILED, _CANCELLED),
        PageEvent.HELD: Move(
            PageState.WAITING,
            "It waits to be sent in a new message. If an attempt may have succeeded, the page "
            "stays as it is, and a new page to all contacts waits instead.",
        ),
        PageEvent.FIRST_FAILED: Move(
            PageState.LEFT, "The other contacts get their messages immediately."
        ),
        PageEvent.ALL_FAILED: Move(
            PageState.FAILED,
            "If contacts without a rule, or the email address of the account, got no message yet, "
            "they get one, and the state stays the same. Otherwise the activity shows the failure, "
            "and the maintainers are notified.",
        ),
        PageEvent.OVER: Move(PageState.WITHDRAWN, "Recipients of the page get an update."),
    },
    PageState.FAILED: {
        PageEvent.TAKEN: Move(PageState.ACCEPTED, "A later attempt reached the recipient."),
        PageEvent.NOT_ALLOWED: Move(PageState.FAILED, _CANCELLED),
        PageEvent.HELD: Move(
            PageState.FAILED,
            "It waits to be sent in a new message. A later attempt can still succeed.",
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
        PageEvent.OVER: Move(PageState.WITHDRAWN, "Recipients of the page get an update."),
    },
    PageState.WITHDRAWN: {},
}
_AGAIN = "It is retried after 10 seconds, then after pauses of up to 5 minutes."
MESSAGES: Mapping[MessageState, Mapping[MessageEvent, Move]] = {
    MessageState.WAITING: {
        MessageEvent.TAKEN: Move(MessageState.SENT, "Its pages are accepted."),
        MessageEvent.FAILED: Move(
            MessageState.WAITING, f"{_AGAIN} Codes and test messages are not retried."
        ),
        MessageEvent.REFUSED: Move(MessageState.GIVEN_UP, "The activity of its alerts shows this."),
        MessageEvent.TOO_OLD: Move(MessageState.GIVEN_UP, "The activity of its alerts shows this."),
        MessageEvent.OTHERS_FAILED: Move(MessageState.WAITING, "It is due immediately."),
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
    """Return the states from which an event changes a page to an outcome."""
    return frozenset(
        state for state, moves in PAGES.items() if event in moves and moves[event].to == outcome
    ) - {outcome}


def stored_outcome(state: MessageState) -> str:
    """Return the stored outcome of an ended message; former releases do not support `cancelled`."""
    return MessageState.WITHDRAWN.value if state is MessageState.CANCELLED else state.value


def shown_state(outcome: str | None, cancelled_because: str | None) -> MessageState:
    """Return the state of a stored message."""
    if outcome == QUEUED_AGAIN:
        return MessageState.GIVEN_UP
    state = MessageState(outcome or MessageState.WAITING)
    is_cancelled = state is MessageState.WITHDRAWN and cancelled_because is not None
    return MessageState.CANCELLED if is_cancelled else state


def message_after(event: MessageEvent) -> MessageState:
    """Return the state to which an event changes a queued message."""
    return MessageState(MESSAGES[MessageState.WAITING][event].to)
