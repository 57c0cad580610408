"""Says how it stands with the paging for an alert: who was paged, who is next, or why nobody."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from domain.clock import date_and_time
from domain.escalations.state import State
from domain.escalations.steps import Target, TargetKind
from domain.escalations.targets import names_of
from domain.escalations.wording import target_words
from models import AlertRoute, Escalation, EscalationPage, EscalationPolicy

#: The newest pages are shown.
_MOST_PAGES = 50
_SENTENCES = {
    State.RUNNING: "Paging is in progress.",
    State.STOPPED: "Paging stopped when the alert was acknowledged, ignored or resolved.",
    State.EXHAUSTED: "All steps have run. Nobody else is paged.",
    State.POLICY_DELETED: "Paging ended: its policy was deleted.",
}
_WITHOUT_POLICIES = "This project has no escalation policy, so its alerts page nobody."
_WITHOUT_ESCALATION = "No page: the alert was opened before the project had an escalation policy."


@dataclass(frozen=True, kw_only=True)
class SentPage:
    """Somebody who was paged."""

    at: datetime
    #: A person or channel, in words.
    name: str
    round: int
    step: int


@dataclass(frozen=True, kw_only=True)
class EscalationView:
    """How it stands with the paging for an alert."""

    #: None without an escalation.
    state: State | None
    sentence: str
    #: Whether alerts like this one page nobody until a maintainer changes that.
    lacks_policy: bool = False
    #: None if none was chosen, or if it was deleted.
    policy: str | None = None
    #: Why this policy, in words.
    reason: str = ""
    #: The number of the next step, from 1, and when it is due; None if no step follows.
    next_step: int | None = None
    next_at: datetime | None = None
    round: int = 1
    #: The newest first.
    pages: Sequence[SentPage] = ()


def explain(project_id: int, alert_id: int, *, session: Session) -> EscalationView:
    """Return how it stands with the paging for an alert."""
    row = session.scalar(select(Escalation).where(Escalation.alert_id == alert_id))
    pages = _pages(alert_id, session=session)
    if row is None:
        of_project = EscalationPolicy.project_id == project_id
        has_policies = session.scalar(select(EscalationPolicy.id).where(of_project).limit(1))
        sentence = _WITHOUT_ESCALATION if has_policies else _WITHOUT_POLICIES
        lacks = not has_policies
        return EscalationView(state=None, sentence=sentence, lacks_policy=lacks, pages=pages)
    policy = row.policy_id and session.get(EscalationPolicy, row.policy_id)
    route = row.route_id and session.get(AlertRoute, row.route_id)
    state = State(row.state)
    is_running = state is State.RUNNING
    return EscalationView(
        state=state,
        sentence=_sentence(row, state, was_paged=bool(pages)),
        lacks_policy=state is State.NO_POLICY and row.route_id is None,
        policy=policy.name if policy else None,
        reason=_reason(row, route.name if route else None),
        next_step=row.step + 1 if is_running else None,
        next_at=row.next_at if is_running else None,
        round=row.round,
        pages=pages,
    )


def _sentence(row: Escalation, state: State, *, was_paged: bool) -> str:
    if state is State.EXHAUSTED and not was_paged:
        return "All steps ran, but nobody could be reached."
    if state is State.HELD:
        until = f" until {date_and_time(row.held_until)}" if row.held_until else ""
        return f"Nobody is paged now{until}: {row.held_by}."
    if state is State.NO_POLICY:
        return "Nobody is paged for this alert."
    return _SENTENCES[state]


def _reason(row: Escalation, route: str | None) -> str:
    if row.route_id is not None:
        return f"chosen by the route {route}" if route else "chosen by a route that was deleted"
    if row.policy_id is not None:
        return "the default policy, since no route matches"
    return "no route matches, and there is no default policy"


def _pages(alert_id: int, *, session: Session) -> Sequence[SentPage]:
    rows = session.scalars(
        select(EscalationPage)
        .where(EscalationPage.alert_id == alert_id)
        .order_by(EscalationPage.id.desc())
        .limit(_MOST_PAGES)
    ).all()
    names = names_of(filter(None, map(_target, rows)), session=session)
    return [
        SentPage(at=row.paged_at, name=_name(row, names), round=row.round, step=row.step)
        for row in rows
    ]


def _target(row: EscalationPage) -> Target | None:
    if row.channel_id is not None:
        return Target(TargetKind.CHANNEL, row.channel_id)
    return None if row.user_id is None else Target(TargetKind.USER, row.user_id)


def _name(row: EscalationPage, names: Mapping[Target, str]) -> str:
    target = _target(row)
    if target is None:
        return target_words(TargetKind.USER, None)
    return target_words(target.kind, names.get(target))
