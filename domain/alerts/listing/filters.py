"""Which alerts of a project somebody wants to see."""

from dataclasses import dataclass, replace

from sqlalchemy import ColumnElement, exists, select
from sqlalchemy.orm import Session

from domain.alerts.listing.search import Matches, find_matches, words_of
from domain.alerts.reading.incoming import Severity
from models import Alert, Assignment, User
from models.folding import fold

OPEN_STATUSES = ("triggered", "acknowledged")
STATUSES = ("triggered", "acknowledged", "resolved", "ignored")
#: Tabs of the list, with the statuses behind each.
TABS: dict[str, tuple[str, ...]] = {
    "open": OPEN_STATUSES,
    "triggered": ("triggered",),
    "acknowledged": ("acknowledged",),
    "resolved": ("resolved",),
    "ignored": ("ignored",),
    "all": STATUSES,
}
SEVERITIES = tuple(Severity)
#: Stands for those alerts that nobody looks after; no user can have this name.
NOBODY = "-"


@dataclass(frozen=True, kw_only=True)
class AlertFilter:
    """Which alerts are wanted; what is None or empty does not matter."""

    project_id: int
    statuses: tuple[str, ...] = STATUSES
    search: str = ""
    severity: Severity | None = None
    environment: str | None = None
    service: str | None = None
    #: A user name, or NOBODY.
    assignee: str | None = None
    integration_id: int | None = None
    #: The alerts with the words of `search`, once they were looked up.
    matches: Matches | None = None

    @property
    def is_narrow(self) -> bool:
        """Whether anything but the status matters."""
        return bool(self.search) or any(
            value is not None
            for value in (
                *(self.severity, self.environment, self.service),
                *(self.assignee, self.integration_id),
            )
        )


def urgency() -> ColumnElement[int]:
    """Return what leads from critical to unknown when it descends; as the index has it."""
    return -Alert.severity


def looked_up(wanted: AlertFilter, *, session: Session) -> AlertFilter:
    """Return the same filter when it is known which alerts have its words."""
    if not wanted.search or wanted.matches is not None:
        return wanted
    words = words_of(wanted.search)
    found = find_matches(words, project_id=wanted.project_id, session=session)
    return replace(wanted, matches=found)


def conditions_of(wanted: AlertFilter) -> list[ColumnElement[bool]]:
    """Return what an alert must be, apart from its status; see `looked_up`."""
    found = [_of_project(wanted)]
    if wanted.severity is not None:
        found.append(urgency() == -wanted.severity.rank)
    for column, value in (
        (Alert.environment, wanted.environment),
        (Alert.service, wanted.service),
        (Alert.integration_id, wanted.integration_id),
    ):
        if value is not None:
            found.append(column == value)
    if wanted.assignee is not None:
        found.append(_assigned_to(wanted.assignee))
    if wanted.matches is not None:
        found.append(wanted.matches.condition)
    return found


def _of_project(wanted: AlertFilter) -> ColumnElement[bool]:
    """Return the project's condition; no index has it where alerts are named one by one.

    A planner that has not counted the tables would rather go over all alerts of the project.
    """
    is_named = wanted.matches is not None and not wanted.matches.are_many
    column = Alert.project_id + 0 if is_named else Alert.project_id
    return column == wanted.project_id


def _assigned_to(username: str) -> ColumnElement[bool]:
    if username == NOBODY:
        return ~exists().where(Assignment.alert_id == Alert.id)
    return Alert.id.in_(
        select(Assignment.alert_id)
        .join(User, User.id == Assignment.user_id)
        .where(User.username_key == fold(username))
    )
