"""An outbox with the mail server that its messages go to."""

from collections.abc import Iterator

import pytest

from tests.support.mail.mail_outbox import Outbox
from tests.support.mail.mail_server import Mailbox, running_mail_server
from web.settings.reader import Settings


@pytest.fixture
def outbox(settings: Settings) -> Iterator[Outbox]:
    """The outbox of a database of the test's own."""
    mailbox = Mailbox()
    with running_mail_server(mailbox) as port:
        opened = Outbox(settings, mailbox, port)
        yield opened
        opened.engine.dispose()
