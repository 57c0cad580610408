"""Who has to have a second factor, and from when on: by the rule of the instance, or of groups."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Date,
    Integer,
    SQLColumnExpression,
    bindparam,
    func,
    not_,
    or_,
    select,
)
from sqlalchemy.orm import aliased

from domain.accounts.factors.second_factors import has_any_factor
from domain.core.database.statements import KeptConnection
from models import Group, Member, Project

NOBODY, ADMINISTRATORS, EVERYBODY = "nobody", "administrators", "everybody"


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """What requires a second factor of somebody, and from when on."""

    begins: datetime
    #: The path of the group that requires it; empty if it is the instance.
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class SecondFactorRule:
    """The rule of the instance."""

    #: NOBODY, ADMINISTRATORS or EVERYBODY.
    whom: str
    #: The day (UTC) from which it holds; until then people are told. None for a rule without one.
    begins: date | None = None

    def names(self, *, is_admin: bool) -> bool:
        """Return whether somebody has to have a second factor, now or from its day on."""
        return self.whom == EVERYBODY or (self.whom == ADMINISTRATORS and is_admin)

    def holds(self, today: date) -> bool:
        """Return whether its day has come."""
        return self.begins is None or self.begins <= today

    def binds(self, today: date, *, is_admin: bool) -> bool:
        """Return whether somebody has to have a second factor now."""
        return self.names(is_admin=is_admin) and self.holds(today)

    @property
    def requirement(self) -> Requirement:
        """What it requires of those whom it names."""
        day = self.begins or date.min
        return Requirement(begins=datetime.combine(day, time(), UTC))


_Above = aliased(Group)


def _is_below(
    path: SQLColumnExpression[Any], above: SQLColumnExpression[Any]
) -> ColumnElement[bool]:
    # Not LIKE, for which an underscore of a path is any letter.
    return func.substr(path, 1, func.length(above) + 1) == above + "/"


_USER_ID: BindParameter[int] = bindparam("user_id", type_=Integer)
_PLACE = func.coalesce(_Above.path_key, Project.path_key)
# Asked for each page: to build it each time costs more than to ask it.
_REQUIRED_BY_GROUPS = (
    select(
        Group.path,
        Group.two_factor_required_at,
        Group.two_factor_grace_period,
        func.min(Member.created_at),
    )
    .select_from(Group)
    .join(Member, Member.user_id == _USER_ID)
    .outerjoin(_Above, _Above.id == Member.group_id)
    .outerjoin(Project, Project.id == Member.project_id)
    .where(
        Group.two_factor_required_at.is_not(None),
        Group.deleted_at.is_(None),
        _Above.deleted_at.is_(None),
        Project.deleted_at.is_(None),
        or_(Member.expires_at.is_(None), Member.expires_at > bindparam("today", type_=Date)),
        or_(
            Group.path_key == _PLACE,
            _is_below(_PLACE, Group.path_key),
            _is_below(Group.path_key, _PLACE),
        ),
        not_(has_any_factor(_USER_ID)),
    )
    .group_by(Group.id)
)


def find_group_requirement(
    user_id: int, *, connection: KeptConnection, now: datetime
) -> Requirement | None:
    """Return what the groups of somebody require who has no second factor; the earliest of it.

    A group requires it of its members, of those of the groups and projects below it, and of those
    of the groups above, who are its members too. Each has the grace period of the group, from the
    moment of the requirement or of the membership.
    """
    values = {"user_id": user_id, "today": now.date()}
    found = [
        Requirement(path=path, begins=max(required_at or since, since) + timedelta(hours=hours))
        for path, required_at, hours, since in connection.look_up(_REQUIRED_BY_GROUPS, values)
    ]
    return min(found, key=lambda each: each.begins, default=None)
