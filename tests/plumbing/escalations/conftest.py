"""A project whose alerts page people, with the mail server that their pages go to."""

from collections.abc import Iterator

import pytest

from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.notifications.escalations import Escalated
from web.settings.reader import Settings


@pytest.fixture
def mailbox() -> Mailbox:
    """What the mail server took."""
    return Mailbox()


@pytest.fixture
def shop(settings: Settings, mailbox: Mailbox) -> Iterator[Escalated]:
    """A project in a database of the test's own."""
    with running_mail_server(mailbox) as port:
        made = Escalated(settings, port)
        yield made
        made.close()
