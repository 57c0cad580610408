"""Email notices about old client secrets that expire soon but are still in use."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from domain.accounts.users import IS_ACTIVE_HUMAN
from domain.core.time_zones import format_local_time
from domain.delivery.mail.outbox import MessageSettings, NewEmail, queue_emails
from models import Application, ApplicationSecret, User

#: Time between the notice and the expiry of the secret.
_NOTICE_PERIOD = timedelta(days=1)
_NewerSecret = aliased(ApplicationSecret)


def queue_secret_notices(
    message_settings: MessageSettings, *, session: Session, now: datetime
) -> int:
    """Queue the notices that are due but not yet queued, and return the number of notices."""
    return queue_emails(
        list(_build_emails(message_settings, session, now)),
        session=session,
        keyring=message_settings.keyring,
        now=now,
    )


def _build_emails(
    message_settings: MessageSettings, session: Session, now: datetime
) -> Iterator[NewEmail]:
    """Yield a notice for each old secret that expires within a day and is still in use.

    A secret is in use if it was used after the new secret was created. For an instance-wide
    application, the notice is sent to the user who registered it.
    """
    rows = session.execute(
        select(ApplicationSecret, Application, User)
        .join(Application, Application.id == ApplicationSecret.application_id)
        .join(_NewerSecret, _NewerSecret.application_id == Application.id)
        .join(User, User.id == Application.owner_id)
        .where(
            ApplicationSecret.expires_at > now,
            ApplicationSecret.expires_at <= now + _NOTICE_PERIOD,
            _NewerSecret.expires_at.is_(None),
            ApplicationSecret.last_used_at > _NewerSecret.created_at,
            Application.confidential,
            IS_ACTIVE_HUMAN,
        )
        .order_by(ApplicationSecret.id)
    )
    for secret, application, owner in rows:
        ends_at, used_at = secret.expires_at, secret.last_used_at
        if ends_at is None or used_at is None:
            continue
        ends, used = (format_local_time(each, owner.time_zone) for each in (ends_at, used_at))
        folder = "admin" if application.is_instance_wide else "-/user_settings"
        yield NewEmail(
            key=f"client secret {secret.id} ends",
            recipient=owner.email,
            subject=f"The old client secret of {application.name} expires soon",
            text=(
                f"Hello,\n\nThe old client secret of the application {application.name} expires "
                f"at {ends}. It was last used at {used}. When it has expired, token requests with "
                "it are rejected. Switch to the new secret, or renew the secret again to get more "
                f"time:\n{message_settings.base_url}/{folder}/applications/{application.id}\n\n"
                f"-- \n{message_settings.instance_name}, {message_settings.base_url}\n"
            ),
        )
