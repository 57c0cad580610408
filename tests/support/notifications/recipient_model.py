"""A model of the users who may receive a message, written only from the documents.

It follows docs/notifications.md, docs/escalations.md, docs/silences.md and docs/on-call.md. It uses
no decisions of the product, and only knows the events of a history.
"""

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, time, timedelta

from domain.access.roles import Role
from tests.support.notifications.paging import EVENING

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ROOM = "room"
#: An open alert in the subject or a line of a message.
_FIRING = re.compile(r"^\[(?:critical|high|medium|low)\] .*?Alert (\d+) ", re.MULTILINE)
_NEWS = re.compile(r"^(?:Acknowledged|Resolved|Ignored)(?: by @\w+)?: Alert (\d+) ", re.MULTILINE)
#: Time of day (UTC) of handoffs; the first one is on the day of EVENING.
HANDOFF = time(9)


@dataclass
class Known:
    """Known events of an alert."""

    opened_at: datetime
    severity: int
    status: str = "triggered"
    snoozed_until: datetime | None = None
    #: True if the severity was critical at any time.
    was_critical: bool = False
    #: Users who were paged manually.
    asked: set[str] = field(default_factory=set)
    #: Users that a step may have named, given the users on call so far.
    named: set[str] = field(default_factory=set)
    #: Users who were outside of quiet hours at some time.
    not_quiet: set[str] = field(default_factory=set)
    #: Times at which contacts received the alert.
    received: dict[str, datetime] = field(default_factory=dict)
    mail_was_away: bool = False


@dataclass
class Rules:
    """Rules of the documents about users who may receive a message."""

    alerts: dict[int, Known] = field(default_factory=dict)
    members: dict[str, Role | None] = field(default_factory=dict)
    blocked: set[str] = field(default_factory=set)
    is_archived: bool = False
    group: str = "acme"
    #: Silences: the project, the title (None for all alerts), and the end.
    silences: dict[int, tuple[int | None, str | None, datetime]] = field(default_factory=dict)
    windows: list[tuple[datetime, datetime]] = field(default_factory=list)
    #: Quiet hours by user, in minutes after midnight.
    quiet: dict[str, tuple[int, int]] = field(default_factory=dict)
    #: Start and end of overrides, and the user who is on call instead of the others.
    exchanged: list[tuple[datetime, datetime, str]] = field(default_factory=list)
    has_rules: bool = False
    wrong: list[str] = field(default_factory=list)

    def on_call(self, at: datetime) -> str:
        for begin, end, name in self.exchanged:
            # Overrides for users who cannot be on call have no effect.
            if begin <= at < end and self.may_see(name):
                return name
        first = datetime.combine(EVENING.date(), HANDOFF, UTC)
        return ("alice", "carol")[((at - first) // DAY) % 2]

    def is_quiet(self, name: str, at: datetime) -> bool:
        if name not in self.quiet:
            return False
        begin, end = self.quiet[name]
        minute = at.hour * 60 + at.minute
        return begin <= minute < end if begin < end else minute >= begin or minute < end

    def may_see(self, name: str) -> bool:
        role = self.members[name]
        return role is not None and role >= Role.DEVELOPER and name not in self.blocked

    def is_muted(self, number: int, at: datetime) -> bool:
        silenced = any(
            title in {None, number} and at < until and group in {None, self.group}
            for title, group, until in self.silences.values()
        )
        return silenced or any(begin <= at < end for begin, end in self.windows)

    def pass_moment(self, at: datetime) -> None:
        """Record the users who could be named and paged at a run of the worker."""
        for known in self.alerts.values():
            known.named |= {"bob", self.on_call(at)}
            known.not_quiet |= {name for name in self.members if not self.is_quiet(name, at)}

    def receive(self, contact: str, text: str, at: datetime) -> None:
        """Record the mistakes in a message to a contact."""
        name = {"second": "alice"}.get(contact, contact)
        for number in {int(each) for each in _FIRING.findall(text)}:
            problem = self._problem(number, name, contact, at)
            if problem:
                self.wrong.append(f"{at}: Alert {number} to {contact}: {problem}\n{text}")
            self.alerts[number].received.setdefault(contact, at)
        for number in {int(each) for each in _NEWS.findall(text)}:
            problem = self._no_access(name)
            if not problem and not self.alerts[number].received:
                problem = "an update, but nobody was paged"
            if problem:
                self.wrong.append(f"{at}: update of Alert {number} to {contact}: {problem}")

    def _no_access(self, name: str) -> str | None:
        if self.is_archived:
            return "the project is archived"
        if name == ROOM:
            return None if self.group == "acme" else "the channel is of another group"
        return None if self.may_see(name) else "no access"

    def _problem(self, number: int, name: str, contact: str, at: datetime) -> str | None:
        known = self.alerts[number]
        if problem := self._no_access(name):
            return problem
        if known.status in {"resolved", "ignored"} or name in known.asked:
            return None if name in known.asked and known.status != "resolved" else known.status
        return (
            self._is_answered(known, at)
            or ("muted" if self.is_muted(number, at) else None)
            or self._is_not_named(known, name)
            or self._is_too_soon(known, contact, at)
        )

    def _is_answered(self, known: Known, at: datetime) -> str | None:
        if known.snoozed_until is not None and at < known.snoozed_until:
            return f"snoozed until {known.snoozed_until}"
        return "acknowledged" if known.status == "acknowledged" else None

    def _is_not_named(self, known: Known, name: str) -> str | None:
        if name == ROOM:
            return None
        if name not in known.named:
            return f"no step names them: {known.named}"
        is_quiet = name not in known.not_quiet and not known.was_critical
        return "quiet hours since it opened" if is_quiet else None

    def _is_too_soon(self, known: Known, contact: str, at: datetime) -> str | None:
        if contact != "second" or not self.has_rules or known.mail_was_away:
            return None
        first = known.received.get("alice")
        is_due = first is not None and at - first >= 10 * MINUTE - timedelta(seconds=5)
        return None if is_due else f"a rule of 10 minutes, the first contact was told at {first}"
