"""What can be done with escalation policies and alert routes."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from sqlalchemy import func, or_, select, update
from sqlalchemy.exc import IntegrityError

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.alerts.following import Follower, follow, unfollow
from domain.alerts.formats.base import Reading
from domain.alerts.reading.text import storable
from domain.audit.events import EventKind
from domain.database.paging import LARGEST_ID
from domain.database.rows import update_rows
from domain.errors import ConflictError, InvalidError, NotFoundError
from domain.escalations import dry_run
from domain.escalations.policies import all_policies, lock_rules, policies_of, resolve_steps
from domain.escalations.routes import all_routes, read_route, rows_of
from domain.escalations.state import State
from domain.escalations.steps import Plan, check_plan, stored_steps
from domain.escalations.types import (
    LONGEST_NAME,
    AlertRoute,
    AlertRouteDryRun,
    DryRunBody,
    EscalationPolicy,
    NewPolicy,
    NewRoute,
    PolicyChange,
    PolicyQuery,
    RouteChange,
    RouteQuery,
)
from domain.projects.views import ProjectView
from domain.types.base import Found
from models import AlertRoute as RouteRow
from models import Escalation
from models import EscalationPolicy as PolicyRow
from models.folding import fold

#: Of a project.
MOST_POLICIES = 100
MOST_ROUTES = 100
_UNDER_WAY = (State.RUNNING.value, State.HELD.value)


@question("escalation_policies.index")
def list_policies(work: Work, project: ProjectView, query: PolicyQuery) -> Found[EscalationPolicy]:
    """List escalation policies."""
    here = select(PolicyRow).where(PolicyRow.project_id == project.id)
    part = here.order_by(PolicyRow.name_key, PolicyRow.id).offset(query.offset).limit(query.size)
    rows = work.session.scalars(part).all()
    total = work.session.scalar(select(func.count()).select_from(here.subquery()))
    return Found(items=policies_of(rows, session=work.session), total=total or 0)


@question("escalation_policies.show")
def show_policy(work: Work, project: ProjectView, policy_id: int | str) -> EscalationPolicy:
    """Show an escalation policy.

    It is found by its id, or by its name in any case. Raises NotFoundError.
    """
    return policies_of([_policy(work, project, policy_id)], session=work.session)[0]


@question("escalation_policies.show")
def read_plan(work: Work, project: ProjectView, new: NewPolicy) -> Plan:
    """Return what a policy would do.

    Raises InvalidError for targets that cannot be paged, and for too much of something.
    """
    steps = resolve_steps(
        new.named_steps, project.namespace, session=work.session, today=work.now.date()
    )
    timeout = new.acknowledgement_timeout
    plan = Plan(steps=steps, repeats=new.repeats, pause=new.repeat_pause, timeout=timeout)
    check_plan(plan)
    return plan


@action("escalation_policies.create")
def create_policy(work: Work, project: ProjectView, new: NewPolicy) -> EscalationPolicy:
    """Create an escalation policy.

    From then on the project's new alerts are escalated. Raises InvalidError, or ConflictError if
    the name is taken.
    """
    plan = read_plan(work, project, new)
    lock_rules(project.id, session=work.session)
    of_project = PolicyRow.project_id == project.id
    count = work.session.scalar(select(func.count(PolicyRow.id)).where(of_project)) or 0
    if count >= MOST_POLICIES:
        raise InvalidError(f"A project has at most {MOST_POLICIES} escalation policies.")
    row = PolicyRow(project_id=project.id, created_at=work.now, updated_at=work.now)
    row.name = _checked(new.name, "Night")
    _fill(work, row, plan, is_default=new.default)
    _store(work, row)
    follow(project.id, Follower.ESCALATIONS, session=work.session)
    return _policy_stored(work, project, row, EventKind.ESCALATION_POLICY_CREATED)


@action("escalation_policies.change")
def change_policy(
    work: Work, project: ProjectView, policy_id: int | str, change: PolicyChange
) -> EscalationPolicy:
    """Change an escalation policy; omitted fields are kept.

    Escalations under way go on with the new steps at once, from the number of the step that is
    next. Raises NotFoundError, InvalidError or ConflictError.
    """
    lock_rules(project.id, session=work.session)
    row = _policy(work, project, policy_id)
    work.session.refresh(row)
    present = policies_of([row], session=work.session)[0]
    given = change.given
    if "steps" in given:
        steps = resolve_steps(
            change.named_steps, project.namespace, session=work.session, today=work.now.date()
        )
    else:
        steps = present.plan.steps
    plan = Plan(
        steps=steps,
        repeats=given.get("repeats", present.repeats),
        pause=given.get("repeat_pause", present.plan.pause),
        timeout=given.get("acknowledgement_timeout", present.plan.timeout),
    )
    check_plan(plan)
    with work.session.no_autoflush:
        row.name = _checked(given.get("name", row.name), "Night")
        _fill(work, row, plan, is_default=given.get("default", present.default))
    if not work.session.is_modified(row):
        return present
    row.updated_at = work.now
    _store(work, row)
    _wake_escalations(work, row)
    return _policy_stored(work, project, row, EventKind.ESCALATION_POLICY_CHANGED)


@action("escalation_policies.delete")
def delete_policy(work: Work, project: ProjectView, policy_id: int | str) -> EscalationPolicy:
    """Delete an escalation policy that no route leads to; its escalations end.

    They begin again with the policies that are chosen then. Without any policy, alerts of the
    project page nobody. Returns the policy as it was; raises NotFoundError or ConflictError.
    """
    lock_rules(project.id, session=work.session)
    row = _policy(work, project, policy_id)
    policy = policies_of([row], session=work.session)[0]
    leading = select(RouteRow.name).where(RouteRow.policy_id == row.id)
    routes = work.session.scalars(leading.order_by(RouteRow.position)).all()
    if routes:
        message = f"The route {routes[0]} leads to this policy. Change or delete the route first."
        raise ConflictError(message, field="policy")
    _check_others_take_over(work, row)
    _wake_escalations(work, row)
    _record_policy(work, project, policy, EventKind.ESCALATION_POLICY_REMOVED)
    work.session.delete(row)
    work.session.flush()
    of_project = PolicyRow.project_id == project.id
    if work.session.scalar(select(PolicyRow.id).where(of_project).limit(1)) is None:
        unfollow(project.id, Follower.ESCALATIONS, session=work.session)
    return policy


def _policy(work: Work, project: ProjectView, policy_id: int | str) -> PolicyRow:
    """Return the policy with this name in any case, or with this id, or raise NotFoundError."""
    if isinstance(policy_id, str):
        named = select(PolicyRow).where(
            PolicyRow.project_id == project.id,
            PolicyRow.name_key == fold(storable(policy_id).strip()),
        )
        if (found := work.session.scalar(named)) is not None:
            return found
        if not (policy_id.isascii() and policy_id.isdecimal()):
            raise NotFoundError(f"This project has no escalation policy “{policy_id[:100]}”.")
    number = int(policy_id)
    row = work.session.get(PolicyRow, number) if number <= LARGEST_ID else None
    if row is None or row.project_id != project.id:
        raise NotFoundError("Escalation policy not found in this project.")
    return row


def _fill(work: Work, row: PolicyRow, plan: Plan, *, is_default: bool) -> None:
    if is_default:
        work.session.execute(
            update(PolicyRow)
            .where(
                PolicyRow.project_id == row.project_id,
                PolicyRow.id != (row.id or 0),
                PolicyRow.is_default,
            )
            .values(is_default=False, updated_at=work.now)
        )
    row.is_default = is_default
    row.steps = stored_steps(plan.steps)
    row.repeats = plan.repeats
    row.repeat_pause = int(plan.pause.total_seconds())
    timeout = plan.timeout
    row.acknowledgement_timeout = int(timeout.total_seconds()) if timeout else None


def _store(work: Work, row: PolicyRow) -> None:
    name = row.name
    try:
        with work.session.begin_nested():
            work.session.add(row)
    except IntegrityError as error:
        message = f"This project already has a policy with the name {name}."
        raise ConflictError(message, field="name") from error


def _checked(name: str, example: str) -> str:
    kept = storable(name).strip()
    if not kept or not kept.isprintable():
        message = f"Enter a name with letters, digits or symbols, such as {example}."
        raise InvalidError(message, field="name")
    if len(kept) > LONGEST_NAME:
        raise InvalidError(f"A name has at most {LONGEST_NAME} characters.", field="name")
    return kept


def _check_others_take_over(work: Work, row: PolicyRow) -> None:
    """Raise ConflictError if alerts are being escalated that would page nobody from now on."""
    running = select(func.count(Escalation.id)).where(
        Escalation.policy_id == row.id, Escalation.state.in_(_UNDER_WAY)
    )
    count = work.session.scalar(running) or 0
    led_to = select(RouteRow.policy_id).where(RouteRow.policy_id.is_not(None))
    other = select(PolicyRow.id).where(
        PolicyRow.id != row.id,
        PolicyRow.project_id == row.project_id,
        or_(PolicyRow.is_default, PolicyRow.id.in_(led_to)),
    )
    if not count or work.session.scalar(other.limit(1)):
        return
    alerts = "An alert is" if count == 1 else f"{count:,} alerts are"
    message = (
        f"{alerts} being escalated by this policy, and no other policy would page anybody. "
        "Make another policy the default one first, or acknowledge these alerts."
    )
    raise ConflictError(message, field="policy")


def _wake_escalations(work: Work, row: PolicyRow) -> None:
    """Let escalations of a policy that was changed or deleted look at once what follows."""
    work.session.execute(
        update_rows(Escalation)
        .where(
            Escalation.policy_id == row.id,
            Escalation.state.in_(_UNDER_WAY),
            Escalation.next_at > work.now,
        )
        .values(next_at=work.now)
    )


def _policy_stored(
    work: Work, project: ProjectView, row: PolicyRow, kind: EventKind
) -> EscalationPolicy:
    policy = policies_of([row], session=work.session)[0]
    _record_policy(work, project, policy, kind)
    return policy


def _record_policy(
    work: Work, project: ProjectView, policy: EscalationPolicy, kind: EventKind
) -> None:
    details = {
        "project": project.path,
        "policy_id": policy.id,
        "steps": policy.summary,
        "default": policy.default,
    }
    work.record(kind, subject=policy.name, details=details)


@question("alert_routes.index")
def list_routes(work: Work, project: ProjectView, query: RouteQuery) -> Found[AlertRoute]:
    """List the alert routes, in the order in which they are applied."""
    found = all_routes(project.id, session=work.session)
    return Found(items=found[query.offset : query.offset + query.size], total=len(found))


@question("alert_routes.show")
def show_route(work: Work, project: ProjectView, route_id: int) -> AlertRoute:
    """Show an alert route.

    Raises NotFoundError.
    """
    return read_route(_route(work, project, route_id))


@action("alert_routes.create")
def create_route(work: Work, project: ProjectView, new: NewRoute) -> AlertRoute:
    """Create an alert route.

    Raises InvalidError.
    """
    lock_rules(project.id, session=work.session)
    rows = rows_of(project.id, session=work.session)
    if len(rows) >= MOST_ROUTES:
        raise InvalidError(f"A project has at most {MOST_ROUTES} routes.")
    row = RouteRow(
        project_id=project.id,
        name=_checked(new.name, "Production"),
        conditions=new.conditions().to_json(),
        policy_id=_known_policy(work, project, new.escalation_policy_id),
        position=len(rows) + 1,
        created_at=work.now,
        updated_at=work.now,
    )
    work.session.add(row)
    _put(rows, row, new.position or len(rows) + 1)
    return _route_stored(work, project, row, EventKind.ALERT_ROUTE_CREATED)


@action("alert_routes.change")
def change_route(
    work: Work, project: ProjectView, route_id: int, change: RouteChange
) -> AlertRoute:
    """Change an alert route; omitted fields are kept.

    Raises NotFoundError or InvalidError.
    """
    lock_rules(project.id, session=work.session)
    row = _route(work, project, route_id)
    present = read_route(row)
    rows = [each for each in rows_of(project.id, session=work.session) if each.id != row.id]
    row.name = _checked(change.given.get("name", row.name), "Production")
    row.conditions = change.conditions(present.conditions).to_json()
    if "escalation_policy_id" in change.given:
        row.policy_id = _known_policy(work, project, change.escalation_policy_id)
    _put(rows, row, change.given.get("position", row.position))
    if read_route(row) == present:
        return present
    row.updated_at = work.now
    return _route_stored(work, project, row, EventKind.ALERT_ROUTE_CHANGED)


@action("alert_routes.delete")
def delete_route(work: Work, project: ProjectView, route_id: int) -> AlertRoute:
    """Delete an alert route; those after it move up.

    Returns it as it was; raises NotFoundError.
    """
    lock_rules(project.id, session=work.session)
    row = _route(work, project, route_id)
    route = read_route(row)
    rows = [each for each in rows_of(project.id, session=work.session) if each.id != row.id]
    _record_route(work, project, route, EventKind.ALERT_ROUTE_REMOVED)
    work.session.delete(row)
    _number(rows)
    work.session.flush()
    return route


@question("alert_routes.dry_run")
def show_dry_run(work: Work, project: ProjectView, asked: DryRunBody) -> AlertRouteDryRun:
    """Show who would have been paged for past alerts, and when.

    Raises InvalidError for a period that is too long, or lies in the future.
    """
    since = asked.since
    if asked.days is not None:
        if since is not None:
            raise InvalidError("Send since or days, not both.", field="days")
        since = min(asked.until or work.now, work.now) - timedelta(days=asked.days)
    period = dry_run.period(since, asked.until, now=work.now)
    return dry_run.dry_run(
        project.namespace, period, session=work.session, reading=work.policy(Reading)
    )


def _route(work: Work, project: ProjectView, route_id: int) -> RouteRow:
    row = work.session.get(RouteRow, route_id) if route_id <= LARGEST_ID else None
    if row is None or row.project_id != project.id:
        raise NotFoundError("Alert route not found in this project.")
    return row


def _known_policy(work: Work, project: ProjectView, policy_id: int | str | None) -> int | None:
    if policy_id is None:
        return None
    try:
        return _policy(work, project, policy_id).id
    except NotFoundError as error:
        raise InvalidError(str(error), field="escalation_policy_id") from error


def _put(others: list[RouteRow], row: RouteRow, position: int) -> None:
    others.insert(max(position, 1) - 1, row)
    _number(others)


def _number(rows: Sequence[RouteRow]) -> None:
    for position, row in enumerate(rows, 1):
        row.position = position


def _route_stored(work: Work, project: ProjectView, row: RouteRow, kind: EventKind) -> AlertRoute:
    work.session.flush()
    route = read_route(row)
    _record_route(work, project, route, kind)
    return route


def _record_route(work: Work, project: ProjectView, route: AlertRoute, kind: EventKind) -> None:
    names: Mapping[int, str] = {
        policy.id: policy.name for policy in all_policies(project.id, session=work.session)
    }
    details = {
        "project": project.path,
        "route_id": route.id,
        "position": route.position,
        "what": route.sentence(names),
    }
    work.record(kind, subject=route.name, details=details)
