"""Requirements for a second factor, set for the instance or for groups."""

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

from domain.accounts.factors.second_factors import build_second_factor_condition
from domain.core.database.statements import StatementConnection
from models import Group, Member, Project

REQUIRED_FOR_NOBODY, REQUIRED_FOR_ADMINISTRATORS, REQUIRED_FOR_EVERYBODY = (
    "nobody",
    "administrators",
    "everybody",
)


@dataclass(frozen=True, kw_only=True)
class SecondFactorRequirement:
    """The start and the source of a requirement to have a second factor."""

    begins: datetime
    #: Path of the group that sets the requirement; empty for the instance.
    path: str = ""


@dataclass(frozen=True, kw_only=True)
class SecondFactorRule:
    """The instance's rule for second factors."""

    #: Users who need a second factor: `REQUIRED_FOR_NOBODY`, `REQUIRED_FOR_ADMINISTRATORS` or
    #: `REQUIRED_FOR_EVERYBODY`.
    required_of: str
    #: Day (UTC) on which the rule takes effect, or None if the rule is already in effect. Users are
    #: notified before that day.
    begins: date | None = None

    def covers_user(self, *, is_admin: bool) -> bool:
        """Return whether the rule covers a user, even if it is not in effect yet."""
        return self.required_of == REQUIRED_FOR_EVERYBODY or (
            self.required_of == REQUIRED_FOR_ADMINISTRATORS and is_admin
        )

    def is_in_effect(self, today: date) -> bool:
        """Return whether the rule is in effect on a day."""
        return self.begins is None or self.begins <= today

    def requires_second_factor_now(self, today: date, *, is_admin: bool) -> bool:
        """Return whether the rule requires a user to have a second factor on a day."""
        return self.covers_user(is_admin=is_admin) and self.is_in_effect(today)

    @property
    def requirement(self) -> SecondFactorRequirement:
        """The requirement for users that the rule covers."""
        day = self.begins or date.min
        return SecondFactorRequirement(begins=datetime.combine(day, time(), UTC))


_MemberGroup = aliased(Group)


def _is_path_inside(
    path: SQLColumnExpression[Any], above: SQLColumnExpression[Any]
) -> ColumnElement[bool]:
    # LIKE would treat an underscore in a path as a wildcard.
    return func.substr(path, 1, func.length(above) + 1) == above + "/"


_USER_ID: BindParameter[int] = bindparam("user_id", type_=Integer)
_MEMBERSHIP_PATH = func.coalesce(_MemberGroup.path_key, Project.path_key)
# Every page runs this query. It is built once, because building it takes longer than running it.
_GROUP_REQUIREMENTS_QUERY = (
    select(
        Group.path,
        Group.two_factor_required_at,
        Group.two_factor_grace_period,
        func.min(Member.created_at),
    )
    .select_from(Group)
    .join(Member, Member.user_id == _USER_ID)
    .outerjoin(_MemberGroup, _MemberGroup.id == Member.group_id)
    .outerjoin(Project, Project.id == Member.project_id)
    .where(
        Group.two_factor_required_at.is_not(None),
        Group.deleted_at.is_(None),
        _MemberGroup.deleted_at.is_(None),
        Project.deleted_at.is_(None),
        or_(Member.expires_at.is_(None), Member.expires_at > bindparam("today", type_=Date)),
        or_(
            Group.path_key == _MEMBERSHIP_PATH,
            _is_path_inside(_MEMBERSHIP_PATH, Group.path_key),
            _is_path_inside(Group.path_key, _MEMBERSHIP_PATH),
        ),
        not_(build_second_factor_condition(_USER_ID)),
    )
    .group_by(Group.id)
)


def find_group_requirement(
    user_id: int, *, connection: StatementConnection, now: datetime
) -> SecondFactorRequirement | None:
    """Return the earliest requirement that a user's groups set, or None.

    Return None if the user has a second factor. A group's requirement applies to its members, and
    to members of its ancestors, subgroups and projects. The grace period starts when the
    requirement is set or when the user becomes a member, whichever is later.
    """
    values = {"user_id": user_id, "today": now.date()}
    found = [
        SecondFactorRequirement(
            path=path, begins=max(required_at or since, since) + timedelta(hours=hours)
        )
        for path, required_at, hours, since in connection.fetch_rows(
            _GROUP_REQUIREMENTS_QUERY, values
        )
    ]
    return min(found, key=lambda each: each.begins, default=None)
