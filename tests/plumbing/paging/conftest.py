"""Pages with the mail server that they go to."""

from collections.abc import Iterator

import pytest

from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.notifications.paging import Pages
from web.settings.reader import Settings


@pytest.fixture
def mailbox() -> Mailbox:
    """What the mail server took."""
    return Mailbox()


@pytest.fixture
def pages(settings: Settings, mailbox: Mailbox) -> Iterator[Pages]:
    """The pages of a database of the test's own."""
    with running_mail_server(mailbox) as port:
        made = Pages(settings, port)
        yield made
        made.close()
