"""What a message to a contact says; written when it is sent, so that it says what is true then."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from domain.alerts.handling.former_alerts import FormerAlerts, former_alerts
from domain.alerts.listing.filters import SEVERITIES
from domain.keyring import Keyring, UndecipherableError
from domain.notifications.follow_ups import FollowUp, follow_ups_of
from domain.notifications.links import AcknowledgementLink, seal_link
from domain.notifications.paging import PageKind
from domain.notifications.policy import PagingPolicy
from domain.time_zones import local_time
from models import Alert, Contact, Page, PageMessage, Project, User

#: So many alerts are named; of others the number is given.
MOST_NAMED = 10
_LONGEST_DESCRIPTION = 500
_LONGEST_SUBJECT = 150


@dataclass(frozen=True, kw_only=True)
class Content:
    """A message."""

    subject: str
    text: str
    #: Whether it is about something bad, which some services show in another colour.
    is_alarm: bool = False


@dataclass(frozen=True, kw_only=True)
class _Line:
    """An alert that fires."""

    title: str
    severity: str
    path: str
    iid: int
    started_at: datetime
    description: str | None
    details: tuple[tuple[str, str], ...]
    former: FormerAlerts | None


@dataclass(frozen=True, kw_only=True)
class _Firing:
    count: int
    lines: tuple[_Line, ...]


def page_content(
    contact: Contact,
    messages: Sequence[PageMessage],
    policy: PagingPolicy,
    *,
    session: Session,
    now: datetime,
) -> Content | None:
    """Return the message about the alerts of some batches, or None if there is nothing to say."""
    batches = sorted(each.batch_id for each in messages if each.batch_id is not None)
    firing = _firing_of(batches, session=session)
    place = _zone_of(contact, session=session)
    follow_ups = follow_ups_of(contact, batches, session=session)
    if not firing.count and not follow_ups:
        return None
    parts = [_firing_text(firing, policy, place)] if firing.count else []
    if firing.count and contact.user_id is not None:
        link = AcknowledgementLink(
            user_id=contact.user_id, first_batch_id=batches[0], last_batch_id=batches[-1]
        )
        url = f"{policy.base_url}/-/acknowledge/{seal_link(link, policy.link_keys, now=now)}"
        what = f"all {firing.count}" if firing.count > 1 else "it"
        parts.append(f"Acknowledge {what}: {url}")
    if follow_ups:
        parts.append(_follow_up_text(follow_ups, policy))
    subject = _firing_subject(firing) if firing.count else _follow_up_subject(follow_ups)
    return Content(
        subject=_short(subject, _LONGEST_SUBJECT),
        text="\n\n".join(parts) + _signature(policy),
        is_alarm=firing.count > 0,
    )


def _firing_of(batches: Sequence[int], *, session: Session) -> _Firing:
    """Return the alerts of batches that still wait for somebody, the most severe first."""
    paged = select(Page.alert_id).where(
        Page.batch_id.in_(batches),
        Page.kind == PageKind.FIRING.value,
        Page.withdrawn_at.is_(None),
    )
    waiting: Select[Alert, str] = (
        select(Alert, Project.path)
        .join(Project, Project.id == Alert.project_id)
        .where(Alert.id.in_(paged), Alert.status == "triggered", Project.deleted_at.is_(None))
    )
    count = session.scalar(select(func.count()).select_from(waiting.subquery())) or 0
    named = waiting.order_by(Alert.severity, Alert.id).limit(MOST_NAMED)
    rows = session.execute(named).all()
    # What was before is said of an alert that is alone in its message.
    former = former_alerts(rows[0][0].id, session=session) if len(rows) == 1 else None
    return _Firing(count=count, lines=tuple(_line(alert, path, former) for alert, path in rows))


def _line(alert: Alert, path: str, former: FormerAlerts | None) -> _Line:
    details = (
        ("Why this severity", alert.severity_reason),
        ("Service", alert.service),
        ("Environment", alert.environment),
        ("Hosts", ", ".join(alert.hosts.split("\n")) if alert.hosts else None),
        ("Monitoring tool", alert.monitoring_tool),
    )
    return _Line(
        title=_one_line(alert.title),
        severity=SEVERITIES[alert.severity].value,
        path=path,
        iid=alert.iid,
        started_at=alert.started_at,
        description=alert.description,
        details=tuple((name, _one_line(value)) for name, value in details if value),
        former=former,
    )


def _firing_subject(firing: _Firing) -> str:
    first = firing.lines[0]
    if firing.count == 1:
        return f"[{first.severity}] {first.title} ({first.path} #{first.iid})"
    return f"[{first.severity}] {firing.count} alerts: {first.title} and others"


def _zone_of(contact: Contact, *, session: Session) -> str:
    """Return the time zone of the person to whom a contact leads; channels have UTC."""
    own = select(User.time_zone).where(User.id == contact.user_id)
    return (session.scalar(own) if contact.user_id is not None else None) or "UTC"


def _firing_text(firing: _Firing, policy: PagingPolicy, place: str) -> str:
    if firing.count == 1:
        return _one_alert_text(firing.lines[0], policy, place)
    lines = [f"{firing.count} alerts need attention.", ""]
    for each in firing.lines:
        lines += [f"[{each.severity}] {each.title}", _url(each, policy), ""]
    if firing.count > len(firing.lines):
        lines += [f"… and {firing.count - len(firing.lines)} more.", ""]
    return "\n".join(lines).rstrip()


def _one_alert_text(line: _Line, policy: PagingPolicy, place: str) -> str:
    at = local_time(line.started_at, place)
    shown = (
        ("Severity", line.severity),
        ("Project", line.path),
        *line.details,
        ("Started", at),
    )
    lines = [line.title, "", *(f"{name}: {value}" for name, value in shown)]
    if line.description:
        lines += ["", _short(_printable(line.description), _LONGEST_DESCRIPTION)]
    if line.former:
        lines += ["", *_former_lines(line.former, line, policy, place)]
    return "\n".join([*lines, "", f"Show alert #{line.iid}: {_url(line, policy)}"])


def _former_lines(
    former: FormerAlerts, line: _Line, policy: PagingPolicy, place: str
) -> Iterator[str]:
    """Yield how often the alert came before, and what was noted then."""
    yield f"Seen {former.times} before, last at {local_time(former.last_started_at, place)}."
    note = former.note
    if note is not None:
        by = f"@{note.user_name}" if note.user_name else "Somebody"
        did = "resolved it" if note.text is None else f"noted then: {_one_line(note.text)}"
        yield f"{by} {did}"
        yield f"{policy.base_url}/{line.path}/-/alerts/{note.iid}"


def _url(line: _Line, policy: PagingPolicy) -> str:
    return f"{policy.base_url}/{line.path}/-/alerts/{line.iid}"


def _follow_up_subject(follow_ups: Sequence[FollowUp]) -> str:
    first = follow_ups[0]
    if len(follow_ups) == 1:
        return f"{first.words}: {_one_line(first.title)} ({first.path} #{first.iid})"
    return f"{len(follow_ups)} alerts: {first.words.lower()}: {_one_line(first.title)} and others"


def _follow_up_text(follow_ups: Sequence[FollowUp], policy: PagingPolicy) -> str:
    lines = []
    for each in follow_ups[:MOST_NAMED]:
        url = f"{policy.base_url}/{each.path}/-/alerts/{each.iid}"
        lines += [f"{each.words}: {_one_line(each.title)}", url]
    if len(follow_ups) > MOST_NAMED:
        lines.append(f"… and {len(follow_ups) - MOST_NAMED} more.")
    return "\n".join(lines)


def test_content(contact: Contact, policy: PagingPolicy) -> Content:
    """Return the test message of a contact."""
    return Content(
        subject=f"Test message from {policy.instance_name}",
        text=f"Messages to “{_one_line(contact.label)}” are delivered." + _signature(policy),
    )


def code_content(
    contact: Contact, policy: PagingPolicy, *, keyring: Keyring, now: datetime
) -> Content | None:
    """Return the message with the code that confirms a contact, or None if it needs none."""
    if contact.code_ciphertext is None or contact.code_expires_at is None:
        return None
    try:
        code = keyring.decrypt(contact.code_ciphertext)
    except UndecipherableError:
        return None
    if contact.code_expires_at <= now:
        return None
    return Content(
        subject=f"{code} is your code for {policy.instance_name}",
        text=(
            f"Enter this code to receive alerts here: {code}\n\n"
            "If you did not request it, ignore this message." + _signature(policy)
        ),
    )


def _signature(policy: PagingPolicy) -> str:
    return f"\n\n-- \n{policy.instance_name}, {policy.base_url}\n"


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def _printable(text: str) -> str:
    """Return a text without control characters, but with its line breaks."""
    return "".join(each for each in text if each == "\n" or unicodedata.category(each) != "Cc")


def _one_line(text: str) -> str:
    return " ".join(_printable(text).split())
