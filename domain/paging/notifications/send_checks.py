"""Checks whether pages may be sent now, and cancels or holds the other pages.

The checks run when pages are combined into a batch. They run again before each attempt to send a
message, in the transaction that claims the message. All pages of a batch are checked together.

A page is canceled if its recipient no longer has access to the alert or incident. A page is held
while its alert is muted or its project is archived:

- If no contact can have received the page, the page waits for another batch.
- If a contact may have received the page, unsent messages omit it, and a new page is queued.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import ColumnElement, select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.accounts.users import ACTIVE, HUMAN
from domain.core.database.bulk_statements import (
    build_bulk_update,
    build_session_insert,
    split_into_batches,
)
from domain.paging.notifications.delivery_status import (
    add_page_activity_entries,
    record_pages_failed,
)
from domain.paging.notifications.page_queue import (
    FOLLOWING_PAGE_PREFIX,
    MANUAL_PAGE_PREFIX,
    MAY_BE_READ,
    PageKind,
)
from domain.paging.notifications.page_subjects import SUBJECT_PROJECT_ID, SUBJECT_SEVERITY
from domain.paging.notifications.paging_settings import PageHold, PagingSettings
from domain.paging.notifications.recipients import BATCHING_PAUSE, schedule_recipient_batching
from domain.paging.notifications.states import PageEvent
from domain.projects.access import build_namespace, read_permissions
from domain.projects.row_ownership import find_group_chains
from domain.projects.views import Viewer
from models import Alert, Contact, Incident, Page, PageMessage, PageRecipient, Project, User

_log = logging.getLogger("gatebell.pages")
_HELD_NOTE = (
    "is not paged while paging is held back ({words}). The page is sent afterwards if the alert "
    "still needs attention."
)
_PARTLY_HELD_NOTE = (
    "is not paged by {by} while paging is held back ({words}). All contacts are notified again "
    "afterwards if the alert still needs attention."
)
#: Reason why the pages of an archived project are held.
ARCHIVED_REASON = "the project is archived"
#: Shortest and longest interval between checks of an archived project. The interval is a tenth of
#: the time since the project was archived.
_MIN_ARCHIVED_CHECK_INTERVAL = timedelta(seconds=30)
MAX_ARCHIVED_CHECK_INTERVAL = timedelta(minutes=30)
#: Minimum duration of a hold. It is longer than the batching pause, so held pages do not become due
#: during this pause.
_MIN_HOLD = 2 * BATCHING_PAUSE


class Recipient(NamedTuple):
    """A user or channel that receives pages."""

    #: ID of the row in `page_recipients`.
    id: int
    #: The user. None for a channel.
    user: User | None
    #: The channel. None for a user.
    channel: Contact | None

    @property
    def user_id(self) -> int | None:
        """The ID of the user, or None for a channel."""
        return self.user.id if self.user is not None else None

    @property
    def name(self) -> str:
        """The username, or the label of the channel."""
        if self.user is not None:
            return self.user.username
        return self.channel.label if self.channel is not None else ""


def get_recipient(row: PageRecipient, *, session: Session) -> Recipient:
    """Return the recipient that a database row represents."""
    user = session.get_one(User, row.user_id) if row.user_id is not None else None
    channel = session.get_one(Contact, row.contact_id) if row.contact_id is not None else None
    return Recipient(row.id, user, channel)


def find_contact_recipient(contact: Contact, *, session: Session) -> Recipient | None:
    """Return the recipient of a contact, or None if the recipient was never paged."""
    is_theirs = build_recipient_condition(contact.id, contact.user_id)
    row = session.scalar(select(PageRecipient).where(is_theirs))
    return get_recipient(row, session=session) if row is not None else None


def build_recipient_condition(contact_id: int, user_id: int | None) -> ColumnElement[bool]:
    """Return an SQL condition that matches the recipient row of a user or of a channel.

    The contact is a channel if `user_id` is None.
    """
    if user_id is None:
        return PageRecipient.contact_id == contact_id
    return PageRecipient.user_id == user_id


class _CheckedPage(NamedTuple):
    """A page to check, with the data that the checks need."""

    id: int
    kind: str
    is_manual: bool
    #: ID of the alert. None for an incident.
    alert_id: int | None
    incident_id: int | None
    batch_id: int | None
    held_by: str | None
    is_critical: bool
    project_id: int
    severity: int


@dataclass(frozen=True, kw_only=True)
class PageCheckResults:
    """The pages that may be sent now, and the reasons why other pages are not sent."""

    allowed: Sequence[_CheckedPage]
    #: Canceled pages, grouped by reason. A reason follows the name of the recipient in a sentence.
    canceled: Mapping[str, Sequence[_CheckedPage]]
    #: Held pages, grouped by hold.
    held: Mapping[PageHold, Sequence[_CheckedPage]]

    @property
    def worst_severities(self) -> Mapping[PageKind, int]:
        """Worst severity of the pages that may be sent, by page kind."""
        found: dict[PageKind, int] = {}
        for each in self.allowed:
            kind = PageKind(each.kind)
            found[kind] = min(each.severity, found.get(kind, each.severity))
        return found


def check_pages(
    recipient: Recipient,
    *which: ColumnElement[bool],
    policy: PagingSettings,
    session: Session,
    now: datetime,
) -> PageCheckResults:
    """Check pages of a recipient together, with a constant number of queries."""
    rows = session.execute(
        select(
            Page.id,
            Page.kind,
            Page.key.like(f"{MANUAL_PAGE_PREFIX}%"),
            Page.alert_id,
            Page.incident_id,
            Page.batch_id,
            Page.held_by,
            Page.is_critical,
            SUBJECT_PROJECT_ID,
            SUBJECT_SEVERITY,
        )
        .select_from(Page)
        .outerjoin(Alert, Alert.id == Page.alert_id)
        .outerjoin(Incident, Incident.id == Page.incident_id)
        .where(*which, Page.withdrawn_at.is_(None))
        .order_by(Page.id)
    ).all()
    pages = [_CheckedPage._make(row) for row in rows]
    projects = session.scalars(
        select(Project).where(Project.id.in_({each.project_id for each in pages}))
    ).all()
    reasons = _find_cancel_reasons(recipient, projects, session=session, now=now)
    archived = {each.id: each.archived_at for each in projects if each.archived_at is not None}
    canceled: dict[str, list[_CheckedPage]] = {}
    held: dict[PageHold, list[_CheckedPage]] = {}
    left: list[_CheckedPage] = []
    for each in pages:
        reason = reasons.get(each.project_id)
        since = archived.get(each.project_id)
        if reason is None and since is not None and each.kind == PageKind.FOLLOW_UP.value:
            reason = "receives no update, because the project is archived"
        if reason is not None:
            canceled.setdefault(reason, []).append(each)
        elif since is not None:
            pause = max((now - since) / 10, _MIN_ARCHIVED_CHECK_INTERVAL)
            look_again_at = now + min(pause, MAX_ARCHIVED_CHECK_INTERVAL)
            held.setdefault(PageHold(ARCHIVED_REASON, look_again_at), []).append(each)
        else:
            left.append(each)
    holds = _find_holds(left, policy, session=session, now=now)
    for each in left:
        hold = holds.get(each.alert_id or 0) if _can_be_muted(each) else None
        if hold is not None:
            held.setdefault(hold, []).append(each)
    is_held = {each.id for some in held.values() for each in some}
    allowed = [each for each in left if each.id not in is_held]
    return PageCheckResults(allowed=allowed, canceled=canceled, held=held)


def _can_be_muted(page: _CheckedPage) -> bool:
    """Return whether mutes apply to a page.

    Mutes do not apply to follow-ups or to pages that a user requested.
    """
    return page.kind == PageKind.FIRING.value and page.alert_id is not None and not page.is_manual


def _find_holds(
    pages: Sequence[_CheckedPage], policy: PagingSettings, *, session: Session, now: datetime
) -> Mapping[int, PageHold]:
    alerts = {each.alert_id or 0: each.project_id for each in pages if _can_be_muted(each)}
    if not alerts:
        return {}
    try:
        return policy.find_holds(
            alerts, moment=now, session=session, parser_settings=policy.reading
        )
    except SQLAlchemyError:
        raise
    except Exception:  # noqa: BLE001 - each attempt would fail again
        # Pages about other alerts must not wait for an alert whose report cannot be read.
        if len(pages) == 1:
            _log.exception(
                "Silence check failed; the page will be sent anyway.",
                extra={"event": "page.silence_check_failed"},
            )
            return {}
    return {
        alert_id: hold
        for each in pages
        for alert_id, hold in _find_holds([each], policy, session=session, now=now).items()
    }


def _find_cancel_reasons(
    recipient: Recipient, projects: Sequence[Project], *, session: Session, now: datetime
) -> Mapping[int, str]:
    """Return the reasons why pages about projects are canceled, by project ID.

    Projects without such a reason are left out.
    """
    being_deleted = "is not paged, because the project is being deleted"
    deleted = {each.id: being_deleted for each in projects if each.deleted_at is not None}
    live = [each for each in projects if each.id not in deleted]
    if recipient.user is not None:
        seen = find_visible_projects(recipient.user, live, session=session, now=now)
        is_active = recipient.user.state == ACTIVE
        problem = "has no access to the alerts of the project" if is_active else "is not active"
        reason = f"{problem} and was not paged"
    else:
        used = find_group_chains([each.id for each in live], session=session)
        channel = recipient.channel
        seen = {each for each, of in used.items() if channel is not None and of.owns_row(channel)}
        reason = "no longer belongs to the project and was not paged"
    return deleted | {each.id: reason for each in live if each.id not in seen}


def find_visible_projects(
    user: User, projects: Sequence[Project], *, session: Session, now: datetime
) -> set[int]:
    """Return the IDs of the projects whose alerts a user can see."""
    if not is_active_human(user) or not projects:
        return set()
    viewer = build_viewer(user, now)
    permissions = read_permissions(viewer, map(build_namespace, projects), session=session)
    return {each.id for each in projects if permissions.build_project_view(each).can_see_alerts}


def is_active_human(user: User) -> bool:
    """Return whether an account is active and belongs to a person."""
    return user.state == ACTIVE and user.kind == HUMAN


def build_viewer(user: User, now: datetime) -> Viewer:
    """Return the viewer that represents a user in permission checks."""
    return Viewer(user_id=user.id, is_admin=user.is_admin, today=now.date())


def apply_check_results(
    verdicts: PageCheckResults,
    recipient: Recipient,
    *,
    by: str = "",
    session: Session,
    now: datetime,
) -> str | None:
    """Cancel and hold pages according to check results.

    The reasons are added to the activity of alerts and incidents. `by` is the name of the contact
    in these activity entries. Return one of the reasons, or None.
    """
    reason, changes = None, _PageChanges(recipient, session, now)
    for why, pages in verdicts.canceled.items():
        reason = why
        changes.cancel_pages(why, pages)
    for hold, pages in verdicts.held.items():
        reason = f"paging is held back: {hold.words}"
        changes.hold_pages(hold, pages, by=by)
    return reason


@dataclass(frozen=True)
class _PageChanges:
    """Changes to pages of a recipient, with entries in the activity of alerts and incidents."""

    recipient: Recipient
    session: Session
    now: datetime

    def cancel_pages(self, reason: str, pages: Sequence[_CheckedPage]) -> None:
        """Cancel pages, and their messages unless the messages contain other pages."""
        self._add_activity_entries(reason, pages)
        for some in split_into_batches(pages):
            which = _build_id_condition(some)
            record_pages_failed(PageEvent.NOT_ALLOWED, which, session=self.session, now=self.now)
            self._update_pages(some, withdrawn_at=self.now)
        self._cancel_messages(reason, pages)

    def hold_pages(self, hold: PageHold, pages: Sequence[_CheckedPage], *, by: str) -> None:
        """Store a hold on pages, which are not sent until the hold ends.

        Pages that only some contacts have received are queued again for all contacts.
        """
        sent = select(PageMessage.batch_id).where(
            PageMessage.batch_id.in_({each.batch_id for each in pages} - {None}), MAY_BE_READ
        )
        read = set(self.session.scalars(sent.distinct()))
        due_at = max(hold.look_again_at, self.now + _MIN_HOLD)
        waiting = [each for each in pages if each.batch_id not in read]
        new = [each for each in waiting if each.held_by != hold.words]
        self._add_activity_entries(_HELD_NOTE.format(words=hold.words), new)
        self._cancel_messages(f"paging is held back: {hold.words}", pages)
        for some in split_into_batches(waiting):
            self._update_pages(some, batch_id=None, held_by=hold.words, due_at=due_at)
        partly = [each for each in pages if each.batch_id in read]
        if partly:
            words = _PARTLY_HELD_NOTE.format(by=by, words=hold.words)
            self._add_activity_entries(words, partly)
            for some in split_into_batches(partly):
                self._update_pages(some, held_by=hold.words)
            self._requeue_pages(partly, hold, due_at)
        schedule_recipient_batching({self.recipient.id: due_at}, session=self.session)

    def _update_pages(self, pages: Sequence[_CheckedPage], **values: object) -> None:
        self.session.execute(
            build_bulk_update(Page).where(_build_id_condition(pages)).values(values)
        )

    def _requeue_pages(
        self, pages: Sequence[_CheckedPage], hold: PageHold, due_at: datetime
    ) -> None:
        """Queue new pages in place of pages that some contacts of the recipient have received."""
        values = [
            {
                "key": _build_requeued_page_key(each.id, is_asked=each.is_manual),
                "recipient_id": self.recipient.id,
                "alert_id": each.alert_id,
                "incident_id": each.incident_id,
                "kind": each.kind,
                "is_critical": each.is_critical,
                "created_at": self.now,
                "due_at": due_at,
                "held_by": hold.words,
            }
            for each in pages
        ]
        insert = build_session_insert(Page, session=self.session)
        self.session.execute(insert.on_conflict_do_nothing(index_elements=[Page.key]), values)

    def _cancel_messages(self, reason: str, pages: Sequence[_CheckedPage]) -> None:
        """Store the reason why unsent messages are canceled.

        Messages that also contain other pages are still sent.
        """
        batches = {each.batch_id for each in pages if each.batch_id is not None}
        if batches:
            self.session.execute(
                build_bulk_update(PageMessage)
                .where(PageMessage.batch_id.in_(batches), PageMessage.ended_at.is_(None))
                .values(cancelled_because=reason)
            )

    def _add_activity_entries(self, text: str, pages: Sequence[_CheckedPage]) -> None:
        user_id, name = self.recipient.user_id, self.recipient.name
        for some in split_into_batches(pages):
            which = _build_id_condition(some)
            add_page_activity_entries(
                text, which, user_id=user_id, name=name, session=self.session, now=self.now
            )


def clear_stale_holds(batch_ids: Collection[int], *, session: Session) -> None:
    """Clear the holds that workers of earlier releases left on pages in batches.

    A page in a batch keeps its hold only if another page was queued in its place.
    """
    held = Page.batch_id.in_(batch_ids), Page.held_by.is_not(None)
    ids = session.scalars(select(Page.id).where(*held)).all()
    if not ids:
        return
    keys = [
        _build_requeued_page_key(each, is_asked=asked) for each in ids for asked in (False, True)
    ]
    queued = set(session.scalars(select(Page.key).where(Page.key.in_(keys))))
    stale = [
        each
        for each in ids
        if queued.isdisjoint(
            _build_requeued_page_key(each, is_asked=asked) for asked in (False, True)
        )
    ]
    session.execute(build_bulk_update(Page).where(Page.id.in_(stale)).values(held_by=None))


def _build_requeued_page_key(page_id: int, *, is_asked: bool) -> str:
    return f"{MANUAL_PAGE_PREFIX if is_asked else ''}{FOLLOWING_PAGE_PREFIX}{page_id}, held back"


def _build_id_condition(pages: Sequence[_CheckedPage]) -> ColumnElement[bool]:
    return Page.id.in_([each.id for each in pages])
