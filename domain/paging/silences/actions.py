"""Actions on silences and flap detection settings, and previews of silences."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Select, String, case, cast, func, literal, select, union
from sqlalchemy.orm import Session, aliased

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.alerts.formats.base import ParserSettings
from domain.alerts.handling.alert_detail import get_alert_id
from domain.alerts.listing.filters import OPEN_STATUSES
from domain.alerts.matching.alert_labels import find_alert_labels
from domain.alerts.matching.matcher_parser import MAX_MATCHERS_TEXT_LENGTH
from domain.alerts.matching.matcher_syntax import (
    Matcher,
    MatcherOperator,
    format_matchers,
    matches_all_labels,
)
from domain.audit.events import EventKind
from domain.core.database.pagination import KeysetPage, KeysetRange, fetch_list_page, fetch_page
from domain.core.durations import format_duration
from domain.core.errors import ConflictError, InvalidError, NotFoundError
from domain.core.types.base import get_column_values
from domain.core.types.pagination import ListPage
from domain.paging.silences.active_mutes import find_alert_mute
from domain.paging.silences.flapping import get_flap_settings, store_flap_settings
from domain.paging.silences.types import (
    AlertMute,
    FlapSettings,
    FlapSettingsChange,
    MuteKind,
    NewSilence,
    PreviewAlert,
    PreviewQuery,
    Silence,
    SilenceChange,
    SilencePreview,
    SilenceQuery,
    SilenceState,
)
from domain.projects.row_ownership import (
    build_owner_columns,
    build_owner_match_condition,
    is_owned_by_ancestor,
    is_owned_by_self_or_ancestor,
    select_project_ids,
)
from domain.projects.views import ProjectOrGroup, ProjectView
from models import Alert, Delivery, Group, Project, User
from models import Silence as SilenceRow

PREVIEW_PERIOD = timedelta(days=7)
#: Maximum number of alerts in a preview, and maximum size of their payloads in bytes. The newest
#: alerts are used.
MAX_PREVIEW_ALERTS = 2_000
_MAX_PREVIEW_BYTES = 16_000_000
_MAX_SHOWN_ALERTS = 20
#: Labels that identify a problem, with the names that alert senders use.
_IDENTIFYING_LABELS = ("alertname", "service", "environment", "instance", "host")
_MAX_LABEL_VALUE_LENGTH = MAX_MATCHERS_TEXT_LENGTH // (2 * len(_IDENTIFYING_LABELS))
MIN_SILENCE_LENGTH = timedelta(minutes=1)
#: Maximum number of unexpired silences in a project or group. Each silence slows down the check
#: before a page is sent.
MAX_UNEXPIRED_SILENCES = 500
#: Maximum age of the start time, since a form may have been open for a while.
_MAX_START_IN_PAST = timedelta(days=1)
_MAX_START_IN_FUTURE = timedelta(days=366)


def build_matchers(labels: Mapping[str, str]) -> tuple[Matcher, ...]:
    """Return matchers for the labels that identify a problem and its location.

    `host` is left out if the alert has the `instance` label, which is more precise.
    """
    names = [
        name
        for name in _IDENTIFYING_LABELS
        if 0 < len(labels.get(name, "")) <= _MAX_LABEL_VALUE_LENGTH
    ]
    if "instance" in names and "host" in names:
        names.remove("host")
    return tuple(Matcher(name, MatcherOperator.EQUAL, labels[name]) for name in names)


def _find_preview_alerts(
    holder: ProjectOrGroup, *, session: Session, now: datetime
) -> tuple[list[int], bool]:
    """Return the IDs of the alerts to preview, newest first, and whether the list is truncated."""
    of_holder = (
        select(Alert.id, Alert.started_at, Alert.delivery_id)
        .where(Alert.project_id.in_(select_project_ids(holder)))
        .order_by(Alert.started_at.desc(), Alert.id.desc())
        .limit(MAX_PREVIEW_ALERTS + 1)
    )
    # Each branch can read its rows in index order.
    branches = [
        of_holder.where(Alert.started_at >= now - PREVIEW_PERIOD),
        *(of_holder.where(Alert.status == status) for status in OPEN_STATUSES),
    ]
    together = union(*(select(branch.subquery()) for branch in branches)).subquery()
    newest = (
        select(together)
        .order_by(together.c.started_at.desc(), together.c.id.desc())
        .limit(MAX_PREVIEW_ALERTS + 1)
        .subquery()
    )
    rows = session.execute(
        select(newest.c.id, newest.c.delivery_id, func.coalesce(func.length(Delivery.body), 0))
        .outerjoin(Delivery, Delivery.id == newest.c.delivery_id)
        .order_by(newest.c.started_at.desc(), newest.c.id.desc())
    ).all()
    ids: list[int] = []
    seen: set[int | None] = set()
    room = _MAX_PREVIEW_BYTES
    for alert_id, delivery_id, size in rows[:MAX_PREVIEW_ALERTS]:
        room -= 0 if delivery_id in seen else size
        seen.add(delivery_id)
        if ids and room < 0:
            break
        ids.append(alert_id)
    return ids, len(ids) < len(rows)


_AUTHOR, _ENDER = aliased(User), aliased(User)
_ORDER_COLUMNS = {
    "id": SilenceRow.id,
    "starts_at": SilenceRow.starts_at,
    "ends_at": SilenceRow.ends_at,
}


@read_action("silences.index")
def list_silences(
    work: UnitOfWork, holder: ProjectOrGroup, query: SilenceQuery
) -> ListPage[Silence]:
    """List silences."""
    here = is_owned_by_self_or_ancestor(
        SilenceRow,
        holder,
        with_groups_above=query.include_ancestor_groups,
        session=work.session,
    )
    rows = _select_silences(work, here).where(*_build_state_conditions(query.state, work.now))
    found = fetch_list_page(rows, _ORDER_COLUMNS, query.requested_range, session=work.session)
    return ListPage.from_page_result(found, Silence.model_validate)


@read_action("silences.index")
def fetch_silence_page(
    work: UnitOfWork, holder: ProjectOrGroup, state: SilenceState, part: KeysetRange
) -> KeysetPage[Silence]:
    """Return one page of the list of silences in a state, newest first."""
    rows = _select_own_silences(work, holder).where(*_build_state_conditions(state, work.now))
    return fetch_page(rows, SilenceRow.id, part, session=work.session, view=Silence.model_validate)


@read_action("silences.index")
def list_inherited_silences(work: UnitOfWork, holder: ProjectOrGroup) -> Sequence[Silence]:
    """Return the active silences of ancestor groups, ordered by end time."""
    rows = _select_silences(work, is_owned_by_ancestor(SilenceRow, holder, session=work.session))
    found = work.session.execute(
        rows.where(*_build_state_conditions(SilenceState.ACTIVE, work.now)).order_by(
            SilenceRow.ends_at
        )
    )
    return [Silence.model_validate(row) for row in found]


@read_action("silences.show")
def show_silence(work: UnitOfWork, holder: ProjectOrGroup, silence_id: int) -> Silence:
    """Show a silence.

    Raise NotFoundError if there is no such silence.
    """
    row = work.session.execute(
        _select_own_silences(work, holder).where(SilenceRow.id == silence_id)
    ).first()
    if row is None:
        raise _build_not_found_error(holder, silence_id)
    return Silence.model_validate(row)


@read_action("silences.preview")
def preview_silence(
    work: UnitOfWork, holder: ProjectOrGroup, query: PreviewQuery
) -> SilencePreview:
    """Preview the alerts that a silence would mute."""
    _check_matchers(query.matchers)
    ids, is_cut = _find_preview_alerts(holder, session=work.session, now=work.now)
    found = find_alert_labels(ids, session=work.session, reading=work.policy(ParserSettings))
    matched = [
        alert_id for alert_id in ids if matches_all_labels(query.matchers, found[alert_id].labels)
    ]
    newest = (Alert.started_at.desc(), Alert.id.desc())
    rows = (
        select(Alert, Project.path)
        .join(Project, Project.id == Alert.project_id)
        .where(Alert.id.in_(matched))
        .order_by(*newest)
    )
    alerts = work.session.execute(rows).all() if matched else ()
    return SilencePreview(
        matchers=query.matchers,
        open_alerts=sum(alert.status in OPEN_STATUSES for alert, _ in alerts),
        recent_alerts=sum(alert.started_at >= work.now - PREVIEW_PERIOD for alert, _ in alerts),
        looked_at=len(ids),
        is_complete=not is_cut,
        alerts=[
            PreviewAlert(
                **get_column_values(alert, PreviewAlert) | {"severity": found[alert.id].severity},
                project=path,
                web_url=f"{work.settings.base_url}/{path}/-/alerts/{alert.iid}",
            )
            for alert, path in alerts[:_MAX_SHOWN_ALERTS]
        ],
    )


@action("silences.create")
def create_silence(work: UnitOfWork, holder: ProjectOrGroup, new: NewSilence) -> Silence:
    """Create a silence.

    Raise InvalidError if a field is invalid, or ConflictError if there are too many silences.
    """
    _check_matchers(new.matchers)
    starts_at = new.starts_at or work.now
    ends_at = _compute_end(new, starts_at)
    if ends_at is None:
        message = "The silence has no end. Use `ends_at`, or a `duration` such as 2h."
        raise InvalidError(message, field="ends_at")
    _check_times(work, starts_at, ends_at)
    live = select(func.count()).where(
        build_owner_match_condition(SilenceRow, holder), SilenceRow.ends_at > work.now
    )
    if (work.session.scalar(live) or 0) >= MAX_UNEXPIRED_SILENCES:
        message = (
            f"{holder.path} already has {MAX_UNEXPIRED_SILENCES} active and pending silences, "
            "which is the "
            "maximum. End a silence first."
        )
        raise ConflictError(message, field="matchers")
    row = SilenceRow(
        **build_owner_columns(holder),
        matchers=format_matchers(new.matchers),
        comment=new.comment,
        starts_at=starts_at,
        ends_at=ends_at,
        created_at=work.now,
        created_by_id=work.actor.id,
    )
    work.session.add(row)
    return _store_silence(work, holder, row, EventKind.SILENCE_CREATED)


@action("silences.edit")
def change_silence(
    work: UnitOfWork, holder: ProjectOrGroup, silence_id: int, change: SilenceChange
) -> Silence:
    """Change the end or comment of a silence that has not ended.

    Raise InvalidError if a field is invalid, NotFoundError if there is no such silence, or
    ConflictError if the silence has ended.
    """
    row = _lock_unexpired_silence(work, holder, silence_id)
    ends_at = _compute_end(change, work.now)
    if ends_at is not None:
        # The start was checked when the silence was created, and can now be too far in the past to
        # pass the check.
        _check_times(work, max(row.starts_at, work.now), ends_at)
        row.ends_at = ends_at
    row.comment = row.comment if change.comment is None else change.comment
    if not work.session.is_modified(row):
        return show_silence(work, holder, silence_id)
    return _store_silence(work, holder, row, EventKind.SILENCE_CHANGED)


@action("silences.delete", command="expire")
def expire_silence(work: UnitOfWork, holder: ProjectOrGroup, silence_id: int) -> Silence:
    """End a silence now and keep it in the list.

    Raise NotFoundError if there is no such silence, or ConflictError if the silence has ended.
    """
    row = _lock_unexpired_silence(work, holder, silence_id)
    row.starts_at = min(row.starts_at, work.now)
    row.ends_at = work.now
    row.ended_by_id = work.actor.id
    return _store_silence(work, holder, row, EventKind.SILENCE_EXPIRED)


@read_action("silences.index")
def count_silences_by_state(work: UnitOfWork, holder: ProjectOrGroup) -> dict[SilenceState, int]:
    """Return the numbers of active and pending silences, by state.

    Expired silences are not counted.
    """
    starts = work.session.scalars(
        select(SilenceRow.starts_at).where(
            build_owner_match_condition(SilenceRow, holder), SilenceRow.ends_at > work.now
        )
    ).all()
    active = sum(starts_at <= work.now for starts_at in starts)
    return {SilenceState.ACTIVE: active, SilenceState.PENDING: len(starts) - active}


def _select_own_silences(work: UnitOfWork, holder: ProjectOrGroup) -> Select[tuple[object, ...]]:
    return _select_silences(work, build_owner_match_condition(SilenceRow, holder))


def _select_silences(
    work: UnitOfWork, owner_condition: ColumnElement[bool]
) -> Select[tuple[object, ...]]:
    """Build a query that selects the fields of `Silence`."""
    state = case(
        (SilenceRow.ends_at <= work.now, SilenceState.EXPIRED),
        (SilenceRow.starts_at <= work.now, SilenceState.ACTIVE),
        else_=SilenceState.PENDING,
    )
    place = func.coalesce(literal("groups/").concat(Group.path), Project.path)
    url = literal(f"{work.settings.base_url}/").concat(place).concat("/-/silences/")
    return (
        select(
            *SilenceRow.__table__.columns,
            state.label("state"),
            Group.path.label("group"),
            _AUTHOR.username.label("created_by"),
            _ENDER.username.label("ended_by"),
            url.concat(cast(SilenceRow.id, String)).label("web_url"),
        )
        .outerjoin(_AUTHOR, _AUTHOR.id == SilenceRow.created_by_id)
        .outerjoin(_ENDER, _ENDER.id == SilenceRow.ended_by_id)
        .outerjoin(Group, Group.id == SilenceRow.group_id)
        .outerjoin(Project, Project.id == SilenceRow.project_id)
        .where(owner_condition)
    )


def _build_state_conditions(
    state: SilenceState | None, now: datetime
) -> Sequence[ColumnElement[bool]]:
    match state:
        case SilenceState.EXPIRED:
            return [SilenceRow.ends_at <= now]
        case SilenceState.ACTIVE:
            return [SilenceRow.ends_at > now, SilenceRow.starts_at <= now]
        case SilenceState.PENDING:
            return [SilenceRow.ends_at > now, SilenceRow.starts_at > now]
    return []


def _check_matchers(matchers: Sequence[Matcher]) -> None:
    """Check that at least one matcher does not match a missing label.

    Otherwise, the silence would also mute every alert that has none of the labels. Raise
    InvalidError if the check fails, or if there are no matchers.
    """
    if not matchers:
        message = 'Enter at least one matcher, such as service="web".'
        raise InvalidError(message, field="matchers")
    if matches_all_labels(matchers, {}):
        message = (
            "These matchers match every alert without these labels. Use at least one matcher that "
            'does not match an empty value, such as service="web" or alertname=~".+".'
        )
        raise InvalidError(message, field="matchers")


def _compute_end(wanted: NewSilence | SilenceChange, begin: datetime) -> datetime | None:
    """Return the end time that `ends_at` or `duration` specifies, or None if both are absent.

    Raise InvalidError if both fields are given.
    """
    if wanted.duration is None:
        return wanted.ends_at
    if wanted.ends_at is not None:
        message = "`ends_at` and `duration` cannot be combined. Use one."
        raise InvalidError(message, field="duration")
    try:
        return begin + wanted.duration
    except OverflowError as error:
        raise InvalidError("The end is too far in the future.", field="duration") from error


def _check_times(work: UnitOfWork, starts_at: datetime, ends_at: datetime) -> None:
    longest = timedelta(days=work.settings.longest_silence_days)
    if not work.now - _MAX_START_IN_PAST <= starts_at <= work.now + _MAX_START_IN_FUTURE:
        message = "The start must be between now and one year from now."
        raise InvalidError(message, field="starts_at")
    if ends_at <= work.now or ends_at - starts_at < MIN_SILENCE_LENGTH:
        message = "A silence must end in the future and last at least one minute."
        raise InvalidError(message, field="ends_at")
    if ends_at - max(starts_at, work.now) > longest:
        raise InvalidError(
            f"A silence can last at most {format_duration(longest)}.", field="ends_at"
        )


def _lock_unexpired_silence(
    work: UnitOfWork, holder: ProjectOrGroup, silence_id: int
) -> SilenceRow:
    row = work.session.scalar(
        select(SilenceRow)
        .where(build_owner_match_condition(SilenceRow, holder), SilenceRow.id == silence_id)
        .with_for_update()
    )
    if row is None:
        raise _build_not_found_error(holder, silence_id)
    if row.ends_at <= work.now:
        raise ConflictError("This silence has ended. Create a new silence.")
    return row


def _build_not_found_error(holder: ProjectOrGroup, silence_id: int) -> NotFoundError:
    word = holder.namespace.resource_type
    return NotFoundError(f"Silence {silence_id} not found in this {word}.")


def _store_silence(
    work: UnitOfWork, holder: ProjectOrGroup, row: SilenceRow, kind: EventKind
) -> Silence:
    """Store a silence, log an audit event, and return the silence."""
    work.session.flush()
    details = {
        holder.namespace.resource_type: holder.path,
        "silence": row.id,
        "starts_at": row.starts_at.isoformat(),
        "ends_at": row.ends_at.isoformat(),
    }
    work.record_audit_event(kind, subject=row.matchers, details=details)
    return show_silence(work, holder, row.id)


@read_action("alert_mutes.show")
def show_mute(work: UnitOfWork, project: ProjectView, iid: int) -> AlertMute:
    """Show why an alert is muted."""
    alert_id = get_alert_id(project.id, iid, session=work.session)
    mute = find_alert_mute(
        alert_id, moment=work.now, session=work.session, parser_settings=work.policy(ParserSettings)
    )
    if mute is None:
        return AlertMute(muted=False)
    has_page = mute.kind in {MuteKind.SILENCE, MuteKind.MAINTENANCE}
    return AlertMute(
        muted=True,
        kind=mute.kind,
        group=mute.group,
        id=mute.id if has_page else None,
        name=mute.name,
        by=mute.by or None,
        until=mute.until,
    )


@read_action("flap_settings.show")
def show_flap_settings(work: UnitOfWork, project: ProjectView) -> FlapSettings:
    """Show the flap detection settings."""
    return get_flap_settings(project.id, session=work.session)


@action("flap_settings.edit", command="set")
def change_flap_settings(
    work: UnitOfWork, project: ProjectView, change: FlapSettingsChange
) -> FlapSettings:
    """Change the flap detection settings."""
    present = get_flap_settings(project.id, session=work.session)
    wanted = present.model_copy(update=dict(change.given_values))
    if wanted != present:
        store_flap_settings(project.id, wanted, session=work.session)
        values = wanted.model_dump()
        details = {"project": project.path, "is_on": values.pop("enabled"), **values}
        work.record_audit_event(
            EventKind.FLAP_SETTINGS_CHANGED, subject=project.path, details=details
        )
    return wanted
