"""Fixtures: pages, and the mail server that gets them."""

from collections.abc import Iterator

import pytest

from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.notifications.paging import Pages
from web.settings.environment import Settings


@pytest.fixture
def mailbox() -> Mailbox:
    """Return the mailbox of the mail server."""
    return Mailbox()


@pytest.fixture
def pages(settings: Settings, mailbox: Mailbox) -> Iterator[Pages]:
    """Open the pages of the test's own database."""
    with running_mail_server(mailbox) as port:
        made = Pages(settings, port)
        yield made
        made.close()
