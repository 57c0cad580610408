"""Whether the pages of alerts are held back, by what, and until when.

Alerts are stored and shown as ever. Whoever pages asks before each page, holds it back until the
time that it is told, and then asks again: rules may have ended, changed or come since.

Two kinds of alerts that open again and again are held back as well, both told from the stored
alerts with the same fingerprint. The people whom a flapping alert has paged are paged again once in
a while, and not at each opening. An alert that opens shortly after the end of one that was
acknowledged is the same story: whoever acknowledged it may be on it still, so it pages when it
stays open.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Row, and_, func, select
from sqlalchemy.orm import Session, aliased

from domain.alerts.formats.base import Reading
from domain.alerts.handling.activity import NoteKind
from domain.alerts.listing.filters import OPEN_STATUSES
from domain.alerts.listing.queries import AlertRow
from domain.alerts.matching.conditions import meets
from domain.alerts.matching.labels import AlertLabels, labels_of
from domain.alerts.matching.matchers import Matcher, matches
from domain.alerts.matching.parser import parse_matchers
from domain.clock import CLOCK_TOLERANCE
from domain.database.rows import insert_into
from domain.maintenance_windows.windows import CurrentWindow, find_current
from domain.projects.holders import Lineage, by_user, is_used_by, lineages
from domain.projects.views import ProjectView
from domain.silences.types import FlapSettings, MuteKind
from domain.types.base import columns_of
from models import Alert, AlertNote, FlapSetting, Group, Silence, User

_MINUTE = timedelta(minutes=1)
_IDS_AT_ONCE = 1_000
#: So many alerts back the one is looked for that somebody acknowledged.
_LONGEST_STORY = 10
_ACKNOWLEDGED = "acknowledged"
_TRIGGERED = "triggered"
#: As alerts are stored.
_CRITICAL = 0


USUAL = FlapSettings()


def find_settings(project_ids: Iterable[int], *, session: Session) -> Mapping[int, FlapSettings]:
    """Return the settings of projects, the usual ones included."""
    wanted = set(project_ids)
    rows = session.scalars(select(FlapSetting).where(FlapSetting.project_id.in_(wanted)))
    return dict.fromkeys(wanted, USUAL) | {
        row.project_id: FlapSettings(enabled=row.is_on, **columns_of(row, FlapSettings))
        for row in rows
    }


def get_settings(project_id: int, *, session: Session) -> FlapSettings:
    """Return the settings of a project."""
    return find_settings([project_id], session=session)[project_id]


def store_settings(project_id: int, wanted: FlapSettings, *, session: Session) -> None:
    """Store the settings of a project."""
    values = wanted.model_dump()
    values["is_on"] = values.pop("enabled")
    insert = insert_into(FlapSetting, session=session).values(project_id=project_id, **values)
    session.execute(insert.on_conflict_do_update(index_elements=["project_id"], set_=values))


@dataclass(frozen=True, kw_only=True)
class Hold:
    """Why the page of an alert waits, and until when if it stays open."""

    alert_id: int
    until: datetime
    #: The number and id of the alert that somebody acknowledged; None for a flapping alert.
    continues_iid: int | None = None
    continues_id: int | None = None
    acknowledged_by: str = ""
    #: Of a flapping alert: how often it opened, at least, and in how many minutes.
    openings: int = 0
    within_minutes: int = 0
    hold_minutes: int = 0


@dataclass(frozen=True, kw_only=True)
class Return:
    """That an alert opened soon after one with the same fingerprint ended unanswered."""

    #: The id of the alert that ended.
    previous_id: int
    #: For how long it was over.
    calm: timedelta
    #: How long repeated pages wait for each other; zero unless the alert flaps.
    between_repeats: timedelta


def returns(alerts: Mapping[int, int], *, at: datetime, session: Session) -> Mapping[int, Return]:
    """Return which of some alerts that open now come back, by id; `alerts` has their projects.

    A project that does not look for flapping alerts takes each one for a new story.
    """
    found: dict[int, Return] = {}
    for each, ids in _by_settings(alerts, session=session).items():
        if not each.enabled:
            continue
        before = _before(ids, each.within_minutes * _MINUTE, session=session)
        if not before:
            continue
        notes = _last_status_notes([row.id for row in before.values()], session=session)
        flapping = _flapping(list(before), each, at=at, session=session)
        hold = each.hold_minutes * _MINUTE
        found |= {
            alert_id: Return(
                previous_id=row.id,
                calm=max(row.created_at - row.ended_at, timedelta()),
                between_repeats=hold if alert_id in flapping else timedelta(),
            )
            for alert_id, row in before.items()
            if row.id not in notes or notes[row.id].text == _TRIGGERED
        }
    return found


def holds(alerts: Mapping[int, int], *, at: datetime, session: Session) -> Mapping[int, Hold]:
    """Return why alerts wait at a moment, by id; `alerts` has their projects by id.

    It takes one query for each thousand alerts with the same settings, and a few for those that
    opened shortly after another one ended.
    """
    found: dict[int, Hold] = {}
    for each, ids in _by_settings(alerts, session=session).items():
        found |= _continuing(ids, each, at=at, session=session)
        found |= _flapping(ids, each, at=at, session=session) if each.enabled else {}
    return found


def _by_settings(
    alerts: Mapping[int, int], *, session: Session
) -> Mapping[FlapSettings, Sequence[int]]:
    settings = find_settings(alerts.values(), session=session)
    found: dict[FlapSettings, list[int]] = {}
    for alert_id, project_id in alerts.items():
        found.setdefault(settings[project_id], []).append(alert_id)
    return found


def _slices(ids: Sequence[int]) -> Iterable[Sequence[int]]:
    return (ids[begin : begin + _IDS_AT_ONCE] for begin in range(0, len(ids), _IDS_AT_ONCE))


def _flapping(
    ids: Sequence[int], settings: FlapSettings, *, at: datetime, session: Session
) -> dict[int, Hold]:
    """Return the alerts that opened too often; the one that opened once too often pages as well."""
    within, hold = settings.within_minutes * _MINUTE, settings.hold_minutes * _MINUTE
    earlier = aliased(Alert)
    # One row of the index and of the table for each opening, however many there are.
    opened_at = (
        select(earlier.created_at)
        .where(
            earlier.fingerprint == Alert.fingerprint,
            earlier.project_id == Alert.project_id,
            earlier.id < Alert.id,
        )
        .order_by(earlier.id.desc())
        .offset(settings.openings)
        .limit(1)
        .correlate(Alert)
        .scalar_subquery()
    )
    rows = [
        row
        for some in _slices(ids)
        for row in session.execute(
            select(Alert.id, Alert.created_at, opened_at.label("opened_at")).where(
                Alert.id.in_(some),
                Alert.fingerprint.is_not(None),
                Alert.status.in_(OPEN_STATUSES),
                _opened_since(at - hold, at),
                *(() if settings.holds_critical else (Alert.severity > _CRITICAL,)),
            )
        )
    ]
    return {
        row.id: Hold(
            alert_id=row.id,
            until=row.created_at + hold,
            openings=settings.openings + 2,
            within_minutes=settings.within_minutes,
            hold_minutes=settings.hold_minutes,
        )
        for row in rows
        if row.opened_at is not None and row.opened_at > row.created_at - within
    }


def _continuing(
    ids: Sequence[int], settings: FlapSettings, *, at: datetime, session: Session
) -> dict[int, Hold]:
    """Return the alerts that continue one which somebody acknowledged."""
    if not settings.reopen_minutes:
        return {}
    window = settings.reopen_minutes * _MINUTE
    opened = _opening_times(at - window, ids, at=at, session=session)
    found: dict[int, Hold] = {}
    # By the id of the earliest alert of each story that is known: the alert that is asked about.
    stories = {alert_id: alert_id for alert_id in opened}
    for _ in range(_LONGEST_STORY):
        if not stories:
            break
        before = _before(list(stories), window, session=session)
        notes = _last_status_notes([row.id for row in before.values()], session=session)
        for alert_id, row in before.items():
            note, story = notes.get(row.id), stories[alert_id]
            if note is not None and note.text == _ACKNOWLEDGED:
                found[story] = Hold(
                    alert_id=story,
                    until=opened[story] + window,
                    continues_iid=row.iid,
                    continues_id=row.id,
                    acknowledged_by=note.user_name,
                )
        stories = {
            row.id: stories[alert_id] for alert_id, row in before.items() if row.id not in notes
        }
    return found


def _opened_since(moment: datetime, at: datetime) -> ColumnElement[bool]:
    """Return that an alert opened after a moment, and not by a clock that ran ahead."""
    return and_(Alert.created_at > moment, Alert.created_at <= at + CLOCK_TOLERANCE)


def _opening_times(
    moment: datetime, ids: Sequence[int], *, at: datetime, session: Session
) -> Mapping[int, datetime]:
    """Return when the open ones of these alerts opened, without those that did so before."""
    rows = (
        row
        for some in _slices(ids)
        for row in session.execute(
            select(Alert.id, Alert.created_at).where(
                Alert.id.in_(some),
                Alert.fingerprint.is_not(None),
                Alert.status.in_(OPEN_STATUSES),
                _opened_since(moment, at),
            )
        )
    )
    return {row.id: row.created_at for row in rows}


def _before(
    ids: Sequence[int], window: timedelta, *, session: Session
) -> Mapping[int, Row[*tuple[Any, ...]]]:
    """Return the alert before each one, if it ended shortly before that opened."""
    earlier, previous = aliased(Alert), aliased(Alert)
    previous_id = (
        select(func.max(earlier.id))
        .where(
            earlier.fingerprint == Alert.fingerprint,
            earlier.project_id == Alert.project_id,
            earlier.id < Alert.id,
        )
        .correlate(Alert)
        .scalar_subquery()
    )
    rows = [
        row
        for some in _slices(ids)
        for row in session.execute(
            select(
                Alert.id.label("after"),
                Alert.created_at,
                previous.id,
                previous.iid,
                previous.ended_at,
            )
            .join(previous, previous.id == previous_id)
            .where(Alert.id.in_(some))
        )
    ]
    return {
        row.after: row
        for row in rows
        if row.ended_at is not None and row.ended_at > row.created_at - window
    }


def _last_status_notes(
    ids: Sequence[int], *, session: Session
) -> Mapping[int, Row[*tuple[Any, ...]]]:
    """Return what a user set the status of each alert to at last; reports leave no such note."""
    return {
        row.alert_id: row
        for some in _slices(ids)
        for row in session.execute(
            select(AlertNote.alert_id, AlertNote.text, AlertNote.user_name)
            .where(AlertNote.alert_id.in_(some), AlertNote.kind == NoteKind.STATUS.value)
            .order_by(AlertNote.id)
        )
    }


#: A page is held back no longer without asking again, so that it leaves soon after a silence was
#: ended by hand, or a window deleted.
_ASK_AGAIN = timedelta(seconds=30)


class LiveSilence(NamedTuple):
    """An active silence."""

    id: int
    #: Where it belongs to, and the path of the group if that is one.
    project_id: int | None
    group_id: int | None
    group: str | None
    matchers: tuple[Matcher, ...]
    #: The comment, or else the matchers.
    name: str
    #: A user name; empty for the command line.
    created_by: str
    ends_at: datetime


@dataclass(frozen=True, kw_only=True)
class InForce:
    """The silences and maintenance windows that are in force in a project."""

    silences: int
    windows: int
    #: When the last of them ends, if nobody ends it before.
    until: datetime


def in_force(
    projects: Iterable[ProjectView], *, at: datetime, session: Session
) -> Mapping[int, InForce]:
    """Return what is in force by project, for those whose alerts the viewer may see.

    What the groups above have is in force as well.
    """
    ids = [project.id for project in projects if project.shows_alerts]
    if not ids:
        return {}
    used = lineages(ids, session=session)
    silences = find_live(used, at=at, session=session)
    windows = find_current(used, at=at, session=session)
    return {
        project_id: InForce(
            silences=len(silences.get(project_id, ())),
            windows=len(windows.get(project_id, ())),
            until=max(
                *(silence.ends_at for silence in silences.get(project_id, ())),
                *(window.occurrence.ends_at for window in windows.get(project_id, ())),
                at,
            ),
        )
        for project_id in silences.keys() | windows.keys()
    }


def find_live(
    used: Mapping[int, Lineage], *, at: datetime, session: Session
) -> Mapping[int, Sequence[LiveSilence]]:
    """Return the active silences of projects and the groups above, the one that ends last first.

    They are by the id of the project.
    """
    rows = session.execute(
        select(Silence, User.username, Group.path)
        .outerjoin(User, User.id == Silence.created_by_id)
        .outerjoin(Group, Group.id == Silence.group_id)
        .where(is_used_by(Silence, used.values()), Silence.ends_at > at, Silence.starts_at <= at)
        .order_by(Silence.ends_at.desc(), Silence.id)
    )
    live = [
        LiveSilence(
            id=row.id,
            project_id=row.project_id,
            group_id=row.group_id,
            group=group,
            matchers=parse_matchers(row.matchers),
            name=row.comment or row.matchers,
            created_by=author or "",
            ends_at=row.ends_at,
        )
        for row, author, group in rows
    ]
    return by_user(live, used)


@dataclass(frozen=True, kw_only=True)
class Mute:
    """What holds the pages of one alert back at a moment."""

    kind: MuteKind
    #: Of the silence, the window or the alert that it continues; 0 for a flapping alert.
    id: int
    #: In words: the comment or matchers of the silence, the name of the window, and so on.
    name: str
    #: Who made the silence or window, or acknowledged the alert before; empty for the command line.
    by: str
    #: When it ends, if nobody ends it before.
    until: datetime
    #: When to ask again, which is soon: it may be ended before its time.
    look_again_at: datetime
    #: The path of the group that the silence or window belongs to; None for one of the project.
    group: str | None = None
    #: The number of the alert that it continues.
    continues_iid: int | None = None


@dataclass(frozen=True)
class _Rules:
    """The silences and windows in force, by project."""

    silences: Mapping[int, Sequence[LiveSilence]]
    windows: Mapping[int, Sequence[CurrentWindow]]

    def concern(self, project_id: int) -> bool:
        return project_id in self.silences or project_id in self.windows

    def mutes(self, alert: AlertLabels, at: datetime) -> Iterator[Mute]:
        for silence in self.silences.get(alert.project_id, ()):
            if matches(silence.matchers, alert.labels):
                yield Mute(
                    kind=MuteKind.SILENCE,
                    id=silence.id,
                    name=silence.name,
                    by=silence.created_by,
                    until=silence.ends_at,
                    look_again_at=_again(silence.ends_at, at),
                    group=silence.group,
                )
                break  # it is the one that ends last
        for window in self.windows.get(alert.project_id, ()):
            if meets(window.conditions, alert):
                yield Mute(
                    kind=MuteKind.MAINTENANCE,
                    id=window.id,
                    name=window.name,
                    by=window.created_by,
                    until=window.occurrence.ends_at,
                    look_again_at=_again(window.occurrence.ends_at, at),
                    group=window.group,
                )


def muted(alerts: Sequence[AlertLabels], *, at: datetime, session: Session) -> Mapping[int, Mute]:
    """Return what holds the pages of alerts back at a moment, by alert id.

    Of several, it is the one that ends last. Open alerts are looked at by their labels of the
    moment. The number of queries does not depend on how many silences or windows there are, and
    grows by a few for each thousand alerts.
    """
    rules = _rules({alert.project_id for alert in alerts}, at=at, session=session)
    mutes = [mute_of for alert in alerts for mute_of in _pairs(alert, rules, at)]
    projects = {alert.alert_id: alert.project_id for alert in alerts}
    return _longest(mutes + _held(projects, at=at, session=session))


def silenced(alerts: Sequence[AlertLabels], *, at: datetime, session: Session) -> Collection[int]:
    """Return the ids of alerts that a silence or maintenance window matches at a moment.

    An alert that flaps or continues another one is not silenced.
    """
    rules = _rules({alert.project_id for alert in alerts}, at=at, session=session)
    return {alert.alert_id for alert in alerts if _pairs(alert, rules, at)}


def muted_rows(
    rows: Sequence[AlertRow], *, at: datetime, session: Session, reading: Reading
) -> Mapping[int, Mute]:
    """As `muted`, for the open ones of listed alerts; payloads are only read if a rule asks."""
    projects = {row.id: row.project_id for row in rows if row.status in OPEN_STATUSES}
    rules = _rules(set(projects.values()), at=at, session=session)
    concerned = [alert_id for alert_id, project in projects.items() if rules.concern(project)]
    alerts = labels_of(concerned, session=session, reading=reading).values() if concerned else ()
    mutes = [mute_of for alert in alerts for mute_of in _pairs(alert, rules, at)]
    return _longest(mutes + _held(projects, at=at, session=session))


def muted_alert(alert_id: int, *, at: datetime, session: Session, reading: Reading) -> Mute | None:
    """Return what holds the pages of an alert back at a moment, or None."""
    alerts = tuple(labels_of([alert_id], session=session, reading=reading).values())
    return muted(alerts, at=at, session=session).get(alert_id)


def _rules(project_ids: set[int], *, at: datetime, session: Session) -> _Rules:
    silences: dict[int, Sequence[LiveSilence]] = {}
    windows: dict[int, Sequence[CurrentWindow]] = {}
    ids = sorted(project_ids)
    for begin in range(0, len(ids), _IDS_AT_ONCE):
        some = ids[begin : begin + _IDS_AT_ONCE]
        used = lineages(some, session=session)
        silences |= find_live(used, at=at, session=session)
        windows |= find_current(used, at=at, session=session)
    return _Rules(silences, windows)


def _pairs(alert: AlertLabels, rules: _Rules, at: datetime) -> list[tuple[int, Mute]]:
    return [(alert.alert_id, mute) for mute in rules.mutes(alert, at)]


def _held(projects: Mapping[int, int], *, at: datetime, session: Session) -> list[tuple[int, Mute]]:
    found = holds(projects, at=at, session=session)
    return [(alert_id, _of_hold(hold, at)) for alert_id, hold in found.items()]


def _longest(mutes: Sequence[tuple[int, Mute]]) -> Mapping[int, Mute]:
    found: dict[int, Mute] = {}
    for alert_id, mute in mutes:
        if alert_id not in found or mute.until > found[alert_id].until:
            found[alert_id] = mute
    return found


def _of_hold(hold: Hold, at: datetime) -> Mute:
    if hold.continues_id is None:
        name = (
            f"opened {hold.openings} times or more within {hold.within_minutes} minutes, so the "
            f"same people are paged again at most every {hold.hold_minutes} minutes"
        )
        kind = MuteKind.FLAPPING
    else:
        name = f"continues alert #{hold.continues_iid}"
        kind = MuteKind.REOPENED
    return Mute(
        kind=kind,
        id=hold.continues_id or 0,
        name=name,
        by=hold.acknowledged_by,
        until=hold.until,
        look_again_at=_again(hold.until, at),
        continues_iid=hold.continues_iid,
    )


def _again(until: datetime, at: datetime) -> datetime:
    return min(until, at + _ASK_AGAIN)
