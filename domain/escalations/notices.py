"""Tells the maintainers of a project by e-mail that paging for its alerts reached nobody."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import select, true
from sqlalchemy.orm import Session

from domain.accounts.abilities import Ability
from domain.escalations.alerts import AlertInBrief
from domain.mail.outbox import NewMessage, queue_messages
from domain.projects.member_lists import able_people
from domain.projects.views import Namespace
from models import User

_MOST_NAMED = 20
_MOST_MAINTAINERS = 50


def tell_maintainers(
    alerts: Sequence[AlertInBrief], *, base_url: str, session: Session, now: datetime
) -> None:
    """Queue a notice about alerts for which a whole round of steps reached nobody.

    Each maintainer of a project gets at most one in an hour, so a storm of alerts is no storm of
    mail.
    """
    by_project: dict[int, list[AlertInBrief]] = {}
    for alert in alerts:
        by_project.setdefault(alert.project_id, []).append(alert)
    for some in by_project.values():
        queue_messages(
            _messages(some, base_url=base_url, session=session, now=now), session=session, now=now
        )


def _messages(
    alerts: Sequence[AlertInBrief], *, base_url: str, session: Session, now: datetime
) -> Sequence[NewMessage]:
    project = alerts[0]
    namespace = Namespace(project_id=project.project_id, path=project.project_path)
    maintainers = able_people(
        true(), Ability.ADMIN_INTEGRATIONS, namespace, session=session, today=now.date()
    )
    some = sorted(maintainers)[:_MOST_MAINTAINERS]
    return [
        NewMessage(
            key=f"escalation reached nobody:{project.project_id}:{now:%Y-%m-%dT%H}:{row.id}",
            recipient=row.email,
            subject=f"Nobody was paged for alerts of {project.project_path}",
            text=_text(row.username, alerts, base_url=base_url),
        )
        for row in session.execute(
            select(User.id, User.username, User.email).where(User.id.in_(some)).order_by(User.id)
        )
    ]


def _text(username: str, alerts: Sequence[AlertInBrief], *, base_url: str) -> str:
    path = alerts[0].project_path
    lines = [
        f"#{each.iid} {each.title}\n{base_url}/{path}/-/alerts/{each.iid}"
        for each in alerts[:_MOST_NAMED]
    ]
    if len(alerts) > _MOST_NAMED:
        lines.append(f"and {len(alerts) - _MOST_NAMED} more")
    return (
        f"Hello {username},\n\n"
        "All steps of an escalation policy ran for these alerts without reaching anybody: "
        "nobody was on call, or nobody had a confirmed contact. The activity of each alert has the "
        "reasons.\n\n" + "\n\n".join(lines) + "\n\n"
        f"Policies: {base_url}/{path}/-/on_call/policies\n\n"
        "You get at most one such message an hour for each project.\n"
    )
