"""Jobs that queue and send email."""

import logging
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Engine
from sqlalchemy.orm import Session

from domain.alerts.integrations.rejections import update_rejected_since
from domain.core.clock import Clock, read_system_clock
from domain.core.keyring import Keyring
from domain.delivery.audit_streams.streams import queue_stream_notices
from domain.delivery.destination_actions import DestinationNoticeSettings
from domain.delivery.mail.outbox import (
    MAIL_IS_DUE,
    ClaimedEmail,
    MessageSettings,
    UndecryptableEmail,
    claim_due_email,
    record_email_failed,
    record_email_rejected,
    record_email_sent,
)
from domain.delivery.mail.smtp import (
    Mailer,
    MailError,
    MailServerUnavailableError,
    PermanentMailError,
)
from domain.delivery.webhooks.endpoints import queue_webhook_notices
from domain.housekeeping.assignment_mail import (
    delete_assignment_notices,
    queue_assignment_mail,
    requeue_visible_assignments,
)
from domain.oauth.applications.secret_notices import queue_secret_notices
from domain.oauth.personal_tokens.expiry_notices import ExpiryNoticeSettings as ExpirySettings
from domain.oauth.personal_tokens.expiry_notices import queue_token_expiry_notices
from domain.paging.escalations.page_holds import find_page_holds
from domain.paging.escalations.paging_gaps import queue_gap_notices
from domain.paging.notifications.notice_checks import find_notice_block_reason
from domain.releases.usage.notices import RemovalNoticeSettings, queue_removal_notices
from domain.releases.version import parse_release, parse_release_dates
from web.database.engine import use_engine
from web.jobs.scheduler import Job
from web.outgoing.mail_server import build_mail_server, build_sender
from web.settings.environment import Settings
from web.settings.policies.alerts import build_parser_settings
from web.settings.stored_settings import read_current_settings

_log = logging.getLogger("gatebell.mail")
#: Maximum duration of one run. The next run sends the remaining messages.
_MAX_RUN_TIME = timedelta(seconds=45)


class MailJob(Job):
    """Job that sends queued messages promptly, because a user may need a message to sign in."""

    name = "send_mail"
    due: ColumnElement[bool] | None = MAIL_IS_DUE
    #: Pause in seconds while the mail server is unavailable.
    pause_seconds = 60.0

    def __init__(self, settings: Settings, *, clock: Clock = read_system_clock) -> None:
        """Store the settings. The job never runs without a mail server."""
        super().__init__(settings, clock=clock)
        if not settings.mail_url:
            self.due = None

    def process_all_due_work(self) -> int:
        """Send the queued messages, and return the number of attempts.

        Return 0 if the mail server is unavailable.
        """
        return send_mail(self.settings, clock=self.clock)


def queue_due_mail(settings: Settings) -> None:
    """Queue all due notices if a mail server is configured."""
    if settings.mail_url:
        queue_expiry_mail(settings)
        queue_destination_failure_mail(settings)
        queue_release_removal_mail(settings)
        queue_paging_gap_mail(settings)
        queue_secret_expiry_mail(settings)


def record_rejecting_integrations(settings: Settings, *, clock: Clock = read_system_clock) -> int:
    """Store which integrations reject all deliveries, and queue email about new cases."""
    with use_engine(settings) as engine, Session(engine) as session, session.begin():
        current = read_current_settings(settings, session=session)
        sign = MessageSettings(**_build_sender_fields(current)) if settings.mail_url else None
        return update_rejected_since(sign, session=session, now=clock())


def queue_expiry_mail(settings: Settings, *, clock: Clock = read_system_clock) -> int:
    """Queue the token expiry notices that are due, and return the number of notices."""
    with use_engine(settings) as engine, Session(engine) as session, session.begin():
        current = read_current_settings(settings, session=session)
        ahead = timedelta(days=current.expiring_token_notice_days)
        if not ahead:
            return 0
        sign = ExpirySettings(**_build_sender_fields(current), ahead=ahead)
        written = queue_token_expiry_notices(sign, session=session, now=clock())
    if written:
        _log.info(
            "Emails about expiring tokens were queued.",
            extra={"event": "mail.queued", "count": written},
        )
    return written


def queue_destination_failure_mail(settings: Settings, *, clock: Clock = read_system_clock) -> int:
    """Queue notices about failing audit streams and webhooks.

    Return the number of notices.
    """
    with use_engine(settings) as engine, Session(engine) as session, session.begin():
        current = read_current_settings(settings, session=session)
        streams = DestinationNoticeSettings(
            **_build_sender_fields(current), days=current.audit_stream_keep_days
        )
        webhooks = DestinationNoticeSettings(
            **_build_sender_fields(current), days=current.webhook_pause_days
        )
        return queue_stream_notices(streams, session=session, now=clock()) + queue_webhook_notices(
            webhooks, session=session, now=clock()
        )


def queue_release_removal_mail(settings: Settings, *, clock: Clock = read_system_clock) -> int:
    """Queue notices to owners about calls that a release will break.

    Return the number of notices.
    """
    with use_engine(settings) as engine, Session(engine) as session, session.begin():
        current = read_current_settings(settings, session=session)
        ahead = timedelta(days=current.removal_notice_days)
        if not ahead:
            return 0
        sign = RemovalNoticeSettings(
            **_build_sender_fields(current),
            ahead=ahead,
            running=parse_release(current.release),
            dates=parse_release_dates(current.release_dates),
        )
        return queue_removal_notices(sign, session=session, now=clock())


def queue_secret_expiry_mail(settings: Settings, *, clock: Clock = read_system_clock) -> int:
    """Queue notices to owners about expiring old client secrets.

    Return the number of notices.
    """
    with use_engine(settings) as engine, Session(engine) as session, session.begin():
        current = read_current_settings(settings, session=session)
        sign = MessageSettings(**_build_sender_fields(current))
        return queue_secret_notices(sign, session=session, now=clock())


def queue_paging_gap_mail(settings: Settings, *, clock: Clock = read_system_clock) -> int:
    """Queue notices about new gaps in policies and schedules.

    Return the number of notices.
    """
    with use_engine(settings) as engine, Session(engine) as session:
        current = read_current_settings(settings, session=session)
        sign = MessageSettings(**_build_sender_fields(current))
        return queue_gap_notices(sign, session=session, now=clock(), commit_batch=session.commit)


def queue_assignment_notices(settings: Settings, *, clock: Clock = read_system_clock) -> int:
    """Queue notices to users about their assignments, and return the number of notices."""
    with use_engine(settings) as engine, Session(engine) as session, session.begin():
        if not settings.mail_url:
            delete_assignment_notices(session=session)
            return 0
        current = read_current_settings(settings, session=session)
        sign = MessageSettings(**_build_sender_fields(current))
        return queue_assignment_mail(sign, session=session, now=clock())


def _build_sender_fields(settings: Settings) -> dict[str, Any]:
    return {
        "instance_name": settings.instance_name,
        "base_url": settings.base_url,
        "keyring": _build_keyring(settings),
    }


def _build_keyring(settings: Settings) -> Keyring:
    return Keyring(settings.secret_key, *settings.secret_key_fallbacks)


def send_mail(settings: Settings, *, clock: Clock = read_system_clock) -> int:
    """Send the queued messages one by one, and return the number of attempts.

    Sending stops after `_MAX_RUN_TIME`. Return 0 if the mail server is unavailable.
    """
    began, count, keyring = clock(), 0, _build_keyring(settings)
    with use_engine(settings) as engine:
        with Session(engine) as session, session.begin():
            sender = build_sender(read_current_settings(settings, session=session))
        with Mailer(
            build_mail_server(settings.mail_url, settings.trusted_ca_file), sender
        ) as mailer:
            while clock() - began < _MAX_RUN_TIME:
                tried = _send_next_message(engine, mailer, keyring, settings, clock)
                if tried is None:
                    return 0
                if not tried:
                    break
                count += 1
    return count


def _send_next_message(
    engine: Engine, mailer: Mailer, keyring: Keyring, settings: Settings, clock: Clock
) -> bool | None:
    """Send one message and return True, or False if the queue is empty.

    Return None if the mail server is unavailable.
    """
    with Session(engine) as session, session.begin():
        claimed = claim_due_email(session=session, keyring=keyring, now=clock())
        if isinstance(claimed, ClaimedEmail) and _cancel_if_blocked(
            claimed, session=session, keyring=keyring, settings=settings, now=clock()
        ):
            return True
    if claimed is None:
        return False
    if isinstance(claimed, UndecryptableEmail):
        _log.error(
            "Email delivery failed permanently.",
            extra={"event": "mail.failed", "mail_id": claimed.id, "reason": claimed.reason},
        )
        return True
    message = claimed
    try:
        mailer.send_message(message, now=clock())
    except MailError as error:
        _record_failure(message, error, engine, keyring, clock)
        return None if isinstance(error, MailServerUnavailableError) else True
    with Session(engine) as session, session.begin():
        record_email_sent(message, session=session, keyring=keyring, now=clock())
    _log.info(
        "Email was sent.",
        extra={"event": "mail.sent", "mail_id": message.id, "tries": message.tries},
    )
    return True


def _cancel_if_blocked(
    message: ClaimedEmail, *, session: Session, keyring: Keyring, settings: Settings, now: datetime
) -> bool:
    """Cancel or postpone a notice that must not be sent now.

    Return False if the notice can be sent.
    """
    why = find_notice_block_reason(
        message.about,
        find_page_holds,
        parser_settings=build_parser_settings(settings),
        session=session,
        now=now,
    )
    if why is None:
        return False
    if why.waits:
        record_email_failed(
            message, f"waits: {why.reason}", session=session, keyring=keyring, now=now
        )
        return True
    record_email_rejected(message, f"canceled: {why.reason}", session=session, keyring=keyring)
    requeue_visible_assignments(message.about or {}, session=session, now=now)
    _log.info(
        "Email was canceled.",
        extra={"event": "mail.canceled", "mail_id": message.id, "reason": why.reason},
    )
    return True


def _record_failure(
    message: ClaimedEmail, error: MailError, engine: Engine, keyring: Keyring, clock: Clock
) -> None:
    """Store and log the reason why a message was not sent.

    The recipient and the server's text are omitted.
    """
    reason = str(error)
    with Session(engine) as session, session.begin():
        if isinstance(error, PermanentMailError):
            will_retry = False
            record_email_rejected(message, reason, session=session, keyring=keyring)
        else:
            will_retry = record_email_failed(
                message, reason, session=session, keyring=keyring, now=clock()
            )
    fields = {"mail_id": message.id, "tries": message.tries, "reason": reason}
    if will_retry:
        _log.warning(
            "Email delivery failed; the worker will retry.",
            extra={"event": "mail.attempt_failed", **fields},
        )
    else:
        _log.error("Email delivery failed permanently.", extra={"event": "mail.failed", **fields})
