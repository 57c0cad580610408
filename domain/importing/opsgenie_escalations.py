"""Escalations of Opsgenie as policies."""

from collections.abc import Mapping
from datetime import timedelta

from domain.errors import InvalidError
from domain.importing.entities import Entity, Text
from domain.importing.opsgenie_schedules import Reference
from domain.importing.plan import ImportedPolicy, ImportedStep, LeftOut

_UNITS = {
    "minutes": timedelta(minutes=1),
    "hours": timedelta(hours=1),
    "days": timedelta(days=1),
    "": timedelta(minutes=1),
}
_MOST_REPEATS, _LONGEST_DELAY = 9, 1_000_000


class _Delay(Entity):
    timeAmount: int = 0
    timeUnit: Text = ""


class _Rule(Entity):
    condition: Text = ""
    notifyType: Text = ""
    delay: _Delay | None = None
    recipient: Reference | None = None


class _Repeat(Entity):
    waitInterval: int | None = 0
    count: int | None = 0
    closeAlertAfterAll: bool | None = False


class Escalation(Entity):
    """A file of the folder `escalations`."""

    id: Text
    name: Text
    ownerTeam: Reference | None = None
    rules: tuple[_Rule, ...] | None = None
    repeat: _Repeat | None = None


def policy_of(
    found: Escalation,
    members: Mapping[str, tuple[str, ...]],
    defaults: frozenset[str],
    left_out: list[LeftOut],
) -> ImportedPolicy:
    """Return a policy with the rules that can be taken over, in the order of their delays."""
    steps, notes = [], list[str]()
    for number, rule in enumerate(found.rules or (), 1):
        try:
            steps.append(_step(rule, number, members, notes))
        except InvalidError as error:
            name = f"{found.name}: rule {number}"
            left_out.append(LeftOut(kind="step", name=name, reason=str(error)))
    repeat = found.repeat or _Repeat()
    count = repeat.count or 0
    if count > _MOST_REPEATS:
        notes.append(f"It was repeated {count} times; here it is repeated {_MOST_REPEATS} times.")
    if repeat.closeAlertAfterAll:
        notes.append("It closed the alert in the end; here the alert stays open.")
    wait = repeat.waitInterval or 0
    return ImportedPolicy(
        key=found.id,
        team=found.ownerTeam.id if found.ownerTeam else None,
        name=found.name,
        steps=tuple(sorted(steps, key=lambda each: each.after)),
        repeats=max(min(count, _MOST_REPEATS), 0),
        pause=timedelta(minutes=wait) if wait > 0 else None,
        is_default=found.id in defaults,
        notes=tuple(notes),
    )


def _step(
    rule: _Rule, number: int, members: Mapping[str, tuple[str, ...]], notes: list[str]
) -> ImportedStep:
    recipient = rule.recipient or Reference()
    pages = _PAGES.get(recipient.type)
    if pages is None:
        raise InvalidError(f"A {recipient.type or 'recipient of no type'} cannot be paged here.")
    if rule.condition == "if-not-closed":
        notes.append(f"Rule {number} also paged for acknowledged alerts; here it does not.")
    after = _after(rule.delay)
    if recipient.type == "schedule" and rule.notifyType not in {"default", ""}:
        said = f"Rule {number} paged “{rule.notifyType}” of the schedule"
        notes.append(f"{said}; here, the people on call are paged.")
    if recipient.type == "team":
        notes.append(f"Rule {number} pages every member that the team {recipient.shown} had.")
    return pages(after, recipient, members)


def _page_user(
    after: timedelta, recipient: Reference, _members: Mapping[str, tuple[str, ...]]
) -> ImportedStep:
    return ImportedStep(after=after, users=(recipient.id,))


def _page_schedule(
    after: timedelta, recipient: Reference, _members: Mapping[str, tuple[str, ...]]
) -> ImportedStep:
    return ImportedStep(after=after, schedules=(recipient.id,))


def _page_team(
    after: timedelta, recipient: Reference, members: Mapping[str, tuple[str, ...]]
) -> ImportedStep:
    if not members.get(recipient.id):
        raise InvalidError(f"The team {recipient.shown} has no members in this backup.")
    return ImportedStep(after=after, users=members[recipient.id])


_PAGES = {"user": _page_user, "schedule": _page_schedule, "team": _page_team}


def _after(delay: _Delay | None) -> timedelta:
    if delay is None:
        return timedelta()
    unit = _UNITS.get(delay.timeUnit.lower())
    if unit is None or not 0 <= delay.timeAmount <= _LONGEST_DELAY:
        raise InvalidError(f"Its delay, {delay.timeAmount} {delay.timeUnit}, cannot be read.")
    return delay.timeAmount * unit
