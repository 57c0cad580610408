"""What a release would change for whom, told from the calls that were recorded."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from sqlalchemy.orm import Session

from domain.api_usage.reading import Use, uses_of_instance
from domain.clock import written
from domain.releases.changes import Change
from domain.releases.schedule import SCHEDULE
from domain.releases.version import Release, parse_release
from web.releases.usage import rehearsal
from web.settings.reader import Settings


@dataclass(frozen=True, kw_only=True)
class Rehearsal:
    """A change of the running release, tried on recorded calls."""

    running: Release
    release: Release
    #: The changes that take effect, or that an earlier release takes back.
    changes: Sequence[Change]
    #: What consumers use of the changes that take effect; those that break first.
    uses: Sequence[Use]

    @property
    def is_back(self) -> bool:
        """Whether the release is an earlier one."""
        return self.release < self.running

    @property
    def breaking(self) -> Sequence[Use]:
        """The uses that are sure to have another result."""
        return [use for use in self.uses if use.is_sure]


def rehearse(release: Release, current: Settings, *, session: Session, now: datetime) -> Rehearsal:
    """Return what changing the running release to another one would change."""
    running = parse_release(current.release)
    period = rehearsal(current, release, now)
    uses = uses_of_instance(period, session=session, now=now)
    first, last = sorted((running, release))
    return Rehearsal(
        running=running,
        release=release,
        changes=[each for each in SCHEDULE if first < each.removal <= last],
        uses=sorted(uses, key=lambda use: not use.is_sure),
    )


def as_json(found: Rehearsal) -> Mapping[str, Any]:
    """Return a rehearsal for programs, by change."""
    by_change = sorted(found.uses, key=lambda use: use.change.id)
    return {
        "running": str(found.running),
        "release": str(found.release),
        "breaks": len(found.breaking),
        "changes": [
            {
                "change": change.id,
                "release": change.release,
                "title": change.title,
                "replacement": change.replacement,
                "consumers": [_use(use) for use in uses],
            }
            for change, uses in groupby(by_change, lambda use: use.change)
        ],
    }


def _use(use: Use) -> Mapping[str, Any]:
    return {
        "kind": use.consumer.kind,
        "id": use.consumer.id,
        "name": use.consumer.name,
        "owner": use.consumer.owner,
        "certainty": use.certainty,
        "calls": use.calls,
        "operations": list(use.operations),
        "first_called_at": written(use.first_at),
        "last_called_at": written(use.last_at),
        "last_address": use.last_address,
    }


def as_text(found: Rehearsal) -> Iterator[str]:
    """Yield the lines of a rehearsal for people."""
    yield f"From release {found.running} to {found.release}: {len(found.changes)} changes."
    for change, uses in groupby(found.uses, lambda use: use.change):
        yield f"\n{change.id} ({change.release}): {change.message}"
        for use in uses:
            whose = f" of {use.consumer.owner}" if use.consumer.owner else ""
            felt = "breaks" if use.is_sure else "maybe"
            yield (
                f"  {felt}: {use.consumer.name}{whose}, {use.calls} calls, "
                f"last {written(use.last_at)}: {', '.join(use.operations)}"
            )
    if not found.uses:
        yield "No recorded call is concerned."
