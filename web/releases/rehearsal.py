"""Effects of a release on consumers, determined from recorded calls."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from sqlalchemy.orm import Session

from domain.core.clock import format_api_time
from domain.oauth.personal_tokens.lifetimes import count_tokens_without_expiry
from domain.releases.changes import Change
from domain.releases.schedule import SCHEDULE
from domain.releases.usage.usage_reports import AffectedUsage, UsagePeriod, find_instance_usage
from domain.releases.version import Release, parse_release
from web.settings.policies.tokens import build_token_lifetimes
from web.settings.reader import Settings


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """Effects on recorded calls if the running release changes."""

    running: Release
    release: Release
    #: Changes that a later release applies, or that a return to an earlier release reverts.
    changes: Sequence[Change]
    #: Consumers' uses of the changes that take effect, breaking uses first.
    uses: Sequence[AffectedUsage]
    #: Number of access tokens that get an expiry date in the release because they have none.
    endless_tokens: int
    #: Expiry date for tokens that have none, or None if there are no such tokens.
    endless_until: date | None

    @property
    def is_back(self) -> bool:
        """True if the release is earlier than the running release."""
        return self.release < self.running

    @property
    def breaking_uses(self) -> Sequence[AffectedUsage]:
        """Uses that are certain to have a different result."""
        return [use for use in self.uses if use.is_sure]


def rehearse_change(
    text: str | None, current: Settings, *, session: Session, now: datetime
) -> Rehearsal | None:
    """Return the effects of a new value for the running release.

    Return None if the value is missing, unchanged or not a release.
    """
    try:
        release = parse_release(text or "")
    except ValueError:
        return None
    if str(release) == current.release:
        return None
    return rehearse_release(release, current, session=session, now=now)


def rehearse_release(
    release: Release, current: Settings, *, session: Session, now: datetime
) -> Rehearsal:
    """Return the effects of changing the running release."""
    running = parse_release(current.release)
    # The period covers all stored calls, and the changes up to the release.
    ahead = replace(get_stored_period(current, now), until=release, is_ahead=True)
    uses = find_instance_usage(ahead, session=session, now=now)
    first, last = sorted((running, release))
    until = build_token_lifetimes(replace(current, release=str(release))).get_default_day(now)
    endless = count_tokens_without_expiry(session=session) if until else 0
    return Rehearsal(
        running=running,
        release=release,
        changes=[
            each
            for each in SCHEDULE
            if first < each.removal <= last and each.hosted and not each.is_always_applied
        ],
        uses=sorted(uses, key=lambda use: not use.is_sure),
        endless_tokens=endless,
        endless_until=until if endless else None,
    )


def format_rehearsal(rehearsal: Rehearsal) -> Iterator[str]:
    """Yield the lines of a rehearsal as text."""
    changes = _format_count(len(rehearsal.changes), "change")
    if rehearsal.is_back:
        yield f"From release {rehearsal.running} back to {rehearsal.release}: {changes} reverted."
        yield "Consumers that rely on the current behavior may break."
    else:
        yield f"From release {rehearsal.running} to {rehearsal.release}: {changes}."
    if rehearsal.endless_tokens:
        tokens = _format_count(rehearsal.endless_tokens, "access token")
        yield f"{tokens} without an expiry date will expire on {rehearsal.endless_until}."
    for change, uses in _group_by_change(rehearsal.uses).items():
        yield f"\n{change.id} ({change.release}): {change.title}. {change.replacement}"
        for use in uses:
            whose = f" of {use.consumer.owner}" if use.consumer.owner else ""
            felt = "breaks" if use.is_sure else "maybe"
            yield (
                f"  {felt}: {use.consumer.name}{whose}, {_format_count(use.calls, 'call')}, "
                f"last {format_api_time(use.last_at)}: {', '.join(use.operations)}"
            )
    if not rehearsal.uses and not rehearsal.is_back:
        yield "No recorded calls are affected."


def _group_by_change(uses: Sequence[AffectedUsage]) -> Mapping[Change, Sequence[AffectedUsage]]:
    """Return uses by change, with breaking changes first."""
    found: dict[Change, list[AffectedUsage]] = {}
    for use in uses:
        found.setdefault(use.change, []).append(use)
    return found


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def get_stored_period(current: Settings, now: datetime) -> UsagePeriod:
    """Return the period of all stored calls and all changes."""
    since = (now - timedelta(days=current.call_keep_days)).date()
    return UsagePeriod(since=since, running=parse_release(current.release))
