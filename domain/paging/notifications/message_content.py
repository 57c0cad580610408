"""Writes the content of messages when they are sent, so that the content is up to date."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from domain.alerts.handling.activity import EarlierAlerts
from domain.core.keyring import Keyring, UndecryptableError
from domain.core.text_links import is_web_url
from domain.core.time_zones import format_local_time
from domain.paging.notifications.acknowledgement_links import AcknowledgementLink, sign_link
from domain.paging.notifications.message_data import (
    FiringSubject,
    FiringSummary,
    FollowUp,
    SingleSubjectDetails,
    find_firing_summary,
    find_follow_ups,
)
from domain.paging.notifications.page_subjects import (
    PageSubject,
    SubjectKind,
    format_subject_counts,
)
from domain.paging.notifications.paging_settings import PageReason, PagingSettings
from domain.paging.notifications.push_subscriptions import encode_base64url
from domain.paging.notifications.recipients import DEFAULT_ZONE, get_user_time_zone
from models import Contact, PageMessage

#: Maximum number of follow-ups that a message lists. Further follow-ups are only counted.
_MAX_FOLLOW_UPS = 10
_MAX_DESCRIPTION_LENGTH = 500
_MAX_SUBJECT_LENGTH = 150
_MIN_TITLE_LENGTH = 50
_MAX_TITLE_LENGTH = 200
_MAX_VALUE_LENGTH = 300
_MINUTE = timedelta(minutes=1)
#: Length of a tag in bytes, before it is encoded to at most 32 characters for the `Topic` header.
_TAG_BYTES = 24
#: Characters that can disguise text, because they reverse the direction of the text after them.
_DIRECTION_OVERRIDES = frozenset("\u202d\u202e")


@dataclass(frozen=True, kw_only=True)
class RecipientContext:
    """Information about the reader of a message, and the time at which the message is written."""

    #: Base URL of the service, without a trailing slash.
    base_url: str
    time_zone: str
    now: datetime

    def format_reader_time(self, moment: datetime) -> str:
        """Format a time in the reader's time zone."""
        return format_local_time(moment, self.time_zone)

    def get_url(self, subject: FiringSubject | FollowUp) -> str:
        """Return the URL of the web page for an alert or incident."""
        return f"{self.base_url}/{subject.path}/-/{subject.about}s/{subject.iid}"


def format_firing_subject(firing: FiringSummary, reader: RecipientContext) -> str:
    """Return the subject of a message about alerts and incidents that need attention."""
    first = firing.named[0]
    if firing.count == 1:
        reason = first.reason
        # From the second round on, the subject shows how long nobody has responded.
        waited = _format_waiting_time(reason, reader) if reason and reason.round > 1 else ""
        unanswered = f"Unanswered for {waited}: " if waited else ""
        before = f"[{first.severity}] {unanswered}"
        return _format_subject(before, first, f"({_format_reference(first)})")
    where = _format_projects(first.path, firing.projects)
    return _format_subject(
        f"[{first.severity}] {_format_firing_count(firing)} in {where}: ", first, "and others"
    )


def _format_firing_count(firing: FiringSummary) -> str:
    return format_subject_counts(firing.count - firing.incidents, firing.incidents)


def _format_subject(before: str, alert: FiringSubject, after: str) -> str:
    """Return a subject in which only the title is truncated."""
    room = max(_MAX_SUBJECT_LENGTH - len(before) - len(after) - 1, _MIN_TITLE_LENGTH)
    return f"{before}{truncate_text(_format_alert_title(alert), room)} {after}"


def _format_projects(path: str, projects: int) -> str:
    more = projects - 1
    return f"{path} and {_format_plural(more, 'other project')}" if more else path


def format_firing_text(firing: FiringSummary, reader: RecipientContext) -> str:
    """Return the text of a message about alerts and incidents that need attention."""
    if firing.single is not None:
        lines = _format_single_subject(firing.named[0], firing.single, reader)
    else:
        lines = _format_several_subjects(firing, reader)
    return "\n".join(lines).rstrip()


def format_follow_up_subject(follow_ups: Sequence[FollowUp]) -> str:
    """Return the subject of a message about alerts and incidents that no longer need attention."""
    first = follow_ups[0]
    title = truncate_text(format_one_line(first.title), _MAX_SUBJECT_LENGTH)
    if len(follow_ups) == 1:
        return f"{first.words}: {title} ({first.path} #{first.iid})"
    where = _format_projects(first.path, len({each.path for each in follow_ups}))
    news = f"{title} ({first.words.lower()})"
    incidents = sum(each.about is SubjectKind.INCIDENT for each in follow_ups)
    count = format_subject_counts(len(follow_ups) - incidents, incidents)
    return f"Updates on {count} in {where}: {news} and others"


def format_follow_up_text(follow_ups: Sequence[FollowUp], reader: RecipientContext) -> str:
    """Return the text of a message about alerts and incidents that no longer need attention."""
    lines = []
    for each in follow_ups[:_MAX_FOLLOW_UPS]:
        lines += [
            f"{each.words}: {format_one_line(each.title)} ({each.path} #{each.iid})",
            reader.get_url(each),
        ]
    if len(follow_ups) > _MAX_FOLLOW_UPS:
        lines.append(f"… and {len(follow_ups) - _MAX_FOLLOW_UPS} more.")
    return "\n".join(lines)


def _format_alert_title(alert: FiringSubject) -> str:
    """Return the title of an alert, or its first fields if it has no title."""
    fields = ", ".join(
        f"{format_one_line(name)}={format_one_line(value)}" for name, value in alert.fields
    )
    return truncate_text(fields or format_one_line(alert.title), _MAX_TITLE_LENGTH)


def _format_reference(alert: FiringSubject) -> str:
    return f"{alert.path} #{alert.iid}"


def _format_several_subjects(firing: FiringSummary, reader: RecipientContext) -> Iterator[str]:
    yield f"{_format_firing_count(firing)} need attention."
    yield ""
    for each in firing.named:
        yield f"[{each.severity}] {_format_alert_title(each)} ({_format_reference(each)})"
        if each.reason is not None:
            yield _format_short_reason(each.reason, reader)
        yield reader.get_url(each)
        yield ""
    if firing.count > len(firing.named):
        yield f"… and {firing.count - len(firing.named)} more."


def _format_single_subject(
    alert: FiringSubject, single: SingleSubjectDetails, reader: RecipientContext
) -> Iterator[str]:
    facts, reason = single.facts, alert.reason
    labels = ", ".join(f"{name}={value}" for name, value in facts.labels)
    waited = _format_waiting_time(reason, reader) if reason else ""
    shown = (
        ("Severity", alert.severity),
        ("Project", alert.path),
        *single.details,
        ("Labels", labels),
        ("Started", reader.format_reader_time(alert.started_at)),
        ("Paged by", _format_reason(reason) if reason else ""),
        ("Unanswered", f"for {waited}" if waited else ""),
        ("Next", _format_next_step(reason, reader) if reason else ""),
    )
    yield _format_alert_title(alert)
    yield ""
    yield from (
        f"{name}: {truncate_text(format_one_line(value), _MAX_VALUE_LENGTH)}"
        for name, value in shown
        if value
    )
    if single.description:
        yield from (
            "",
            truncate_text(remove_control_characters(single.description), _MAX_DESCRIPTION_LENGTH),
        )
    if facts.links:
        yield ""
        yield from (f"{what}: {_format_link(link)}" for what, link in facts.links.items())
    if single.former:
        yield ""
        yield from _format_earlier_alerts(single.former, alert, reader)
    yield ""
    yield f"Show {alert.about} #{alert.iid}: {reader.get_url(alert)}"


def _format_link(link: str) -> str:
    """Return a URL unchanged, but truncate other text, such as a runbook that is not a URL."""
    line = format_one_line(link)
    return line if is_web_url(line) else truncate_text(line, _MAX_VALUE_LENGTH)


def _format_short_reason(reason: PageReason, reader: RecipientContext) -> str:
    waited = _format_waiting_time(reason, reader)
    unanswered = f"unanswered for {waited}; " if waited else ""
    return f"{_format_reason(reason)}; {unanswered}next: {_format_next_step(reason, reader)}"


def _format_reason(reason: PageReason) -> str:
    if reason.asked_by is not None:
        return format_one_line(reason.asked_by)
    if not reason.step:
        return f"{format_one_line(reason.policy)}, because your acknowledgement is no longer valid"
    of_all = f" of {reason.steps}" if reason.steps >= reason.step else ""
    again = f", round {reason.round}" if reason.round > 1 else ""
    schedules = " and ".join(format_one_line(each) for each in reason.schedules)
    on_call = f", on call in {schedules}" if schedules else ""
    return f"{format_one_line(reason.policy)}, step {reason.step}{of_all}{again}{on_call}"


def _format_next_step(reason: PageReason, reader: RecipientContext) -> str:
    if reason.next_whom is None or reason.next_at is None:
        return "nobody"
    return f"{format_one_line(reason.next_whom)} at {reader.format_reader_time(reason.next_at)}"


def _format_waiting_time(reason: PageReason, reader: RecipientContext) -> str:
    """Return the time since the first page in words, such as `5 minutes`.

    Return an empty string if the first page was sent less than a minute ago.
    """
    minutes = int((reader.now - reason.first_paged_at) / _MINUTE)
    if minutes < 1:
        return ""
    hours, rest = divmod(minutes, 60)
    if not hours:
        return _format_plural(minutes, "minute")
    return f"{hours} h {rest} min" if rest else _format_plural(hours, "hour")


def _format_plural(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _format_earlier_alerts(
    earlier_alerts: EarlierAlerts, alert: FiringSubject, reader: RecipientContext
) -> Iterator[str]:
    """Yield the number of previous alerts with the same fingerprint, and the last note."""
    yield (
        f"Seen {earlier_alerts.count_phrase} before, last at "
        f"{reader.format_reader_time(earlier_alerts.last_started_at)}."
    )
    note = earlier_alerts.note
    if note is not None:
        by = f"@{note.user_name}" if note.user_name else "Somebody"
        did = "resolved it" if note.text is None else f"wrote: {format_one_line(note.text)}"
        yield f"{by} {did}"
        yield reader.get_url(replace(alert, iid=note.iid))


def truncate_text(text: str, length: int) -> str:
    """Truncate text to at most `length` characters, including a final ellipsis."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"


def remove_control_characters(text: str) -> str:
    """Remove all control characters except line breaks from text."""
    return "".join(
        each
        for each in text
        if each == "\n" or (unicodedata.category(each) != "Cc" and each not in _DIRECTION_OVERRIDES)
    )


def format_one_line(text: str) -> str:
    """Return text on one line, without control characters."""
    return " ".join(remove_control_characters(text).split())


@dataclass(frozen=True, kw_only=True)
class DeviceNotification:
    """A notification that a browser shows."""

    title: str
    body: str
    #: Page that opens when the notification is selected. Empty for the home page.
    url: str = ""
    #: URL that acknowledges the alert or incident. Empty unless there is exactly one alert or
    #: incident.
    acknowledge_url: str = ""
    #: Value of the alert or incident in the form at this URL, such as `12` or `incident-3`.
    acknowledge_subject: str = ""
    #: Tag of at most 32 characters. A notification replaces the previous notification with the same
    #: tag. Empty if the notification replaces no other notification.
    tag: str = ""
    #: Tags of notifications about alerts and incidents that no longer need attention.
    ended_tags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class MessageContent:
    """The subject and text of a message, with variants for different types of contacts."""

    subject: str
    text: str
    #: Text for services with short messages, such as SMS. None if `text` is short.
    short_text: str | None = None
    #: True if the message is an alarm, which some services show in another color.
    is_alarm: bool = False
    #: Labels and URLs of buttons in emails, for links in the text.
    buttons: tuple[tuple[str, str], ...] = ()
    #: Identifier of the alert or incident, if there is only one. Mail clients show emails with the
    #: same identifier as a thread.
    thread: str = ""
    #: Notification for browsers. None for a notification that consists of the subject and the text.
    notification: DeviceNotification | None = None


def build_page_content(
    contact: Contact,
    messages: Sequence[PageMessage],
    policy: PagingSettings,
    *,
    session: Session,
    now: datetime,
) -> MessageContent | None:
    """Return the content of a message about the pages in batches.

    Return None if no alert or incident needs attention and there are no follow-ups.
    """
    batches = sorted(each.batch_id for each in messages if each.batch_id is not None)
    firing = find_firing_summary(contact, batches, policy, session=session)
    follow_ups = find_follow_ups(contact, batches, session=session)
    user_id = contact.user_id
    # The time zones of a channel's readers are unknown.
    zone = DEFAULT_ZONE if user_id is None else get_user_time_zone(user_id, session=session)
    reader = RecipientContext(base_url=policy.base_url, time_zone=zone, now=now)
    if firing.count:
        link = None
        if user_id is not None:
            own = AcknowledgementLink(
                user_id=user_id, first_batch_id=batches[0], last_batch_id=batches[-1]
            )
            link = f"{policy.base_url}/-/acknowledge/{sign_link(own, policy.link_keys, now=now)}"
        return _build_firing_content(firing, follow_ups, link, reader, contact, policy)
    return _build_follow_up_content(follow_ups, reader, contact, policy) if follow_ups else None


def _build_firing_content(
    firing: FiringSummary,
    follow_ups: Sequence[FollowUp],
    link: str | None,
    reader: RecipientContext,
    contact: Contact,
    policy: PagingSettings,
) -> MessageContent:
    parts = [format_firing_text(firing, reader)]
    if link is not None:
        what = "it" if firing.count == 1 else f"all {firing.count}, or some of them"
        parts.append(f"Acknowledge {what}: {link}")
    if follow_ups:
        parts.append(format_follow_up_text(follow_ups, reader))
    first = firing.named[0]
    brief = ""
    if firing.count == 1 and first.reason is not None:
        brief = f"{_format_short_reason(first.reason, reader)}."
    url = reader.get_url(first)
    way = f"Acknowledge: {link}" if link else url
    buttons = [("Acknowledge", link)] if link is not None else []
    if firing.count == 1:
        buttons.append((f"Open {first.about}", url))
    return MessageContent(
        subject=format_firing_subject(firing, reader),
        text="\n\n".join(parts) + _format_signature(policy),
        short_text="\n".join(filter(None, (brief, way))),
        is_alarm=True,
        buttons=tuple(buttons),
        thread=url if firing.count == 1 else "",
        notification=_build_firing_notification(firing, follow_ups, link, reader, contact, policy),
    )


def _build_firing_notification(
    firing: FiringSummary,
    follow_ups: Sequence[FollowUp],
    link: str | None,
    reader: RecipientContext,
    contact: Contact,
    policy: PagingSettings,
) -> DeviceNotification:
    """Return the notification about alerts and incidents that need attention.

    Users cannot select alerts in a notification. Several alerts and incidents are therefore
    acknowledged on the page that the link opens.
    """
    first, ended = firing.named[0], _build_tags(follow_ups, contact, policy)
    title = f"{first.severity.capitalize()}: {_format_alert_title(first)}"
    if firing.single is None:
        where = _format_projects(first.path, firing.projects)
        others = [f"{each.severity}: {_format_alert_title(each)}" for each in firing.named[1:4]]
        return DeviceNotification(
            title=truncate_text(title, _MAX_SUBJECT_LENGTH),
            body="\n".join((f"{_format_firing_count(firing)} in {where}", *others)),
            url=link or reader.get_url(first),
            ended_tags=ended,
        )
    details = dict(firing.single.details)
    facts = (_format_reference(first), details.get("Service"), details.get("Hosts"))
    lines = (truncate_text(format_one_line(each), _MAX_VALUE_LENGTH) for each in facts if each)
    return DeviceNotification(
        title=truncate_text(title, _MAX_SUBJECT_LENGTH),
        body="\n".join(filter(None, lines)),
        url=reader.get_url(first),
        acknowledge_url=link or "",
        acknowledge_subject=PageSubject(first.about, first.id).form_value,
        tag=_build_notification_tag(first, contact, policy),
        ended_tags=ended,
    )


def _build_tags(
    follow_ups: Sequence[FollowUp], contact: Contact, policy: PagingSettings
) -> tuple[str, ...]:
    return tuple(
        _build_notification_tag(each, contact, policy) for each in follow_ups[:_MAX_FOLLOW_UPS]
    )


def _build_notification_tag(
    subject: FiringSubject | FollowUp, contact: Contact, policy: PagingSettings
) -> str:
    """Return the notification tag of an alert or incident, which reveals nothing to push services.

    Contacts of several users in the same browser have different tags.
    """
    text = f"notification of {subject.about} {subject.path} {subject.iid} to contact {contact.id}"
    return encode_base64url(policy.keyring.compute_digest(text)[:_TAG_BYTES])


def _build_follow_up_content(
    follow_ups: Sequence[FollowUp],
    reader: RecipientContext,
    contact: Contact,
    policy: PagingSettings,
) -> MessageContent:
    first, tags = follow_ups[0], _build_tags(follow_ups, contact, policy)
    url, subject = reader.get_url(first), format_follow_up_subject(follow_ups)
    notification = DeviceNotification(title=subject, body="", url=url, ended_tags=tags)
    if len(follow_ups) == 1:
        title = truncate_text(format_one_line(first.title), _MAX_SUBJECT_LENGTH)
        notification = DeviceNotification(
            title=f"{first.words}: {title}",
            body=f"{first.path} #{first.iid}",
            url=url,
            tag=tags[0],
        )
    return MessageContent(
        subject=subject,
        text=format_follow_up_text(follow_ups, reader) + _format_signature(policy),
        short_text=url,
        thread=url if len(follow_ups) == 1 else "",
        notification=notification,
    )


def build_test_content(contact: Contact, policy: PagingSettings) -> MessageContent:
    """Return the content of a test message to a contact."""
    return MessageContent(
        subject=f"Test message from {policy.instance_name}",
        text=f"Messages to “{format_one_line(contact.label)}” are delivered."
        + _format_signature(policy),
    )


def build_code_content(
    contact: Contact, policy: PagingSettings, *, keyring: Keyring, now: datetime
) -> MessageContent | None:
    """Return the content of a message with a confirmation code, or None if no code is valid."""
    if contact.code_ciphertext is None or contact.code_expires_at is None:
        return None
    try:
        code = keyring.decrypt(contact.code_ciphertext)
    except UndecryptableError:
        return None
    if contact.code_expires_at <= now:
        return None
    return MessageContent(
        subject=f"{code} is your code for {policy.instance_name}",
        text=(
            f"Enter this code to receive alerts here: {code}\n\n"
            "If you did not request this code, ignore this message." + _format_signature(policy)
        ),
    )


def _format_signature(policy: PagingSettings) -> str:
    return f"\n\n-- \n{policy.instance_name}, {policy.base_url}\n"
