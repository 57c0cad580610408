"""Emails that notify users before a release about calls that the release will break."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.accounts.users import IS_ACTIVE_HUMAN
from domain.core.database.bulk_statements import build_session_insert
from domain.core.types.base import get_column_values
from domain.delivery.mail.outbox import MessageSettings, NewEmail, queue_emails
from domain.projects.bots import Maintainer, find_maintainers
from domain.releases.changes import Change
from domain.releases.usage.consumers import ConsumerKind, ConsumerView
from domain.releases.usage.usage_reports import AffectedUsage, UsagePeriod, find_instance_usage
from domain.releases.version import Release
from models import ChangeNotice, User

#: Maximum age of the calls that are considered. It exceeds a month because of monthly jobs.
RECENT_CALL_PERIOD = timedelta(days=35)


@dataclass(frozen=True, kw_only=True)
class RemovalNoticeSettings(MessageSettings):
    """The lead time and release dates that determine when removal notices are sent."""

    #: Period before a release in which notices about its changes are sent.
    ahead: timedelta
    running: Release
    #: Dates of releases, if known.
    dates: Mapping[Release, date]


def queue_removal_notices(
    notice_settings: RemovalNoticeSettings, *, session: Session, now: datetime
) -> int:
    """Queue the notices that are due, and return the number of new emails.

    Each user is notified of each change only once, and receives one email about all due changes.
    """
    due = {
        release: day
        for release, day in notice_settings.dates.items()
        if release > notice_settings.running
        and now.date() <= day <= (now + notice_settings.ahead).date()
    }
    if not due:
        return 0
    messages = [
        _build_message(recipient, uses, due, notice_settings, now)
        for recipient, uses in _find_unnotified_users(
            due, notice_settings, session=session, now=now
        )
    ]
    return queue_emails(messages, session=session, keyring=notice_settings.keyring, now=now)


def _find_unnotified_users(
    due: Mapping[Release, date],
    notice_settings: RemovalNoticeSettings,
    *,
    session: Session,
    now: datetime,
) -> Iterator[tuple[Maintainer, Sequence[AffectedUsage]]]:
    """Yield the users who have not been notified yet, each with the affected calls."""
    period = UsagePeriod(
        since=(now - RECENT_CALL_PERIOD).date(),
        running=notice_settings.running,
        until=max(due),
        is_ahead=True,
    )
    found: dict[Maintainer, list[AffectedUsage]] = defaultdict(list)
    recipients = _RecipientLookup(session=session, today=now.date())
    for use in find_instance_usage(period, session=session, now=now):
        if use.is_sure and use.change.effective_release in due and use.consumer.is_live:
            for recipient in recipients.find_recipients(use.consumer):
                found[recipient].append(use)
    for recipient, uses in found.items():
        new = _store_notices(recipient, {use.change.id for use in uses}, session=session, now=now)
        if new:
            yield recipient, [use for use in uses if use.change.id in new]


def _store_notices(
    recipient: Maintainer, change_ids: set[str], *, session: Session, now: datetime
) -> set[str]:
    """Record that a user is notified of changes, and return the IDs of newly recorded changes."""
    insert = build_session_insert(ChangeNotice, session=session).values(
        [
            {"user_id": recipient.id, "change_id": each, "told_at": now}
            for each in sorted(change_ids)
        ]
    )
    return set(session.scalars(insert.on_conflict_do_nothing().returning(ChangeNotice.change_id)))


class _RecipientLookup:
    """Looks up the recipients of notices, and caches them for each consumer."""

    def __init__(self, *, session: Session, today: date) -> None:
        self._session = session
        self._today = today
        self._known: dict[ConsumerView, Sequence[Maintainer]] = {}

    def find_recipients(self, consumer: ConsumerView) -> Sequence[Maintainer]:
        """Return the people who are notified about the calls of a consumer.

        The people are the owner of the consumer, the maintainers of its project or group, or the
        administrators. Anonymous consumers have no recipients.
        """
        if consumer not in self._known:
            self._known[consumer] = self._find_recipients(consumer)
        return self._known[consumer]

    def _find_recipients(self, consumer: ConsumerView) -> Sequence[Maintainer]:
        if consumer.kind is ConsumerKind.RESOURCE_TOKEN:
            _, people = find_maintainers(
                consumer.group_id,
                consumer.project_id,
                session=self._session,
                today=self._today,
            )
            return people
        if consumer.kind is ConsumerKind.ANONYMOUS:
            return ()
        # Applications of the instance belong to its administrators.
        is_theirs = User.is_admin if consumer.owner_id is None else User.id == consumer.owner_id
        rows = self._session.execute(
            select(User.id, User.name, User.email, User.time_zone)
            .where(is_theirs, IS_ACTIVE_HUMAN)
            .order_by(User.id)
        )
        return [Maintainer(**get_column_values(row, Maintainer)) for row in rows]


def _build_message(
    maintainer: Maintainer,
    uses: Sequence[AffectedUsage],
    due: Mapping[Release, date],
    notice_settings: RemovalNoticeSettings,
    now: datetime,
) -> NewEmail:
    changes = list({use.change.id: use.change for use in uses}.values())
    first = min(changes, key=lambda change: due[change.effective_release])
    day = due[first.effective_release]
    parts = "\n\n".join(_format_change(change, uses, due, notice_settings) for change in changes)
    ids = " ".join(sorted(change.id for change in changes))
    return NewEmail(
        key=f"changes to {maintainer.id} at {now.isoformat()}: {ids}"[:255],
        recipient=maintainer.email,
        subject=f"Release {first.release} on {day} will break some of your API calls",
        text=(
            f"Hello {maintainer.name},\n\n"
            "Tokens or applications that you own or maintain make API calls that will fail\n"
            "or work differently:\n\n"
            f"{parts}\n\n"
            "View all calls that are affected or may be affected:\n"
            f"{notice_settings.base_url}/-/user_settings/api_changes\n\n"
            f"-- \n{notice_settings.instance_name}, {notice_settings.base_url}\n"
            "You receive this message once for each change, because you own the token or\n"
            "application, or maintain its project or group.\n"
        ),
    )


def _format_change(
    change: Change,
    uses: Sequence[AffectedUsage],
    due: Mapping[Release, date],
    notice_settings: RemovalNoticeSettings,
) -> str:
    callers = "\n".join(
        f"    {use.consumer.name}: {use.calls} call{'' if use.calls == 1 else 's'}, "
        f"last on {use.last_at.date()}"
        for use in uses
        if use.change is change
    )
    return (
        f"* {change.title}\n"
        f"  Takes effect in release {change.release} on {due[change.effective_release]}.\n"
        f"  Instead: {change.replacement}\n"
        f"{callers}\n"
        f"  {notice_settings.base_url}/help/releases/{change.id}"
    )
