"""Notices by mail that an old client secret ends which is still used, to the owner."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from domain.accounts.users import ACTIVE, HUMAN
from domain.mail.outbox import NewMessage, queue_messages
from domain.time_zones import local_time
from models import Application, ApplicationSecret, User

#: Before its end.
_AHEAD = timedelta(days=1)
_Newer = aliased(ApplicationSecret)


@dataclass(frozen=True, kw_only=True)
class SecretNoticeSettings:
    """The instance's data for messages."""

    instance_name: str
    #: Without a trailing slash.
    base_url: str


def queue_secret_notices(sign: SecretNoticeSettings, *, session: Session, now: datetime) -> int:
    """Store the messages that are due and not stored yet, and return their number."""
    return queue_messages(list(_messages(sign, session, now)), session=session, now=now)


def _messages(sign: SecretNoticeSettings, session: Session, now: datetime) -> Iterator[NewMessage]:
    """Yield a message for each old secret that ends within a day and was used beside the new one.

    The owner of an instance-wide application is told as well: they registered it.
    """
    rows = session.execute(
        select(ApplicationSecret, Application, User)
        .join(Application, Application.id == ApplicationSecret.application_id)
        .join(_Newer, _Newer.application_id == Application.id)
        .join(User, User.id == Application.owner_id)
        .where(
            ApplicationSecret.expires_at > now,
            ApplicationSecret.expires_at <= now + _AHEAD,
            _Newer.expires_at.is_(None),
            ApplicationSecret.last_used_at > _Newer.created_at,
            Application.confidential,
            User.state == ACTIVE,
            User.kind == HUMAN,
        )
        .order_by(ApplicationSecret.id)
    )
    for secret, application, owner in rows:
        ends_at, used_at = secret.expires_at, secret.last_used_at
        if ends_at is None or used_at is None:
            continue
        ends, used = (local_time(each, owner.time_zone) for each in (ends_at, used_at))
        folder = "admin" if application.is_instance_wide else "-/user_settings"
        yield NewMessage(
            key=f"client secret {secret.id} ends",
            recipient=owner.email,
            subject=f"The old secret of {application.name} ends",
            text=(
                f"Hello,\n\nThe old client secret of the application {application.name} ends at "
                f"{ends}, and was last used at {used}. From then on, whatever still uses it gets "
                "no tokens. Let it use the new secret, or renew the secret once more for more "
                f"time:\n{sign.base_url}/{folder}/applications/{application.id}\n\n"
                f"-- \n{sign.instance_name}, {sign.base_url}\n"
            ),
        )
