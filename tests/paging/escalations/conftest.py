"""Fixtures: a project whose alerts page users, and the mail server for these pages."""

from collections.abc import Iterator

import pytest

from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.notifications.escalations import Escalated
from web.settings.environment import Settings


@pytest.fixture
def mailbox() -> Mailbox:
    """Return the mailbox of the mail server."""
    return Mailbox()


@pytest.fixture
def shop(settings: Settings, mailbox: Mailbox) -> Iterator[Escalated]:
    """Create a project in the test's own database."""
    with running_mail_server(mailbox) as port:
        made = Escalated(settings, port)
        yield made
        made.close()
