"""Whether a page to somebody would reach them, asked before it is queued."""

from collections.abc import Collection, Mapping
from datetime import datetime
from enum import StrEnum

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.accounts.users import ACTIVE, HUMAN
from domain.notifications.gathering import seen_projects
from domain.notifications.recipients import held_until, quiet_hours_of
from models import Contact, PageRecipient, Project, User


class Reach(StrEnum):
    """Whether a page would leave; the value follows the name of a person in a sentence."""

    REACHABLE = "can be paged"
    #: The page leaves when they end.
    QUIET = "has quiet hours"
    NO_CONTACT = "has no confirmed contact"
    NO_ACCESS = "has no access to the alerts of the project"
    INACTIVE = "is not active"


def reachable(
    user_ids: Collection[int],
    project_id: int,
    *,
    is_critical: bool,
    sends_mail: bool,
    session: Session,
    now: datetime,
) -> Mapping[int, Reach]:
    """Return whether pages about an alert of a project would reach people.

    `sends_mail` says whether MAIL_URL is set: then the address of the account stands in for a
    missing contact. Accounts that do not exist are INACTIVE.
    """
    users = {user.id: user for user in session.scalars(select(User).where(User.id.in_(user_ids)))}
    with_contact = set(
        session.scalars(
            select(Contact.user_id).where(
                Contact.user_id.in_(user_ids),
                Contact.confirmed_at.is_not(None),
                Contact.address_ciphertext.is_not(None),
            )
        )
    )
    rows = session.scalars(select(PageRecipient).where(PageRecipient.user_id.in_(user_ids)))
    quiet = {
        row.user_id: held_until(quiet_hours_of(row), is_critical=is_critical, now=now)
        for row in rows
    }
    project = session.get(Project, project_id)

    def reach_of(user: User | None) -> Reach:
        if user is None or user.state != ACTIVE or user.kind != HUMAN:
            return Reach.INACTIVE
        if project is None or not seen_projects(user, [project], session=session, now=now):
            return Reach.NO_ACCESS
        if not sends_mail and user.id not in with_contact:
            return Reach.NO_CONTACT
        return Reach.QUIET if quiet.get(user.id) else Reach.REACHABLE

    return {user_id: reach_of(users.get(user_id)) for user_id in user_ids}
