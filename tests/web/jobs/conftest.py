"""Fixtures: an outbox with its mail server, webhooks, audit streams, and a receiver."""

from collections.abc import Iterator

import pytest
from flask import Flask

from tests.support.database.audit_streams import Streams
from tests.support.database.webhooks import Webhooks
from tests.support.mail.mail_outbox import Outbox
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.service.message_receiver import Receiver, running_receiver
from web.settings.environment import Settings


@pytest.fixture
def outbox(settings: Settings) -> Iterator[Outbox]:
    """Open the outbox of the test's own database."""
    mailbox = Mailbox()
    with running_mail_server(mailbox) as port:
        opened = Outbox(settings, mailbox, port)
        yield opened
        opened.engine.dispose()


@pytest.fixture
def webhooks(app: Flask, settings: Settings) -> Iterator[Webhooks]:
    made = Webhooks(app, settings)
    yield made
    made.stop_workers()


@pytest.fixture
def streams(settings: Settings) -> Iterator[Streams]:
    """Open audit streams with their log, and a clock that the test moves."""
    made = Streams(settings)
    yield made
    made.stop_workers()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as running:
        yield running
