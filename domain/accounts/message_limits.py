"""Limits on messages that users can send to addresses of their choice.

Each kind of message is counted by recipient, by sender and by subject. The counters are in the
database, so that the limits apply to all hosts together. Addresses are stored as keyed hashes.
"""

from dataclasses import dataclass
from datetime import timedelta

from domain.access.actor import UnitOfWork
from domain.accounts.attempt_counters import AttemptLimit, consume_attempt
from domain.core.errors import TooManyAttemptsError
from domain.core.keyring import Keyring
from models.case_folding import fold_text

_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class MessageLimit:
    """The limits for a kind of message. A limit that is None does not apply."""

    #: Plural name of this kind of message, used in counters and errors.
    name: str
    #: Maximum number of messages from all senders to one address within `recipient_window`.
    per_recipient: int
    recipient_window: timedelta
    #: Maximum number of messages from one sender to one address within `recipient_window`. It is
    #: lower than `per_recipient`, so that one sender cannot use up the limit for all senders.
    per_pair: int | None = None
    #: Maximum number of messages from one sender to all addresses within an hour.
    per_sender: int | None = None
    #: Maximum number of messages about one project, group or webhook within an hour.
    per_place: int | None = None


INVITATION_LIMIT = MessageLimit(
    name="invitations",
    per_recipient=20,
    recipient_window=_DAY,
    per_pair=5,
    per_sender=200,
    per_place=200,
)
CONFIRMATION_LIMIT = MessageLimit(
    name="confirmation messages", per_recipient=10, recipient_window=_HOUR
)
CONTACT_MESSAGE_LIMIT = MessageLimit(
    name="codes and test messages",
    per_recipient=20,
    recipient_window=_HOUR,
    per_sender=40,
    per_place=20,
)
TEST_REQUEST_LIMIT = MessageLimit(
    name="test requests", per_recipient=60, recipient_window=_HOUR, per_sender=120
)


class RecipientLimitError(TooManyAttemptsError):
    """Error for a recipient who received too many messages of one kind."""


@dataclass(frozen=True, kw_only=True)
class LimitedMessage:
    """A message or request that is about to be sent, with the values that limits apply to."""

    recipient: str
    #: ID of the sender. None for the operator, whose messages are counted only by recipient.
    sender_id: int | None
    #: Project, group or webhook that the message is about, such as `group 4`, or None.
    place: str | None = None


def count_message(work: UnitOfWork, limit: MessageLimit, sending: LimitedMessage) -> None:
    """Count a message before it is sent.

    Raise TooManyAttemptsError if there are too many messages from the sender, or about the project,
    group or webhook. Raise RecipientLimitError if the recipient received too many messages, from
    this sender or in total.
    """

    def count_toward_limit(subject: str, attempts: int, window: timedelta) -> None:
        counted = AttemptLimit(subject=subject, attempts=attempts, window=window)
        keyring = work.policy(Keyring)
        consume_attempt(counted, session=work.session, keyring=keyring, now=work.now)

    try:
        if sending.sender_id is not None and limit.per_sender is not None:
            count_toward_limit(f"{limit.name} of user {sending.sender_id}", limit.per_sender, _HOUR)
        if sending.place is not None and limit.per_place is not None:
            count_toward_limit(f"{limit.name} of {sending.place}", limit.per_place, _HOUR)
    except TooManyAttemptsError as error:
        message = (
            f"Too many {limit.name} were sent within an hour. "
            f"{_format_retry_advice(error.retry_after)}"
        )
        raise TooManyAttemptsError(message, retry_after=error.retry_after) from None
    try:
        subject, window = f"{limit.name} to {fold_text(sending.recipient)}", limit.recipient_window
        if sending.sender_id is not None and limit.per_pair is not None:
            count_toward_limit(f"{subject} of user {sending.sender_id}", limit.per_pair, window)
        count_toward_limit(subject, limit.per_recipient, window)
    except TooManyAttemptsError as error:
        message = (
            f"Too many {limit.name} were sent to this recipient. "
            f"{_format_retry_advice(error.retry_after)}"
        )
        raise RecipientLimitError(message, retry_after=error.retry_after) from None


def _format_retry_advice(seconds: int) -> str:
    minutes = max(1, round(seconds / 60))
    if minutes < 2 * 60:
        return f"Try again in {minutes} minute{'s' if minutes > 1 else ''}."
    return f"Try again in {round(minutes / 60)} hours."
