"""Fixtures for pages of the app's database, with a mail server that receives them."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.notifications.paging import Pages
from web.settings.environment import Settings


@pytest.fixture
def mailbox() -> Mailbox:
    """The emails that the mail server received."""
    return Mailbox()


@pytest.fixture
def pages(settings: Settings, mailbox: Mailbox) -> Iterator[Pages]:
    """The pages of the app's database, at the app's time."""
    with running_mail_server(mailbox) as port:
        made = Pages(settings, port)
        made.now = datetime.now(UTC)
        yield made
        made.close()
