"""Lets members leave a group or a project by themselves, whatever their role is."""

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from domain.accounts.users import UserView, view_of
from domain.errors import NotFoundError
from domain.projects.members import check_is_no_bot, is_here, keep_an_owner, lock_namespace
from domain.projects.views import Namespace, Viewer
from models import Member, User


def leave(namespace: Namespace, *, by: Viewer, session: Session) -> UserView:
    """End the viewer's own direct membership; roles from groups above stay.

    Raises NotFoundError without one, and InvalidError for bots and the last owner of a group.
    """
    lock_namespace(namespace, session=session)
    row = session.execute(
        select(Member, User)
        .join(User, User.id == Member.user_id)
        .where(Member.user_id == by.user_id, is_here(namespace))
        .execution_options(populate_existing=True)
    ).first()
    if row is None:
        message = f"You have no role of your own in {namespace.path}."
        raise NotFoundError(message)
    member, user = row
    check_is_no_bot(user)
    keep_an_owner(namespace, member, session=session)
    session.execute(delete(Member).where(Member.id == member.id))
    return view_of(user)
