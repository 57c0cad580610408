"""Parts of the release schedule: by release, interface and state."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby

from domain.releases.changes import Change, Interface
from domain.releases.schedule import SCHEDULE
from domain.releases.version import Release


class State(StrEnum):
    """Where a change stands in the running release; the value is that of the API."""

    IN_FORCE = "in_force"
    ANNOUNCED = "announced"
    #: This service does not have the interface, whatever the release is.
    NOT_HOSTED = "not_hosted"

    @property
    def label(self) -> str:
        """Return its name for people."""
        return _LABELS[self]


_LABELS = {
    State.IN_FORCE: "In force",
    State.ANNOUNCED: "Announced",
    State.NOT_HOSTED: "Announced, not hosted here",
}


@dataclass(frozen=True, kw_only=True)
class ChangeFilter:
    """Which changes a list has; None means any."""

    release: Release | None = None
    interface: Interface | None = None
    state: State | None = None


def state_of(change: Change, *, running: Release) -> State:
    """Return where a change stands in the running release."""
    if not change.hosted:
        return State.NOT_HOSTED
    is_in_force = change.is_always_applied or change.applies_in(running)
    return State.IN_FORCE if is_in_force else State.ANNOUNCED


def list_changes(wanted: ChangeFilter, *, running: Release) -> Sequence[Change]:
    """Return the changes that match, in the order of the schedule."""
    return [
        each
        for each in SCHEDULE
        if wanted.release in {None, each.removal}
        and wanted.interface in {None, each.interface}
        and wanted.state in {None, state_of(each, running=running)}
    ]


def releases_on_schedule() -> Sequence[Release]:
    """Return the releases that change something, the first one first."""
    return sorted({each.removal for each in SCHEDULE})


def by_release(changes: Sequence[Change]) -> Sequence[tuple[Release, Sequence[Change]]]:
    """Return changes of the schedule's order under their releases."""
    groups = groupby(changes, key=lambda each: each.removal)
    return [(release, list(members)) for release, members in groups]
