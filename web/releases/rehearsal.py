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
from web.settings.environment import Settings
from web.settings.policies.tokens import build_token_lifetimes


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """Effects of a change of the running release on recorded calls."""

    running: Release
    release: Release
    #: Changes that a later release applies, or that a return to an earlier release reverts.
    changes: Sequence[Change]
    #: Consumers' uses of the changes that take effect, breaking uses first.
    uses: Sequence[AffectedUsage]
    #: Number of access tokens without an expiry date, to which the release adds an expiry date.
    endless_tokens: int
    #: Expiry date for tokens without an expiry date, or None if there are no such tokens.
    endless_until: date | None

    @property
    def is_downgrade(self) -> bool:
        """True if the release is earlier than the running release."""
        return self.release < self.running

    @property
    def breaking_usages(self) -> Sequence[AffectedUsage]:
        """Affected usages that are certain to have a different result."""
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
    """Return the effects that switching to a release would have on recorded calls."""
    running = parse_release(current.release)
    # The period covers all stored calls, and the changes up to the release.
    ahead = replace(build_full_usage_period(current, now), until=release, is_ahead=True)
    uses = find_instance_usage(ahead, session=session, now=now)
    first, last = sorted((running, release))
    until = build_token_lifetimes(replace(current, release=str(release))).get_default_expiry_day(
        now
    )
    endless = count_tokens_without_expiry(session=session) if until else 0
    return Rehearsal(
        running=running,
        release=release,
        changes=[
            each
            for each in SCHEDULE
            if first < each.effective_release <= last and each.hosted and not each.is_always_applied
        ],
        uses=sorted(uses, key=lambda use: not use.is_sure),
        endless_tokens=endless,
        endless_until=until if endless else None,
    )


def format_rehearsal(rehearsal: Rehearsal) -> Iterator[str]:
    """Yield the lines of a text report about a rehearsal."""
    changes = _format_count(len(rehearsal.changes), "change")
    if rehearsal.is_downgrade:
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
    if not rehearsal.uses and not rehearsal.is_downgrade:
        yield "No recorded calls are affected."


def _group_by_change(uses: Sequence[AffectedUsage]) -> Mapping[Change, Sequence[AffectedUsage]]:
    """Group affected usages by change, with breaking changes first."""
    found: dict[Change, list[AffectedUsage]] = {}
    for use in uses:
        found.setdefault(use.change, []).append(use)
    return found


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def build_full_usage_period(current: Settings, now: datetime) -> UsagePeriod:
    """Return a usage period that covers all stored calls and all changes."""
    since = (now - timedelta(days=current.call_keep_days)).date()
    return UsagePeriod(since=since, running=parse_release(current.release))
