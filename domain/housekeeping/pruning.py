"""Removes expired rows in small batches, so that locks are held briefly."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, exists, func, inspect, or_, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from domain.access.idempotency import RESPONSE_LIFETIME
from domain.accounts.email_addresses import UNCONFIRMED_ADDRESS_LIFETIME
from domain.accounts.sign_up import SIGN_UP_LINK_LIFETIME, SIGN_UP_MESSAGE_KEY_PREFIX
from domain.audit.events import Event, EventKind, EventSource, store_event
from domain.core.database.bulk_statements import build_bulk_delete
from domain.oauth.applications.rejected_requests import (
    REJECTED_REQUEST_RETENTION as REFUSALS_KEPT_FOR,
)
from domain.paging.escalations.types import PAGE_RETENTION
from domain.paging.on_call.schedules import SCHEDULE_HISTORY_RETENTION
from domain.projects.member_types import INVITATION_LIFETIME
from domain.registry.signing_keys import FORMER_KEY_RETENTION
from models import (
    AccessToken,
    Alert,
    Application,
    ApplicationSecret,
    AttemptCount,
    Authorization,
    Base,
    Bot,
    CallCount,
    CallSignature,
    Delivery,
    DeviceAuthorization,
    EmailConfirmation,
    Escalation,
    EscalationPage,
    Group,
    Heartbeat,
    HeartbeatPing,
    IdempotentRequest,
    Integration,
    Invitation,
    Mail,
    MaintenanceWindow,
    Member,
    OnCallAbsence,
    OnCallEligibility,
    OnCallHoliday,
    OnCallOverride,
    OnCallRotation,
    OnCallSwap,
    OnCallSwapRequest,
    Page,
    PageBatch,
    PageMessage,
    PersonalAccessToken,
    Project,
    ProjectShare,
    PushedRequest,
    RegistryKey,
    RegistryManifest,
    RegistryRepository,
    RegistryTag,
    RejectedOAuthRequest,
    ReturnUrl,
    SeenProof,
    SignIn,
    SigningKey,
    Silence,
    UnreachableTime,
    User,
    WebServer,
)

_BATCH_SIZE = 500
#: Maximum number of deliveries that one transaction checks. In a large log, nearly all deliveries
#: belong to alerts and are kept.
_MAX_CHECKED_DELIVERIES = 5_000
#: Retention period of expired and revoked tokens. Reuse of a token can be detected only while its
#: row exists.
_DEAD_TOKEN_RETENTION = timedelta(days=30)
#: Time for which a device that keeps polling is notified that its code has expired.
_EXPIRED_DEVICE_RETENTION = timedelta(days=1)
#: Retention period of sent messages, which are used to detect duplicates. It is longer than the
#: lead time of the earliest notice.
_SENT_MAIL_RETENTION = timedelta(days=90)
#: Retention period of expired and revoked personal access tokens. Owners may want to look up these
#: few tokens.
_DEAD_PERSONAL_TOKEN_RETENTION = timedelta(days=365)
#: Retention period of clients that registered without a token and were never used.
_IDLE_CLIENT_RETENTION = timedelta(days=30)
#: Retention period of outage times. Heartbeats and senders are evaluated soon after an outage.
_OUTAGE_RETENTION = timedelta(days=31)
#: Retention period of past silences, so that users can look up why nobody was paged.
_PAST_SILENCE_RETENTION = timedelta(days=365)
#: Retention period of deleted tags and manifests. Delayed events about a push within this time
#: cannot restore the tags and manifests.
_TOMBSTONE_RETENTION = timedelta(days=30)
_MEMBERSHIPS_PER_BATCH = 200
#: Interval at which the deliveries for alerts are checked again, because alerts may be removed.
_FULL_CHECK_INTERVAL = timedelta(days=1)
#: Names used in logs for tables from which only some rows are removed.
_LOGGED_TABLE_NAMES = {"members": "bot_members", "mails": "mail", "applications": "idle_clients"}


@dataclass(frozen=True, kw_only=True)
class Retention:
    """Retention periods for the delivery log, call counts and heartbeat logs."""

    keep_deliveries: int
    keep_for: timedelta
    keep_calls_for: timedelta = timedelta(days=90)
    #: Number of pings stored for each heartbeat.
    keep_pings: int = 100


class DeliveryCheckProgress:
    """Ranges of deliveries that were already checked and belong to existing alerts.

    These deliveries are checked once a day instead of in each run. Each worker has its own
    instance. If an alert is removed in the meantime, its deliveries are kept up to a day longer.
    """

    def __init__(self) -> None:
        """Initialize without any checked deliveries."""
        self._ends: dict[int | None, int] = {}
        self._since: datetime | None = None

    def begin_run(self, now: datetime) -> None:
        """Start a run, which checks all deliveries if the last complete check is a day old."""
        if self._since is None or abs(now - self._since) >= _FULL_CHECK_INTERVAL:
            self._ends.clear()
            self._since = now

    def get_checked_end(self, integration_id: int | None) -> int:
        """Return the ID below which all deliveries of an integration were checked."""
        return self._ends.get(integration_id, 0)

    def extend_checked_range(self, integration_id: int | None, end: int) -> None:
        """Record that the deliveries below this ID were checked and either removed or kept."""
        self._ends[integration_id] = end


class _ExpiredRows(NamedTuple):
    """A table, and the condition that selects its expired rows."""

    table: type[Base]
    condition: ColumnElement[bool]
    #: Column by which the rows of a large table are ordered. Ordering makes the database use the
    #: column's index even without statistics, instead of scanning the whole table.
    by: InstrumentedAttribute[Any] | None = None


_HAS_TOKENS = exists().where(AccessToken.authorization_id == Authorization.id)


def prune_expired_rows(
    retention: Retention,
    *,
    checked_deliveries: DeliveryCheckProgress | None = None,
    session: Session,
    now: datetime,
    commit_batch: Callable[[], None],
) -> dict[str, int]:
    """Remove expired rows, and return the number of removed rows by kind.

    `commit_batch` is called after each batch and each table, and must commit. Frequent commits keep
    locks short: on SQLite, the search for expired rows blocks all writers. If `checked_deliveries`
    is None, all deliveries are checked.
    """
    checked_deliveries = checked_deliveries or DeliveryCheckProgress()
    checked_deliveries.begin_run(now)
    removed = Counter(_prune_tokens(session, now, commit_batch))
    for each in _list_expired_rows(retention, now):
        name = each.table.__tablename__
        removed[_LOGGED_TABLE_NAMES.get(name, name)] += _remove_expired_rows(
            each, session, commit_batch
        )
        commit_batch()
    removed["deliveries"] = _prune_deliveries(
        retention, checked_deliveries, session, now, commit_batch
    )
    commit_batch()
    removed["heartbeat_pings"] = _prune_pings(retention, session, commit_batch)
    return dict(removed)


def _list_expired_rows(retention: Retention, now: datetime) -> tuple[_ExpiredRows, ...]:
    """Return the expired rows of each table in the order of removal."""
    dead, forgotten = now - _DEAD_TOKEN_RETENTION, now - _DEAD_PERSONAL_TOKEN_RETENTION
    revoked, expired = PersonalAccessToken.revoked_at, PersonalAccessToken.expires_at
    return (
        _ExpiredRows(SignIn, SignIn.expires_at < now, SignIn.expires_at),
        _ExpiredRows(AttemptCount, AttemptCount.window_ends_at < now, AttemptCount.window_ends_at),
        _ExpiredRows(PersonalAccessToken, revoked < forgotten, revoked),
        _ExpiredRows(PersonalAccessToken, expired < forgotten, expired),
        _ExpiredRows(ApplicationSecret, ApplicationSecret.expires_at < now),
        # Bots are removed once they have no valid token.
        _ExpiredRows(Member, _is_idle_bot(now)),
        _ExpiredRows(Mail, Mail.created_at < now - _SENT_MAIL_RETENTION, Mail.created_at),
        # The recipients of these messages may have no account, and may not have requested an
        # account.
        _ExpiredRows(
            Mail,
            Mail.key.startswith(SIGN_UP_MESSAGE_KEY_PREFIX)
            & (Mail.created_at < now - SIGN_UP_LINK_LIFETIME)
            & Mail.send_at.is_(None)
            & Mail.next_try_at.is_(None),
        ),
        _ExpiredRows(Page, Page.created_at < now - PAGE_RETENTION, Page.created_at),
        _ExpiredRows(
            PageMessage, PageMessage.ended_at < now - PAGE_RETENTION, PageMessage.ended_at
        ),
        _ExpiredRows(PageBatch, PageBatch.created_at < now - PAGE_RETENTION, PageBatch.created_at),
        _ExpiredRows(
            DeviceAuthorization, DeviceAuthorization.expires_at < now - _EXPIRED_DEVICE_RETENTION
        ),
        _ExpiredRows(ProjectShare, ProjectShare.expires_at <= now.date()),
        _ExpiredRows(Invitation, Invitation.created_at < now - INVITATION_LIFETIME),
        _ExpiredRows(
            EmailConfirmation, EmailConfirmation.created_at < now - UNCONFIRMED_ADDRESS_LIFETIME
        ),
        _ExpiredRows(PushedRequest, PushedRequest.expires_at < now),
        _ExpiredRows(ReturnUrl, ReturnUrl.expires_at < now),
        _ExpiredRows(IdempotentRequest, IdempotentRequest.claimed_at < now - RESPONSE_LIFETIME),
        _ExpiredRows(SeenProof, SeenProof.expires_at < now),
        _ExpiredRows(
            RejectedOAuthRequest, RejectedOAuthRequest.refused_at < now - REFUSALS_KEPT_FOR
        ),
        # Unused clients without an owner can register again.
        _ExpiredRows(
            Application,
            Application.registration_digest.is_not(None)
            & Application.is_instance_wide
            & Application.last_used_at.is_(None)
            & (Application.created_at < now - _IDLE_CLIENT_RETENTION),
        ),
        # After this time, no token with its signature is accepted, not even as an id_token_hint.
        _ExpiredRows(SigningKey, SigningKey.retired_at < dead),
        # Tags are removed first, because their manifests and repositories show that they were
        # deleted.
        _ExpiredRows(RegistryTag, _is_tag_expired(now)),
        _ExpiredRows(RegistryManifest, _is_manifest_expired(now)),
        _ExpiredRows(RegistryRepository, _is_repository_expired(now)),
        _ExpiredRows(RegistryKey, _is_key_expired(now)),
        _ExpiredRows(Silence, Silence.ends_at < now - _PAST_SILENCE_RETENTION),
        _ExpiredRows(
            MaintenanceWindow, MaintenanceWindow.last_ends_at < now - _PAST_SILENCE_RETENTION
        ),
        # Call counts are removed first, because they reference shapes.
        _ExpiredRows(
            CallCount, CallCount.day < (now - retention.keep_calls_for).date(), CallCount.day
        ),
        _ExpiredRows(CallSignature, ~exists().where(CallCount.shape_id == CallSignature.id)),
        _ExpiredRows(UnreachableTime, UnreachableTime.ended_at < now - _OUTAGE_RETENTION),
        _ExpiredRows(WebServer, WebServer.seen_at < now - _OUTAGE_RETENTION),
        # Past shifts are computed from these rows.
        _ExpiredRows(OnCallOverride, OnCallOverride.ends_at < now - SCHEDULE_HISTORY_RETENTION),
        _ExpiredRows(OnCallAbsence, OnCallAbsence.ends_at < now - SCHEDULE_HISTORY_RETENTION),
        _ExpiredRows(
            OnCallHoliday, OnCallHoliday.last_day < (now - SCHEDULE_HISTORY_RETENTION).date()
        ),
        _ExpiredRows(OnCallEligibility, OnCallEligibility.until < now - SCHEDULE_HISTORY_RETENTION),
        _ExpiredRows(OnCallSwap, OnCallSwap.over_at < now - SCHEDULE_HISTORY_RETENTION),
        _ExpiredRows(
            OnCallSwapRequest, OnCallSwapRequest.expires_at < now - SCHEDULE_HISTORY_RETENTION
        ),
        _ExpiredRows(OnCallRotation, OnCallRotation.valid_until < now - SCHEDULE_HISTORY_RETENTION),
        _ExpiredRows(Escalation, Escalation.ended_at < now - PAGE_RETENTION, Escalation.ended_at),
        _ExpiredRows(
            EscalationPage, EscalationPage.paged_at < now - PAGE_RETENTION, EscalationPage.paged_at
        ),
        # Redeemed grants are removed with their last token.
        _ExpiredRows(
            Authorization,
            (Authorization.code_expires_at < dead)
            & Authorization.code_used_at.is_(None)
            & ~_HAS_TOKENS,
            Authorization.code_expires_at,
        ),
    )


def _is_tag_expired(now: datetime) -> ColumnElement[bool]:
    """Return an SQL condition that is true for tags that were removed long ago.

    A tag can be removed directly or with its image.
    """
    tag, end = RegistryTag, now - _TOMBSTONE_RETENTION
    its_manifest = exists().where(
        RegistryManifest.repository_id == tag.repository_id,
        RegistryManifest.digest == tag.digest,
        RegistryManifest.deleted_at < end,
        RegistryManifest.deleted_at >= tag.pushed_at,
    )
    its_repository = exists().where(
        RegistryRepository.id == tag.repository_id,
        RegistryRepository.removed_at < end,
        RegistryRepository.removed_at >= tag.pushed_at,
    )
    itself = and_(
        tag.removed_at < end, or_(tag.pushed_at.is_(None), tag.removed_at >= tag.pushed_at)
    )
    return or_(itself, its_manifest, its_repository)


def _is_manifest_expired(now: datetime) -> ColumnElement[bool]:
    """Return an SQL condition that is true for manifests that were deleted long ago.

    Manifests that still have tags are excluded.
    """
    named = exists().where(
        RegistryTag.repository_id == RegistryManifest.repository_id,
        RegistryTag.digest == RegistryManifest.digest,
    )
    return and_(RegistryManifest.deleted_at < now - _TOMBSTONE_RETENTION, ~named)


def _is_repository_expired(now: datetime) -> ColumnElement[bool]:
    """Return an SQL condition that is true for repositories that were removed long ago."""
    repository = RegistryRepository
    return and_(
        repository.removed_at < now - _TOMBSTONE_RETENTION,
        repository.removed_at >= repository.pushed_at,
    )


def _is_key_expired(now: datetime) -> ColumnElement[bool]:
    """Return an SQL condition that is true for replaced keys whose tokens have all expired."""
    newer = aliased(RegistryKey)
    return exists().where(
        newer.signs_from > RegistryKey.signs_from, newer.signs_from < now - FORMER_KEY_RETENTION
    )


def _is_idle_bot(now: datetime) -> ColumnElement[bool]:
    bots = select(Bot.user_id)
    busy = select(PersonalAccessToken.user_id).where(
        PersonalAccessToken.revoked_at.is_(None), PersonalAccessToken.expires_at > now
    )
    return Member.user_id.in_(bots) & Member.user_id.not_in(busy)


def _remove_expired_rows(
    expired: _ExpiredRows, session: Session, commit_batch: Callable[[], None]
) -> int:
    total, (key,) = 0, inspect(expired.table).primary_key
    found = select(key).where(expired.condition).order_by(expired.by).limit(_BATCH_SIZE)
    while keys := session.scalars(found).all():
        session.execute(build_bulk_delete(expired.table).where(key.in_(keys)))
        commit_batch()
        total += len(keys)
    return total


def _prune_tokens(
    session: Session, now: datetime, commit_batch: Callable[[], None]
) -> dict[str, int]:
    """Remove expired and revoked tokens, and grants without any remaining token."""
    dead, token = now - _DEAD_TOKEN_RETENTION, AccessToken
    removed = {token.__tablename__: 0, Authorization.__tablename__: 0}
    for condition, by in (
        (token.revoked_at < dead, token.revoked_at),
        ((token.expires_at < dead) & token.refresh_digest.is_(None), token.expires_at),
    ):
        found = (
            select(token.id, token.authorization_id)
            .where(condition)
            .order_by(by)
            .limit(_BATCH_SIZE)
        )
        while rows := session.execute(found).all():
            session.execute(build_bulk_delete(token).where(token.id.in_([row.id for row in rows])))
            grants = session.scalars(
                select(Authorization.id)
                .where(Authorization.id.in_({row.authorization_id for row in rows}))
                .where(Authorization.code_expires_at < now, ~_HAS_TOKENS)
            ).all()
            session.execute(build_bulk_delete(Authorization).where(Authorization.id.in_(grants)))
            commit_batch()
            removed[token.__tablename__] += len(rows)
            removed[Authorization.__tablename__] += len(grants)
        commit_batch()
    return removed


def _prune_deliveries(
    retention: Retention,
    checked_deliveries: DeliveryCheckProgress,
    session: Session,
    now: datetime,
    commit_batch: Callable[[], None],
) -> int:
    """Remove old deliveries, and return the number of removed deliveries.

    The newest deliveries of each integration are kept, as are deliveries that belong to alerts.
    """
    is_shown = exists().where(Alert.delivery_id == Delivery.id)
    before = now - retention.keep_for
    is_old, newer = Delivery.received_at < before, _find_first_delivery_since(before, session)
    is_wanted = is_old & ~is_shown
    total = 0

    def remove(integration_id: int | None, stop: int) -> int:
        its, begin = (
            Delivery.integration_id == integration_id,
            checked_deliveries.get_checked_end(integration_id),
        )
        if begin >= stop:
            return 0
        removed = _remove_deliveries_between(its, begin, stop, is_wanted, session, commit_batch)
        checked_deliveries.extend_checked_range(integration_id, stop)
        return removed

    for integration_id in session.scalars(select(Integration.id)).all():
        oldest_kept = session.scalar(
            select(Delivery.id)
            .where(Delivery.integration_id == integration_id)
            .order_by(Delivery.id.desc())
            .offset(retention.keep_deliveries - 1)
            .limit(1)
        )
        if oldest_kept is None:
            continue
        total += remove(integration_id, min(oldest_kept, newer))
    return total + remove(None, newer)


def _find_first_delivery_since(moment: datetime, session: Session) -> int:
    """Return the ID of the first delivery at or after a time.

    IDs and times increase together, so a binary search is possible. Reading all deliveries would
    become slower as their number grows.
    """
    first = session.scalar(select(func.min(Delivery.id))) or 0
    end = (session.scalar(select(func.max(Delivery.id))) or 0) + 1
    while first < end:
        middle = (first + end) // 2
        found = session.execute(
            select(Delivery.id, Delivery.received_at)
            .where(Delivery.id >= middle, Delivery.id < end)
            .order_by(Delivery.id)
            .limit(1)
        ).one_or_none()
        if found is not None and found.received_at < moment:
            first = found.id + 1
        else:
            end = middle
    return end


def _prune_pings(retention: Retention, session: Session, commit_batch: Callable[[], None]) -> int:
    """Remove all pings except the newest pings of each heartbeat."""
    total = 0
    for heartbeat_id in session.scalars(select(Heartbeat.id)).all():
        oldest_kept = session.scalar(
            select(HeartbeatPing.id)
            .where(HeartbeatPing.heartbeat_id == heartbeat_id)
            .order_by(HeartbeatPing.id.desc())
            .offset(retention.keep_pings - 1)
            .limit(1)
        )
        if oldest_kept is not None:
            is_old = (HeartbeatPing.heartbeat_id == heartbeat_id) & (HeartbeatPing.id < oldest_kept)
            total += _remove_expired_rows(
                _ExpiredRows(HeartbeatPing, is_old), session, commit_batch
            )
    return total


def _remove_deliveries_between(
    among: ColumnElement[bool],
    begin: int,
    stop: int,
    condition: ColumnElement[bool],
    session: Session,
    commit_batch: Callable[[], None],
) -> int:
    """Remove matching deliveries with IDs from `begin` up to, but not including, `stop`.

    Only a few deliveries are checked at a time, so that transactions are short even if most
    deliveries are kept.
    """
    # This order makes the database use the index on both columns, even if few deliveries have no
    # integration.
    found = select(Delivery.id).where(among).order_by(Delivery.integration_id, Delivery.id)
    total, last = 0, begin - 1
    while True:
        # SQLite uses only one upper bound with an index.
        following = found.where(Delivery.id > last)
        next_ones = following.where(Delivery.id < stop).offset(_MAX_CHECKED_DELIVERIES).limit(1)
        end = session.scalar(next_ones) or stop
        looked_at = following.where(Delivery.id < end, condition)
        keys = session.scalars(looked_at.limit(_BATCH_SIZE)).all()
        if keys:
            session.execute(build_bulk_delete(Delivery).where(Delivery.id.in_(keys)))
            total += len(keys)
        commit_batch()
        if len(keys) == _BATCH_SIZE:
            last = keys[-1]
        elif end == stop:
            return total
        else:
            last = end - 1


def remove_expired_memberships(
    *, session: Session, now: datetime, commit_batch: Callable[[], None]
) -> int:
    """Remove expired memberships, each with an audit event.

    Return the number of removed memberships.
    """
    path = func.coalesce(Group.path, Project.path).label("path")
    ended = (
        select(Member.id, Member.user_id, User.username, path)
        .join(User, User.id == Member.user_id)
        .outerjoin(Group, Group.id == Member.group_id)
        .outerjoin(Project, Project.id == Member.project_id)
        .where(Member.expires_at <= now.date())
        .limit(_MEMBERSHIPS_PER_BATCH)
        .with_for_update(of=Member, skip_locked=True)
    )
    removed = 0
    while rows := session.execute(ended).all():
        for row in rows:
            event = Event(
                kind=EventKind.MEMBER_EXPIRED,
                user_id=row.user_id,
                subject=row.path,
                details={"username": row.username},
            )
            store_event(event, EventSource(), session=session, now=now)
        session.execute(build_bulk_delete(Member).where(Member.id.in_([row.id for row in rows])))
        commit_batch()
        removed += len(rows)
    return removed
