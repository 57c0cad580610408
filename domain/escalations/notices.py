"""Tells the maintainers of a project that paging for its alerts reached nobody, or no answer came.

Each of them gets at most one notice of a kind in an hour for each project, so a storm of alerts is
no storm of messages.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from domain.escalations.alerts import AlertInBrief
from domain.notifications.notices import Notice, tell_maintainers
from domain.notifications.policy import PagingPolicy
from domain.projects.views import Namespace

_MOST_NAMED = 20
_UNREACHED = (
    "The escalation policy of these alerts reached nobody: nobody was on call, nobody had a "
    "confirmed contact, or no contact accepted a page. The activity of each alert has the reasons. "
    "The steps are tried again until somebody is reached."
)
_UNANSWERED = (
    "People were paged for these alerts, all steps have run, and nobody has answered. Nobody else "
    "is paged."
)


def tell_of_unreached(
    alerts: Sequence[AlertInBrief], policy: PagingPolicy, *, session: Session, now: datetime
) -> None:
    """Queue a notice about alerts for which a whole round of steps reached nobody."""
    what = "escalation reached nobody", "Nobody was paged for alerts of {path}", _UNREACHED
    _tell(alerts, what, policy, session=session, now=now)


def tell_of_unanswered(
    alerts: Sequence[AlertInBrief], policy: PagingPolicy, *, session: Session, now: datetime
) -> None:
    """Queue a notice about alerts for which all steps were taken, and nobody answered."""
    what = "nobody answered", "Nobody answered alerts of {path}", _UNANSWERED
    _tell(alerts, what, policy, session=session, now=now)


def _tell(
    alerts: Sequence[AlertInBrief],
    what: tuple[str, str, str],
    policy: PagingPolicy,
    *,
    session: Session,
    now: datetime,
) -> None:
    by_project: dict[Namespace, list[AlertInBrief]] = {}
    for alert in alerts:
        project = Namespace(project_id=alert.project_id, path=alert.project_path)
        by_project.setdefault(project, []).append(alert)
    kind, subject, said = what
    for project, some in by_project.items():
        notice = Notice(
            key=f"{kind}: project {project.project_id}, {now:%Y-%m-%dT%H}",
            subject=subject.format(path=project.path),
            text=f"{said}\n\n{_listed(some, project.path, policy.base_url)}",
        )
        tell_maintainers(project, notice, policy, session=session, now=now)


def _listed(alerts: Sequence[AlertInBrief], path: str, base_url: str) -> str:
    lines = [
        f"#{each.iid} {each.title}\n{base_url}/{path}/-/alerts/{each.iid}"
        for each in alerts[:_MOST_NAMED]
    ]
    if len(alerts) > _MOST_NAMED:
        lines.append(f"and {len(alerts) - _MOST_NAMED} more")
    return (
        "\n\n".join(lines) + f"\n\nPolicies: {base_url}/{path}/-/on_call/policies\n\n"
        "You get at most one such message an hour for each project."
    )
