"""What a release would change for whom, told from the calls that were recorded."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from sqlalchemy.orm import Session

from domain.core.clock import written
from domain.oauth.personal_tokens.lifetimes import count_endless_tokens
from domain.releases.changes import Change
from domain.releases.schedule import SCHEDULE
from domain.releases.usage.reading import Period, Use, uses_of_instance
from domain.releases.version import Release, parse_release
from web.settings.policies.tokens import token_lifetimes
from web.settings.reader import Settings


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """A change of the running release, tried on recorded calls."""

    running: Release
    release: Release
    #: The changes that take effect here, or that an earlier release takes back.
    changes: Sequence[Change]
    #: What consumers use of the changes that take effect; those that break first.
    uses: Sequence[Use]
    #: Access tokens that never expire, and get an expiry in the release.
    endless_tokens: int
    #: Their last day; None if there are none.
    endless_until: date | None

    @property
    def is_back(self) -> bool:
        """Return whether the release is an earlier one."""
        return self.release < self.running

    @property
    def breaking(self) -> Sequence[Use]:
        """Return the uses that are sure to have another result."""
        return [use for use in self.uses if use.is_sure]


def rehearse_change(
    text: str | None, current: Settings, *, session: Session, now: datetime
) -> Rehearsal | None:
    """Return what a new value of the running release would change.

    None without a value, for the present one, and for what is no release.
    """
    try:
        release = parse_release(text or "")
    except ValueError:
        return None
    if str(release) == current.release:
        return None
    return rehearse(release, current, session=session, now=now)


def rehearse(release: Release, current: Settings, *, session: Session, now: datetime) -> Rehearsal:
    """Return what changing the running release to another one would change."""
    running = parse_release(current.release)
    # All calls that are kept, and the changes up to the release.
    ahead = replace(whole_period(current, now), until=release, is_ahead=True)
    uses = uses_of_instance(ahead, session=session, now=now)
    first, last = sorted((running, release))
    until = token_lifetimes(replace(current, release=str(release))).usual_day(now)
    endless = count_endless_tokens(session=session) if until else 0
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


def as_text(found: Rehearsal) -> Iterator[str]:
    """Yield the lines of a rehearsal for people."""
    changes = _counted(len(found.changes), "change")
    if found.is_back:
        yield f"From release {found.running} back to {found.release}: {changes} taken back."
        yield "Consumers that rely on the present behavior may break."
    else:
        yield f"From release {found.running} to {found.release}: {changes}."
    if found.endless_tokens:
        tokens = _counted(found.endless_tokens, "access token")
        yield f"{tokens} without an expiry date will expire on {found.endless_until}."
    for change, uses in _by_change(found.uses).items():
        yield f"\n{change.id} ({change.release}): {change.title}. {change.replacement}"
        for use in uses:
            whose = f" of {use.consumer.owner}" if use.consumer.owner else ""
            felt = "breaks" if use.is_sure else "maybe"
            yield (
                f"  {felt}: {use.consumer.name}{whose}, {_counted(use.calls, 'call')}, "
                f"last {written(use.last_at)}: {', '.join(use.operations)}"
            )
    if not found.uses and not found.is_back:
        yield "No recorded call is concerned."


def _by_change(uses: Sequence[Use]) -> Mapping[Change, Sequence[Use]]:
    """Return uses by change: the changes that break something first."""
    found: dict[Change, list[Use]] = {}
    for use in uses:
        found.setdefault(use.change, []).append(use)
    return found


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def whole_period(current: Settings, now: datetime) -> Period:
    """Return all calls that are kept, and all changes."""
    since = (now - timedelta(days=current.call_keep_days)).date()
    return Period(since=since, running=parse_release(current.release))
