"""Notices to maintainers about alerts and incidents that paged nobody or received no response."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from sqlalchemy.orm import Session

from domain.paging.notifications.delivery_status import MaintainerNotice, notify_maintainers
from domain.paging.notifications.page_subjects import SubjectKind
from domain.paging.notifications.paging_settings import PagingSettings
from domain.projects.views import Namespace

_MAX_LISTED = 20


class PagingFailureSubject(Protocol):
    """An alert or incident whose pages failed or received no response."""

    @property
    def id(self) -> int:
        """ID of the alert or incident."""

    @property
    def project(self) -> Namespace:
        """Project of the alert or incident."""

    @property
    def iid(self) -> int:
        """Number of the alert or incident within its project."""

    @property
    def title(self) -> str:
        """Title of the alert or incident."""


class PagingFailure(NamedTuple):
    """A kind of paging failure, with the subject and text of the notice to maintainers."""

    #: Prefix of notice keys.
    kind: str
    subject: str
    text: str
    about: SubjectKind = SubjectKind.ALERT
    #: Label of a link in the notice, and its path below the URL of the project.
    see: tuple[str, str] = ("Policies", "on_call/policies")


#: Failure for an alert: a whole round of steps reached nobody.
NOBODY_REACHED = PagingFailure(
    "escalation reached nobody",
    "Nobody was paged for alerts in {path}",
    "The escalation policy of these alerts reached nobody: nobody was on call, nobody had a "
    "confirmed contact, or no contact accepted a page. The timeline of each alert shows the "
    "reasons. The steps are retried until somebody is reached.",
)
#: Failure for an alert: all steps were taken, and nobody responded.
NOBODY_RESPONDED = PagingFailure(
    "nobody answered",
    "Nobody answered alerts in {path}",
    "People were paged for these alerts, all steps have run, and nobody has answered. Nobody else "
    "is paged.",
)
#: Failure for an incident: its rules reached none of its responders.
NO_RESPONDER_REACHED = PagingFailure(
    "rules called nobody",
    "Nobody was paged for incidents in {path}",
    "The rules of these incidents reached none of their responders: nobody was on call, nobody had "
    "a confirmed contact, or their accounts or roles no longer exist. The timeline of each "
    "incident shows the reasons. The escalations of their alerts continue.",
    SubjectKind.INCIDENT,
    ("Rules", "incidents/rules"),
)


def notify_of_paging_failure(
    subjects: Sequence[PagingFailureSubject],
    outcome: PagingFailure,
    policy: PagingSettings,
    *,
    session: Session,
    now: datetime,
) -> None:
    """Notify the maintainers of each project, at most once an hour for each kind of failure."""
    by_project: dict[Namespace, list[PagingFailureSubject]] = {}
    for each in subjects:
        by_project.setdefault(each.project, []).append(each)
    for project, some in by_project.items():
        listed = _format_list(some, outcome, f"{policy.base_url}/{project.path}/-")
        notice = MaintainerNotice(
            key=f"{outcome.kind}: project {project.project_id}, {now:%Y-%m-%dT%H}",
            subject=outcome.subject.format(path=project.path),
            text=f"{outcome.text}\n\n{listed}",
            alerts=tuple(each.id for each in some) if outcome.about is SubjectKind.ALERT else (),
        )
        notify_maintainers(project, notice, policy, session=session, now=now)


def _format_list(
    subjects: Sequence[PagingFailureSubject], outcome: PagingFailure, pages: str
) -> str:
    lines = [
        f"#{each.iid} {each.title}\n{pages}/{outcome.about}s/{each.iid}"
        for each in subjects[:_MAX_LISTED]
    ]
    if len(subjects) > _MAX_LISTED:
        lines.append(f"and {len(subjects) - _MAX_LISTED} more")
    what, where = outcome.see
    return (
        "\n\n".join(lines) + f"\n\n{what}: {pages}/{where}\n\n"
        "You receive at most one of these messages per hour for each project."
    )
