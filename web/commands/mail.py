"""Commands for email."""

from socket import gethostname
from typing import Any

import click
from flask.cli import AppGroup

from domain.accounts.administration import list_administrator_addresses
from domain.core.clock import written
from domain.core.errors import ConflictError, InvalidError
from domain.core.randomness import random_hex
from domain.delivery.mail.outbox import Message, count_given_up, queue_state
from domain.delivery.mail.smtp import Mailer, MailError, MailServer
from web.admin.settings import settings_now
from web.commands.transaction import one_transaction
from web.extensions import db
from web.outgoing.mail_server import mail_server, sender_of
from web.services import now

mail = AppGroup("mail", help="Test email, and show the state of the email queue.")


@mail.command("test")
@click.argument("address")
@one_transaction
def test_command(*, address: str) -> dict[str, Any]:
    """Send a test email to ADDRESS."""
    settings = settings_now(session=db.session())
    # No lock is held while the server responds.
    db.session.rollback()
    if not settings.mail_url:
        raise InvalidError("`MAIL_URL` is not set, so no email is sent.")
    server, sender = mail_server(settings.mail_url, settings.trusted_ca_file), sender_of(settings)
    try:
        with Mailer(server, sender) as mailer:
            mailer.send(_message(address, settings.instance_name, settings.base_url), now=now())
    except MailError as error:
        raise ConflictError(_not_accepted(server, error)) from None
    return {"sent_to": address, "from": sender.address, "server": f"{server.host}:{server.port}"}


@mail.command("failure")
@click.argument("unit")
@click.option(
    "--to",
    "addresses",
    multiple=True,
    help="Recipient. The default is all administrators. Can be repeated.",
)
@one_transaction
def failure_command(*, unit: str, addresses: tuple[str, ...]) -> dict[str, Any]:
    """Send an email that the systemd unit UNIT has failed, such as gatebell-backup.service.

    The email is sent immediately, since the worker itself may have failed.
    """
    settings = settings_now(session=db.session())
    recipients = list(addresses) or list_administrator_addresses(session=db.session())
    # No lock is held while the server responds.
    db.session.rollback()
    if not settings.mail_url:
        raise InvalidError("`MAIL_URL` is not set, so no email is sent.")
    server, sender = mail_server(settings.mail_url, settings.trusted_ca_file), sender_of(settings)
    for address in recipients:
        letter = _failure(address, unit, settings.instance_name)
        try:
            with Mailer(server, sender) as mailer:
                mailer.send(letter, now=now())
        except MailError as error:
            raise ConflictError(_not_accepted(server, error)) from None
    return {"unit": unit, "sent_to": recipients}


@mail.command("status")
@one_transaction
def status_command() -> dict[str, Any]:
    """Show the state of the email queue."""
    state = queue_state(session=db.session())
    oldest = state.oldest_at
    return {
        "waiting": state.waiting,
        "oldest_at": written(oldest) if oldest else None,
        "failing": state.failing,
        "given_up": count_given_up(session=db.session()),
    }


def _not_accepted(server: MailServer, error: MailError) -> str:
    said = f": {error.reply}" if error.reply else ""
    return f"{server.host}:{server.port} did not accept the message: {error}{said}"


def _failure(address: str, unit: str, instance_name: str) -> Message:
    host = gethostname()
    text = (
        f"{unit} failed on {host}.\n\n"
        f"Read its log on that host: journalctl --unit {unit} --since -1h\n"
        "Then check the installation: gatebell doctor --output table\n"
    )
    return _letter(address, f"{instance_name}: {unit} failed on {host}", text)


def _message(address: str, instance_name: str, base_url: str) -> Message:
    text = (
        f"This is a test message from {instance_name} at {base_url}.\n\n"
        "If you received this message, email works.\n"
    )
    return _letter(address, f"Test message from {instance_name}", text)


def _letter(address: str, subject: str, text: str) -> Message:
    return Message(
        id=0,
        key=random_hex(16),
        recipient=address,
        subject=subject,
        text=text,
        created_at=now(),
        tries=1,
    )
