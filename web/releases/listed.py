"""Changes of the release schedule as people and programs are shown them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time

from domain.releases.changes import Change
from domain.releases.listing import ChangeFilter, State, list_changes, state_of
from domain.releases.version import parse_release
from web.releases.dates import date_of, installed_at
from web.releases.requested import running_release
from web.services import settings

PAGES = "/help/releases"


@dataclass(frozen=True, kw_only=True)
class ListedChange:
    """A change, where it stands, and when it comes."""

    change: Change
    state: State
    #: The day of its release, where an administrator entered it.
    day: date | None
    #: The absolute URL of its page.
    url: str


def list_shown(wanted: ChangeFilter) -> Sequence[ListedChange]:
    """Return the changes that match, in the order of the schedule."""
    return [show_change(each) for each in list_changes(wanted, running=running_release())]


def show_change(change: Change) -> ListedChange:
    """Return a change with its state and its day."""
    return ListedChange(
        change=change,
        state=state_of(change, running=running_release()),
        day=date_of(change.removal),
        url=page_of(change),
    )


def page_of(change: Change) -> str:
    """Return the absolute URL of the page of a change."""
    return f"{settings().base_url}{PAGES}/{change.id}"


def announced_at(change: Change) -> datetime:
    """Return when a change was announced: the day of that release, else the installation."""
    day = date_of(parse_release(change.announced)) if change.announced else None
    return datetime.combine(day, time(), tzinfo=UTC) if day else installed_at()
