"""Stored members of groups and projects."""

from datetime import date

from sqlalchemy.orm import Session

from domain.core.database.pagination import PageRequest
from domain.projects.member_lists import MemberFilter, list_members
from domain.projects.views import MemberView, Namespace


def all_members(
    namespace: Namespace, *, session: Session, today: date, viewer_id: int | None = None
) -> tuple[MemberView, ...]:
    """Return all members of a group or project, members with the highest roles first."""
    part = PageRequest(size=1_000, order_by="role")
    found = list_members(
        namespace, MemberFilter(), part, viewer_id=viewer_id, session=session, today=today
    )
    return found.items
