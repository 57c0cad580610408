"""Selects the projects whose alerts escalations follow: those with a policy, owned or inherited.

Triggers notify escalations of a project's alerts as long as the project has an `AlertFollower` row.
The rows are updated for new and transferred projects, and for the first and the last policy of a
project or group.
"""

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from domain.core.database.rows import delete_rows, insert_into
from domain.projects.owners import build_used_by_condition, find_group_chains, group_rows_by_project
from models import AlertFollower, EscalationPolicy

#: Name of escalations as a follower of alerts.
ESCALATIONS_FOLLOWER = "escalations"
_IDS_PER_BATCH = 1_000


def update_followed_projects(projects: Select[int], *, session: Session) -> None:
    """Make escalations follow the alerts of projects that have a policy, and of no others.

    Only the selected projects are updated. No policy above may be created or deleted in the
    meantime. For this, a new or transferred project takes shared locks of the groups above, which
    `domain.paging.escalations.policies.lock_policies_and_routes` waits for.
    """
    session.flush()
    ids = session.scalars(projects).all()
    for begin in range(0, len(ids), _IDS_PER_BATCH):
        used = find_group_chains(ids[begin : begin + _IDS_PER_BATCH], session=session)
        owners = session.execute(
            select(EscalationPolicy.project_id, EscalationPolicy.group_id)
            .where(build_used_by_condition(EscalationPolicy, used.values()))
            .distinct()
        )
        followed = group_rows_by_project(owners, used).keys()
        is_one = AlertFollower.follower == ESCALATIONS_FOLLOWER
        rows = [{"project_id": each, "follower": ESCALATIONS_FOLLOWER} for each in sorted(followed)]
        if rows:
            insert = insert_into(AlertFollower, session=session)
            session.execute(insert.values(rows).on_conflict_do_nothing())
        others = AlertFollower.project_id.in_(used.keys() - followed)
        session.execute(delete_rows(AlertFollower).where(is_one, others))
