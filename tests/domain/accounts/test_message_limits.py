"""Limits of messages that users can cause to addresses of their choice."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.orm import Session

from domain.accounts.message_limits import (
    INVITATION_LIMIT,
    LimitedMessage,
    MessageLimit,
    RecipientLimitError,
    count_message,
)
from domain.core.errors import TooManyAttemptsError
from domain.core.keyring import Keyring
from tests.support.database.work import work_in
from web.database.engine import open_engine
from web.settings.environment import Settings

_HOUR = timedelta(hours=1)
_NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
_LIMIT = MessageLimit(
    name="letters", per_recipient=2, recipient_window=_HOUR * 24, per_sender=3, per_place=4
)


class Post:
    """Sends messages with a new database."""

    def __init__(self, settings: Settings) -> None:
        self.engine, self.now = open_engine(settings), _NOON
        self.keyring = Keyring(settings.secret_key)

    def send(
        self,
        recipient: str,
        sender_id: int | None = 1,
        place: str | None = None,
        limit: MessageLimit = _LIMIT,
    ) -> None:
        sending = LimitedMessage(recipient=recipient, sender_id=sender_id, place=place)
        with Session(self.engine) as session, session.begin():
            work = work_in(session, now=self.now, policies=[self.keyring])
            count_message(work, limit, sending)


@pytest.fixture
def post(settings: Settings) -> Iterator[Post]:
    made = Post(settings)
    yield made
    made.engine.dispose()


def test_an_address_gets_few_messages_of_all_senders_in_any_spelling(post: Post) -> None:
    post.send("bob@people.example", sender_id=1)
    post.send("Bob@People.example", sender_id=2)
    with pytest.raises(RecipientLimitError, match=r"recipient\. Try again in 24 hours\.") as error:
        post.send("bob@people.example", sender_id=3)
    assert error.value.retry_after == 24 * 3600
    post.now += timedelta(days=1)
    post.send("bob@people.example", sender_id=3)


def test_one_sender_cannot_use_up_the_invitations_of_others(post: Post) -> None:
    for _ in range(5):
        post.send("bob@people.example", sender_id=1, limit=INVITATION_LIMIT)
    for _ in range(30):
        with pytest.raises(RecipientLimitError):
            post.send("bob@people.example", sender_id=1, limit=INVITATION_LIMIT)
    post.send("bob@people.example", sender_id=2, limit=INVITATION_LIMIT)


def test_a_user_sends_few_messages_per_hour(post: Post) -> None:
    for number in range(3):
        post.send(f"{number}@people.example")
    with pytest.raises(
        TooManyAttemptsError, match=r"within an hour\. Try again in 60 minutes"
    ) as error:
        post.send("3@people.example")
    assert not isinstance(error.value, RecipientLimitError)
    post.send("3@people.example", sender_id=2)
    post.send("4@people.example", sender_id=None)
    post.now += _HOUR
    post.send("4@people.example")


def test_few_messages_about_a_project_are_sent_per_hour(post: Post) -> None:
    for number in range(4):
        post.send(f"{number}@people.example", sender_id=number, place="project 1")
    with pytest.raises(TooManyAttemptsError, match="Too many letters"):
        post.send("4@people.example", sender_id=4, place="project 1")
    post.send("4@people.example", sender_id=4, place="project 2")
