"""Writes the content of messages to contacts at the time of sending, so that it is up to date."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from domain.alerts.handling.activity import FormerAlerts
from domain.core.keyring import Keyring, UndecipherableError
from domain.core.text_links import is_web_url
from domain.core.time_zones import local_time
from domain.paging.notifications.acknowledging import AcknowledgementLink, seal_link
from domain.paging.notifications.message_facts import (
    Firing,
    FiringAlert,
    FollowUp,
    SingleAlert,
    firing_of,
    follow_ups_of,
)
from domain.paging.notifications.page_targets import Subject, counted
from domain.paging.notifications.policy import PageReason, PagingPolicy
from domain.paging.notifications.recipients import NO_ZONE, zone_of
from models import Contact, PageMessage

#: Maximum number of follow-ups that a message names. Others are only counted.
_MOST_FOLLOW_UPS = 10
_LONGEST_DESCRIPTION = 500
_LONGEST_SUBJECT = 150
_SHORTEST_TITLE = 50
_LONGEST_TITLE = 200
_LONGEST_VALUE = 300
_MINUTE = timedelta(minutes=1)
#: Characters that reverse the direction of the following text, which can disguise it.
_DIRECTION_OVERRIDES = frozenset("\u202d\u202e")


@dataclass(frozen=True, kw_only=True)
class Reader:
    """The reader of a text, and the time at which it is written."""

    #: Base URL of the service, without a trailing slash.
    base_url: str
    time_zone: str
    now: datetime

    def local_time(self, moment: datetime) -> str:
        """Return a time in the reader's time zone."""
        return local_time(moment, self.time_zone)

    def url_of(self, thing: FiringAlert | FollowUp) -> str:
        """Return the URL of the page of an alert or incident."""
        return f"{self.base_url}/{thing.path}/-/{thing.about}s/{thing.iid}"


def firing_subject(firing: Firing, reader: Reader) -> str:
    """Return the subject of a message about alerts and incidents that need attention."""
    first = firing.named[0]
    if firing.count == 1:
        return _subject(
            f"[{first.severity}] {_again(first.reason, reader)}", first, f"({_place(first)})"
        )
    where = _where(first.path, firing.projects)
    return _subject(f"[{first.severity}] {_count(firing)} in {where}: ", first, "and others")


def _count(firing: Firing) -> str:
    return counted(firing.count - firing.incidents, firing.incidents)


def _subject(before: str, alert: FiringAlert, after: str) -> str:
    """Return a subject in which only the title is truncated."""
    room = max(_LONGEST_SUBJECT - len(before) - len(after) - 1, _SHORTEST_TITLE)
    return f"{before}{short(_title(alert), room)} {after}"


def _where(path: str, projects: int) -> str:
    more = projects - 1
    return f"{path} and {_counted(more, 'other project')}" if more else path


def firing_text(firing: Firing, reader: Reader) -> str:
    """Return the text about firing alerts, with times in the reader's time zone."""
    if firing.single is not None:
        lines = _single_lines(firing.named[0], firing.single, reader)
    else:
        lines = _many_lines(firing, reader)
    return "\n".join(lines).rstrip()


def short_firing_text(firing: Firing, reader: Reader) -> str:
    """Return the text below the subject of short messages: the reason and next step."""
    reason = firing.named[0].reason
    if firing.count > 1 or reason is None:
        return ""
    return f"{_short_reason(reason, reader)}."


def follow_up_subject(follow_ups: Sequence[FollowUp]) -> str:
    """Return the subject of a message about alerts that were answered or have ended."""
    first = follow_ups[0]
    title = short(one_line(first.title), _LONGEST_SUBJECT)
    if len(follow_ups) == 1:
        return f"{first.words}: {title} ({first.path} #{first.iid})"
    where = _where(first.path, len({each.path for each in follow_ups}))
    news = f"{title} ({first.words.lower()})"
    incidents = sum(each.about is Subject.INCIDENT for each in follow_ups)
    count = counted(len(follow_ups) - incidents, incidents)
    return f"Updates on {count} in {where}: {news} and others"


def follow_up_text(follow_ups: Sequence[FollowUp], reader: Reader) -> str:
    """Return the text about alerts that were answered or have ended."""
    lines = []
    for each in follow_ups[:_MOST_FOLLOW_UPS]:
        lines += [
            f"{each.words}: {one_line(each.title)} ({each.path} #{each.iid})",
            reader.url_of(each),
        ]
    if len(follow_ups) > _MOST_FOLLOW_UPS:
        lines.append(f"… and {len(follow_ups) - _MOST_FOLLOW_UPS} more.")
    return "\n".join(lines)


def _again(reason: PageReason | None, reader: Reader) -> str:
    """Return the start of a subject from the second round on, when nobody has responded."""
    waited = _waited(reason, reader) if reason is not None and reason.round > 1 else ""
    return f"Unanswered for {waited}: " if waited else ""


def _title(alert: FiringAlert) -> str:
    """Return the title of an alert, or its first fields if it has no title."""
    fields = ", ".join(f"{one_line(name)}={one_line(value)}" for name, value in alert.fields)
    return short(fields or one_line(alert.title), _LONGEST_TITLE)


def _place(alert: FiringAlert) -> str:
    return f"{alert.path} #{alert.iid}"


def _many_lines(firing: Firing, reader: Reader) -> Iterator[str]:
    yield f"{_count(firing)} need attention."
    yield ""
    for each in firing.named:
        yield f"[{each.severity}] {_title(each)} ({_place(each)})"
        if each.reason is not None:
            yield _short_reason(each.reason, reader)
        yield reader.url_of(each)
        yield ""
    if firing.count > len(firing.named):
        yield f"… and {firing.count - len(firing.named)} more."


def _single_lines(alert: FiringAlert, single: SingleAlert, reader: Reader) -> Iterator[str]:
    facts = single.facts
    shown = (
        ("Severity", alert.severity),
        ("Project", alert.path),
        *single.details,
        *([("Labels", _labels(facts.labels))] if facts.labels else []),
        ("Started", reader.local_time(alert.started_at)),
        *(_reason_facts(alert.reason, reader) if alert.reason else ()),
    )
    yield _title(alert)
    yield ""
    yield from (f"{name}: {short(one_line(value), _LONGEST_VALUE)}" for name, value in shown)
    if single.description:
        yield from ("", short(printable(single.description), _LONGEST_DESCRIPTION))
    if facts.links:
        yield ""
        yield from (f"{what}: {_link_line(link)}" for what, link in facts.links.items())
    if single.former:
        yield ""
        yield from _former_lines(single.former, alert, reader)
    yield ""
    yield f"Show {alert.about} #{alert.iid}: {reader.url_of(alert)}"


def _labels(labels: Sequence[tuple[str, str]]) -> str:
    return ", ".join(f"{name}={value}" for name, value in labels)


def _link_line(link: str) -> str:
    """Return a URL unchanged and other text shortened; a runbook may be a sentence."""
    line = one_line(link)
    return line if is_web_url(line) else short(line, _LONGEST_VALUE)


def _reason_facts(reason: PageReason, reader: Reader) -> Iterator[tuple[str, str]]:
    yield "Paged by", _why(reason)
    waited = _waited(reason, reader)
    if waited:
        yield "Unanswered", f"for {waited}"
    yield "Next", _next(reason, reader)


def _short_reason(reason: PageReason, reader: Reader) -> str:
    waited = _waited(reason, reader)
    unanswered = f"unanswered for {waited}; " if waited else ""
    return f"{_why(reason)}; {unanswered}next: {_next(reason, reader)}"


def _why(reason: PageReason) -> str:
    if reason.asked_by is not None:
        return one_line(reason.asked_by)
    if not reason.step:
        return f"{one_line(reason.policy)}, because your acknowledgement is no longer valid"
    of_all = f" of {reason.steps}" if reason.steps >= reason.step else ""
    again = f", round {reason.round}" if reason.round > 1 else ""
    schedules = " and ".join(one_line(each) for each in reason.schedules)
    on_call = f", on call in {schedules}" if schedules else ""
    return f"{one_line(reason.policy)}, step {reason.step}{of_all}{again}{on_call}"


def _next(reason: PageReason, reader: Reader) -> str:
    if reason.next_whom is None or reason.next_at is None:
        return "nobody"
    return f"{one_line(reason.next_whom)} at {reader.local_time(reason.next_at)}"


def _waited(reason: PageReason, reader: Reader) -> str:
    """Return how long nobody has responded, in words; empty for the first page of an alert."""
    minutes = int((reader.now - reason.first_paged_at) / _MINUTE)
    if minutes < 1:
        return ""
    hours, rest = divmod(minutes, 60)
    if not hours:
        return _counted(minutes, "minute")
    return f"{hours} h {rest} min" if rest else _counted(hours, "hour")


def _counted(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _former_lines(former: FormerAlerts, alert: FiringAlert, reader: Reader) -> Iterator[str]:
    """Yield the number of former alerts and the last note about them."""
    yield f"Seen {former.times} before, last at {reader.local_time(former.last_started_at)}."
    note = former.note
    if note is not None:
        by = f"@{note.user_name}" if note.user_name else "Somebody"
        did = "resolved it" if note.text is None else f"wrote: {one_line(note.text)}"
        yield f"{by} {did}"
        yield reader.url_of(replace(alert, iid=note.iid))


def short(text: str, length: int) -> str:
    """Return a text of at most `length` characters; truncated text ends with an ellipsis."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def printable(text: str) -> str:
    """Return a text without control characters except line breaks."""
    return "".join(
        each
        for each in text
        if each == "\n" or (unicodedata.category(each) != "Cc" and each not in _DIRECTION_OVERRIDES)
    )


def one_line(text: str) -> str:
    """Return a text on one line, without control characters."""
    return " ".join(printable(text).split())


@dataclass(frozen=True, kw_only=True)
class Content:
    """The content of a message."""

    subject: str
    text: str
    #: Text for services with short messages, such as SMS. None if the text is short.
    short_text: str | None = None
    #: True if the message is an alarm, which some services show in another color.
    is_alarm: bool = False


def page_content(
    contact: Contact,
    messages: Sequence[PageMessage],
    policy: PagingPolicy,
    *,
    session: Session,
    now: datetime,
) -> Content | None:
    """Return the message about the alerts of batches, or None if none needs attention."""
    batches = sorted(each.batch_id for each in messages if each.batch_id is not None)
    firing = firing_of(contact, batches, policy, session=session)
    follow_ups = follow_ups_of(contact, batches, session=session)
    user_id = contact.user_id
    # The readers of a channel are unknown.
    zone = NO_ZONE if user_id is None else zone_of(user_id, session=session)
    reader = Reader(base_url=policy.base_url, time_zone=zone, now=now)
    if firing.count:
        link = _link(contact, batches, policy, now=now)
        return _firing_content(firing, follow_ups, link, reader, policy)
    return _follow_up_content(follow_ups, reader, policy) if follow_ups else None


def _firing_content(
    firing: Firing,
    follow_ups: Sequence[FollowUp],
    link: str | None,
    reader: Reader,
    policy: PagingPolicy,
) -> Content:
    parts = [firing_text(firing, reader)]
    if link is not None:
        what = "it" if firing.count == 1 else f"all {firing.count}, or some of them"
        parts.append(f"Acknowledge {what}: {link}")
    if follow_ups:
        parts.append(follow_up_text(follow_ups, reader))
    first = firing.named[0]
    brief = short_firing_text(firing, reader)
    way = f"Acknowledge: {link}" if link else reader.url_of(first)
    return Content(
        subject=firing_subject(firing, reader),
        text="\n\n".join(parts) + _signature(policy),
        short_text="\n".join(filter(None, (brief, way))),
        is_alarm=True,
    )


def _follow_up_content(
    follow_ups: Sequence[FollowUp], reader: Reader, policy: PagingPolicy
) -> Content:
    first = follow_ups[0]
    return Content(
        subject=follow_up_subject(follow_ups),
        text=follow_up_text(follow_ups, reader) + _signature(policy),
        short_text=reader.url_of(first),
    )


def _link(
    contact: Contact, batches: Sequence[int], policy: PagingPolicy, *, now: datetime
) -> str | None:
    """Return the link that acknowledges the alerts; None for channels."""
    if contact.user_id is None:
        return None
    link = AcknowledgementLink(
        user_id=contact.user_id, first_batch_id=batches[0], last_batch_id=batches[-1]
    )
    return f"{policy.base_url}/-/acknowledge/{seal_link(link, policy.link_keys, now=now)}"


def test_content(contact: Contact, policy: PagingPolicy) -> Content:
    """Return the test message of a contact."""
    return Content(
        subject=f"Test message from {policy.instance_name}",
        text=f"Messages to “{one_line(contact.label)}” are delivered." + _signature(policy),
    )


def code_content(
    contact: Contact, policy: PagingPolicy, *, keyring: Keyring, now: datetime
) -> Content | None:
    """Return the message with a contact's confirmation code, or None if no code is valid."""
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
            "If you did not request this code, ignore this message." + _signature(policy)
        ),
    )


def _signature(policy: PagingPolicy) -> str:
    return f"\n\n-- \n{policy.instance_name}, {policy.base_url}\n"
