"""States of pages and messages, and the transitions between them.

A page notifies one recipient about one alert. It is sent as a message to each contact of the
recipient; notification rules can delay some of these messages. docs/escalation-states.md lists the
transitions that this module defines.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class PageState(StrEnum):
    """State of a page, from waiting to its outcome."""

    #: State of a page that waits for batching or is held by quiet hours.
    WAITING = "waiting"
    #: State of a page in a batch that no contact has accepted yet.
    LEFT = "left"
    #: State after a mail server or a channel of the recipient accepted a message with the page.
    ACCEPTED = "accepted"
    #: State after all contacts of the recipient failed at least once, or if the recipient has no
    #: contacts. Queued messages are retried.
    FAILED = "failed"
    #: State of a page about an alert that no longer needs attention.
    WITHDRAWN = "withdrawn"


class PageEvent(StrEnum):
    """Events that change the state of a page."""

    DUE = "the page is due"
    NOT_ALLOWED = "the person's account is locked or deleted, or the person cannot see the alert"
    HELD = "the alert is muted, or its project is archived"
    NO_CONTACT = "the recipient has no contact"
    TAKEN = "a contact accepts the page"
    FOLLOWS = "a message that a notification rule delays is due"
    FIRST_FAILED = "all contacts that were notified have failed, and other messages are delayed"
    ALL_FAILED = "all contacts have failed"
    OVER = "the alert is acknowledged, snoozed, ignored or resolved"


class MessageState(StrEnum):
    """State of a message to a contact."""

    WAITING = "waiting"
    SENT = "sent"
    GIVEN_UP = "given_up"
    #: State of a code or test message that could not be sent. Such messages are tried only once.
    FAILED = "failed"
    #: State of a message that no longer had any content.
    WITHDRAWN = "withdrawn"
    #: State of a message that must not be sent. It is stored as `withdrawn`, with a reason.
    CANCELLED = "cancelled"


#: Stored outcome of a message that was given up and then queued again as another message.
REQUEUED_OUTCOME = "again"
#: Key of the total number of failed attempts, which is stored with the totals of completed
#: messages.
FAILED_ATTEMPT_TOTAL = "failed_attempt"
#: States of a message that was sent, or will never be sent.
ENDED_STATES = tuple(state for state in MessageState if state is not MessageState.WAITING)


class MessageEvent(StrEnum):
    """Events that change the state of a message."""

    TAKEN = "the mail server or channel accepts the message"
    FAILED = "an attempt fails"
    REFUSED = "the message is rejected permanently"
    TOO_OLD = "an attempt fails after six hours"
    GIVEN_UP = "an administrator gives up the message"
    OTHERS_FAILED = "the message is delayed, and all contacts that were notified have failed"
    NOTHING_TO_SAY = "none of the alerts in the message needs attention anymore"
    NOT_ALLOWED = "none of the pages in the message may be sent"


class DeliveryTransition(NamedTuple):
    """The next state after an event, with a description of the effect."""

    to: str
    what: str


_NO_CHANGE_TEXT = "Nothing changes."
_CANCELLED_TEXT = (
    "Messages that have not been sent are canceled, and the activity of the alert gives the reason."
)
_DELAYED_MESSAGE_TEXT = "The message to this contact is sent, because nobody has answered yet."
PAGE_TRANSITIONS: Mapping[PageState, Mapping[PageEvent, DeliveryTransition]] = {
    PageState.WAITING: {
        PageEvent.DUE: DeliveryTransition(
            PageState.LEFT,
            "The page is sent together with the other due pages of the recipient. Each contact "
            "receives a message, immediately or after the delay of its notification rule. If all "
            "contacts with the shortest delay are failing, messages to other contacts are not "
            "delayed. If all contacts are failing, a message is also sent to the account's email "
            "address.",
        ),
        PageEvent.NOT_ALLOWED: DeliveryTransition(
            PageState.FAILED, "The activity of the alert gives the reason."
        ),
        PageEvent.NO_CONTACT: DeliveryTransition(
            PageState.FAILED, "The activity of the alert shows this."
        ),
        PageEvent.HELD: DeliveryTransition(
            PageState.WAITING,
            "The page is not sent. The activity of the alert gives the reason, and the page is "
            "checked again within 30 seconds, or later while the project is archived.",
        ),
        PageEvent.OVER: DeliveryTransition(PageState.WITHDRAWN, "The page is not sent."),
    },
    PageState.LEFT: {
        PageEvent.TAKEN: DeliveryTransition(
            PageState.ACCEPTED, "The escalation has reached somebody."
        ),
        PageEvent.FOLLOWS: DeliveryTransition(PageState.LEFT, _DELAYED_MESSAGE_TEXT),
        PageEvent.NOT_ALLOWED: DeliveryTransition(PageState.FAILED, _CANCELLED_TEXT),
        PageEvent.HELD: DeliveryTransition(
            PageState.WAITING,
            "The page waits to be sent in a new message. If an attempt may have succeeded, the "
            "page does not change, and a new page to all contacts waits instead.",
        ),
        PageEvent.FIRST_FAILED: DeliveryTransition(
            PageState.LEFT, "The other contacts receive their messages immediately."
        ),
        PageEvent.ALL_FAILED: DeliveryTransition(
            PageState.FAILED,
            "If contacts without a rule or the account's email address have not received a message "
            "yet, messages are sent to them, and the state does not change. Otherwise the activity "
            "shows the failure, and the maintainers are notified.",
        ),
        PageEvent.OVER: DeliveryTransition(
            PageState.WITHDRAWN, "Recipients of the page receive an update."
        ),
    },
    PageState.FAILED: {
        PageEvent.TAKEN: DeliveryTransition(
            PageState.ACCEPTED, "A later attempt reached the recipient."
        ),
        PageEvent.NOT_ALLOWED: DeliveryTransition(PageState.FAILED, _CANCELLED_TEXT),
        PageEvent.HELD: DeliveryTransition(
            PageState.FAILED,
            "The page waits to be sent in a new message. A later attempt can still succeed.",
        ),
        PageEvent.OVER: DeliveryTransition(PageState.WITHDRAWN, "No further attempt is made."),
    },
    PageState.ACCEPTED: {
        PageEvent.TAKEN: DeliveryTransition(PageState.ACCEPTED, _NO_CHANGE_TEXT),
        PageEvent.FOLLOWS: DeliveryTransition(PageState.ACCEPTED, _DELAYED_MESSAGE_TEXT),
        PageEvent.NOT_ALLOWED: DeliveryTransition(PageState.ACCEPTED, _CANCELLED_TEXT),
        PageEvent.HELD: DeliveryTransition(
            PageState.ACCEPTED,
            "Messages to further contacts are canceled. A new page to all contacts waits.",
        ),
        PageEvent.OVER: DeliveryTransition(
            PageState.WITHDRAWN, "Recipients of the page receive an update."
        ),
    },
    PageState.WITHDRAWN: {},
}
_RETRY_TEXT = "The message is retried after 10 seconds, then after pauses of up to 5 minutes."
MESSAGE_TRANSITIONS: Mapping[MessageState, Mapping[MessageEvent, DeliveryTransition]] = {
    MessageState.WAITING: {
        MessageEvent.TAKEN: DeliveryTransition(
            MessageState.SENT, "The pages in the message are accepted."
        ),
        MessageEvent.FAILED: DeliveryTransition(
            MessageState.WAITING, f"{_RETRY_TEXT} Codes and test messages are not retried."
        ),
        MessageEvent.REFUSED: DeliveryTransition(
            MessageState.GIVEN_UP, "The activity of the alerts shows this."
        ),
        MessageEvent.TOO_OLD: DeliveryTransition(
            MessageState.GIVEN_UP, "The activity of the alerts shows this."
        ),
        MessageEvent.GIVEN_UP: DeliveryTransition(
            MessageState.GIVEN_UP, "The activity of the alerts shows this."
        ),
        MessageEvent.OTHERS_FAILED: DeliveryTransition(
            MessageState.WAITING, "The message is due immediately."
        ),
        MessageEvent.NOTHING_TO_SAY: DeliveryTransition(
            MessageState.WITHDRAWN, "The message is not sent."
        ),
        MessageEvent.NOT_ALLOWED: DeliveryTransition(
            MessageState.CANCELLED,
            "The message is not sent. The activity of the alerts gives the reason.",
        ),
    },
    MessageState.SENT: {},
    MessageState.GIVEN_UP: {},
    MessageState.FAILED: {},
    MessageState.WITHDRAWN: {},
    MessageState.CANCELLED: {},
}


def find_page_states_before(outcome: PageState, event: PageEvent) -> frozenset[PageState]:
    """Return the page states from which an event leads to the given outcome."""
    return frozenset(
        state
        for state, moves in PAGE_TRANSITIONS.items()
        if event in moves and moves[event].to == outcome
    ) - {outcome}


def get_message_state(outcome: str | None, cancelled_because: str | None) -> MessageState:
    """Return the state of a stored message."""
    if outcome == REQUEUED_OUTCOME:
        return MessageState.GIVEN_UP
    state = MessageState(outcome or MessageState.WAITING)
    is_cancelled = state is MessageState.WITHDRAWN and cancelled_because is not None
    return MessageState.CANCELLED if is_cancelled else state


def get_message_state_after(event: MessageEvent) -> MessageState:
    """Return the state of a queued message after an event."""
    return MessageState(MESSAGE_TRANSITIONS[MessageState.WAITING][event].to)
