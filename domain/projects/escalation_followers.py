"""Selects the projects whose alert changes are queued for escalations.

These are the projects with an escalation policy. The policy can be owned by the project or
inherited from a group. Database triggers queue changes to a project's alerts for escalations as
long as the project has an `AlertFollower` row. The rows are updated when a project is created or
transferred, when the first policy of a project or group is created, and when the last policy is
deleted.
"""

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from domain.core.database.bulk_statements import build_bulk_delete, build_session_insert
from domain.projects.row_ownership import (
    build_used_by_condition,
    find_group_chains,
    group_rows_by_project,
)
from models import AlertFollower, EscalationPolicy

#: Name under which escalations follow changes to alerts.
ESCALATIONS_FOLLOWER = "escalations"
_IDS_PER_BATCH = 1_000


def update_escalation_followers(projects: Select[int], *, session: Session) -> None:
    """Make escalations follow the alerts of the selected projects that have a policy.

    Escalations stop following the other selected projects. No policy of an ancestor group may be
    created or deleted in the meantime. To prevent this, the creation or transfer of a project
    acquires shared locks on the ancestor groups, for which
    `domain.paging.escalations.policies.lock_policies_and_routes` waits.
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
            insert = build_session_insert(AlertFollower, session=session)
            session.execute(insert.values(rows).on_conflict_do_nothing())
        others = AlertFollower.project_id.in_(used.keys() - followed)
        session.execute(build_bulk_delete(AlertFollower).where(is_one, others))
