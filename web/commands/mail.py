"""Commands for email."""

from socket import gethostname
from typing import Any

import click
from flask.cli import AppGroup

from domain.accounts.administration import list_administrator_addresses
from domain.core.clock import format_api_time
from domain.core.errors import ConflictError, InvalidError
from domain.core.randomness import generate_random_hex
from domain.delivery.mail.outbox import ClaimedEmail, count_abandoned_emails, get_mail_queue_state
from domain.delivery.mail.smtp import Mailer, MailError, MailServer, SenderAddress
from web.admin.settings import get_settings_in_transaction
from web.commands.execution import run_in_transaction
from web.extensions import db
from web.outgoing.mail_server import build_mail_server, build_sender
from web.services import get_current_time
from web.settings.definitions import Settings

mail = AppGroup("mail", help="Test email, and show the state of the email queue.")


@mail.command("test")
@click.argument("address")
@run_in_transaction
def test_command(*, address: str) -> dict[str, Any]:
    """Send a test email to ADDRESS."""
    settings = get_settings_in_transaction(session=db.session())
    server, sender = _get_mail_server(settings)
    try:
        with Mailer(server, sender) as mailer:
            mailer.send_message(
                _build_test_message(address, settings.instance_name, settings.base_url),
                now=get_current_time(),
            )
    except MailError as error:
        raise ConflictError(_describe_rejection(server, error)) from None
    return {"sent_to": address, "from": sender.address, "server": f"{server.host}:{server.port}"}


@mail.command("failure")
@click.argument("unit")
@click.option(
    "--to",
    "addresses",
    multiple=True,
    help="Recipient. The default is all administrators. Can be repeated.",
)
@run_in_transaction
def failure_command(*, unit: str, addresses: tuple[str, ...]) -> dict[str, Any]:
    """Send an email about the failed systemd unit UNIT, such as gatebell-backup.service.

    The email is sent immediately, since the worker itself may have failed.
    """
    settings = get_settings_in_transaction(session=db.session())
    recipients = list(addresses) or list_administrator_addresses(session=db.session())
    server, sender = _get_mail_server(settings)
    for address in recipients:
        letter = _build_failure_message(address, unit, settings.instance_name)
        try:
            with Mailer(server, sender) as mailer:
                mailer.send_message(letter, now=get_current_time())
        except MailError as error:
            raise ConflictError(_describe_rejection(server, error)) from None
    return {"unit": unit, "sent_to": recipients}


@mail.command("status")
@run_in_transaction
def status_command() -> dict[str, Any]:
    """Show the state of the email queue."""
    state = get_mail_queue_state(session=db.session(), now=get_current_time())
    oldest = state.oldest_at
    return {
        "waiting": state.waiting,
        "oldest_at": format_api_time(oldest) if oldest else None,
        "failing": state.failing,
        "given_up": count_abandoned_emails(session=db.session()),
    }


def _get_mail_server(settings: Settings) -> tuple[MailServer, SenderAddress]:
    """Return the mail server and the sender, and end the transaction.

    The command then holds no locks while it is connected to the mail server. Raise InvalidError if
    no mail server is configured.
    """
    db.session.rollback()
    if not settings.mail_url:
        raise InvalidError("`MAIL_URL` is not set, so no email is sent.")
    server = build_mail_server(settings.mail_url, settings.trusted_ca_file)
    return server, build_sender(settings)


def _describe_rejection(server: MailServer, error: MailError) -> str:
    said = f": {error.reply}" if error.reply else ""
    return f"{server.host}:{server.port} did not accept the message: {error}{said}"


def _build_failure_message(address: str, unit: str, instance_name: str) -> ClaimedEmail:
    host = gethostname()
    text = (
        f"{unit} failed on {host}.\n\n"
        f"Read its log on that host: journalctl --unit {unit} --since -1h\n"
        "Then check the installation: gatebell doctor --output table\n"
    )
    return _build_message(address, f"{instance_name}: {unit} failed on {host}", text)


def _build_test_message(address: str, instance_name: str, base_url: str) -> ClaimedEmail:
    text = (
        f"This is a test message from {instance_name} at {base_url}.\n\n"
        "If you received this message, email works.\n"
    )
    return _build_message(address, f"Test message from {instance_name}", text)


def _build_message(address: str, subject: str, text: str) -> ClaimedEmail:
    return ClaimedEmail(
        id=0,
        key=generate_random_hex(16),
        recipient=address,
        subject=subject,
        text=text,
        created_at=get_current_time(),
        tries=1,
    )
