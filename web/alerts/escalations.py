"""Changes of policies and routes, with their audit events: for pages, the API and commands."""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.audit.events import Event, EventKind
from domain.durations import parse_duration
from domain.escalations import policies as policy_store
from domain.escalations import routes as route_store
from domain.escalations.policies import PolicyDraft, PolicyEdit, PolicyView
from domain.escalations.routes import RouteDraft, RouteView
from domain.escalations.steps import USUAL_PAUSE, NamedStep, Plan, Step, check_plan
from domain.escalations.targets import resolve_steps
from domain.projects.views import ProjectView
from web.extensions import db
from web.http.audit_events import record_event
from web.services import now


@dataclass(frozen=True, kw_only=True)
class WrittenPlan:
    """What a policy does, as somebody wrote it; None leaves a part of a policy as it is."""

    steps: Sequence[NamedStep] | None = None
    repeats: int | None = None
    #: As `domain.durations` reads it.
    pause: str | None = None


def read_plan(project: ProjectView, written: WrittenPlan, present: Plan | None = None) -> Plan:
    """Return a plan with the ids of its targets; raise InvalidError."""
    usual = (0, USUAL_PAUSE) if present is None else (present.repeats, present.pause)
    pause = parse_duration(written.pause, field="repeat_pause") if written.pause else None
    plan = Plan(
        steps=_steps(project, written, present),
        repeats=usual[0] if written.repeats is None else written.repeats,
        pause=usual[1] if pause is None else pause,
    )
    check_plan(plan)
    return plan


def _steps(project: ProjectView, written: WrittenPlan, present: Plan | None) -> tuple[Step, ...]:
    if written.steps is None and present is not None:
        return present.steps
    return resolve_steps(
        written.steps or (), project.namespace, session=db.session(), today=now().date()
    )


def create_policy(
    project: ProjectView, name: str, written: WrittenPlan, *, is_default: bool
) -> PolicyView:
    """Create a policy; raise InvalidError or ConflictError."""
    draft = PolicyDraft(name=name, plan=read_plan(project, written), is_default=is_default)
    made = policy_store.create_policy(project.id, draft, session=db.session(), now=now())
    _record_policy(EventKind.ESCALATION_POLICY_CREATED, project, made)
    return made


def change_policy(project: ProjectView, policy_id: int, edit: PolicyEdit) -> PolicyView:
    """Change a policy; raise NotFoundError, InvalidError or ConflictError."""
    changed = policy_store.change_policy(
        project.id, policy_id, edit, session=db.session(), now=now()
    )
    _record_policy(EventKind.ESCALATION_POLICY_CHANGED, project, changed)
    return changed


def delete_policy(project: ProjectView, policy_id: int) -> PolicyView:
    """Delete a policy; raise NotFoundError, or ConflictError if a route leads to it."""
    gone = policy_store.delete_policy(project.id, policy_id, session=db.session(), now=now())
    _record_policy(EventKind.ESCALATION_POLICY_REMOVED, project, gone)
    return gone


def _record_policy(kind: EventKind, project: ProjectView, policy: PolicyView) -> None:
    details = {
        "project": project.path,
        "policy_id": policy.id,
        "steps": " ".join(policy.sentences),
        "default": policy.is_default,
    }
    record_event(Event(kind=kind, subject=policy.name, details=details))


def create_route(project: ProjectView, draft: RouteDraft) -> RouteView:
    """Create a route; raise InvalidError."""
    made = route_store.create_route(project.id, draft, session=db.session(), now=now())
    _record_route(EventKind.ALERT_ROUTE_CREATED, project, made)
    return made


def change_route(project: ProjectView, route_id: int, draft: RouteDraft) -> RouteView:
    """Replace a route; raise NotFoundError or InvalidError."""
    changed = route_store.change_route(project.id, route_id, draft, session=db.session(), now=now())
    _record_route(EventKind.ALERT_ROUTE_CHANGED, project, changed)
    return changed


def move_route(project: ProjectView, route_id: int, position: int) -> RouteView:
    """Move a route to another place; raise NotFoundError."""
    moved = route_store.move_route(project.id, route_id, position, session=db.session())
    _record_route(EventKind.ALERT_ROUTE_CHANGED, project, moved)
    return moved


def delete_route(project: ProjectView, route_id: int) -> RouteView:
    """Delete a route; raise NotFoundError."""
    gone = route_store.delete_route(project.id, route_id, session=db.session())
    _record_route(EventKind.ALERT_ROUTE_REMOVED, project, gone)
    return gone


def _record_route(kind: EventKind, project: ProjectView, route: RouteView) -> None:
    details = {
        "project": project.path,
        "route_id": route.id,
        "position": route.position,
        "what": route.sentence,
    }
    record_event(Event(kind=kind, subject=route.name, details=details))
