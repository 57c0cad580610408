"""Commands about e-mail."""

from typing import Any

import click
from flask.cli import AppGroup

from domain.clock import written
from domain.errors import ConflictError, InvalidError
from domain.mail.outbox import Message, count_given_up, queue_state
from domain.mail.smtp import Mailer, MailError
from domain.randomness import random_hex
from web.admin.settings import settings_now
from web.commands.transaction import one_transaction
from web.extensions import db
from web.jobs.mail import mail_server, sender_of
from web.services import now

mail = AppGroup("mail", help="E-mail that the worker sends.")


@mail.command("test")
@click.argument("address")
@one_transaction
def test_command(*, address: str) -> dict[str, Any]:
    """Send a test message to ADDRESS, and print the answer of the mail server."""
    settings = settings_now(session=db.session())
    # No lock is held while the server takes its time.
    db.session.rollback()
    if not settings.mail_url:
        raise InvalidError("MAIL_URL is not set: no e-mail is sent.")
    server, sender = mail_server(settings.mail_url, settings.trusted_ca_file), sender_of(settings)
    try:
        with Mailer(server, sender) as mailer:
            mailer.send(_message(address, settings.instance_name, settings.base_url), now=now())
    except MailError as error:
        said = f": {error.reply}" if error.reply else ""
        reason = f"{server.host}:{server.port} did not accept the message: {error}{said}"
        raise ConflictError(reason) from None
    return {"sent_to": address, "from": sender.address, "server": f"{server.host}:{server.port}"}


@mail.command("status")
@one_transaction
def status_command() -> dict[str, Any]:
    """Print how many messages are waiting, since when, and how many were given up."""
    state = queue_state(session=db.session())
    oldest = state.oldest_at
    return {
        "waiting": state.waiting,
        "oldest_at": written(oldest) if oldest else None,
        "failing": state.failing,
        "given_up": count_given_up(session=db.session()),
    }


def _message(address: str, instance_name: str, base_url: str) -> Message:
    text = (
        f"This is a test message from {instance_name} at {base_url}.\n\n"
        "If you read this, e-mail works.\n"
    )
    return Message(
        id=0,
        key=random_hex(16),
        recipient=address,
        subject=f"Test message from {instance_name}",
        text=text,
        created_at=now(),
        tries=1,
    )
