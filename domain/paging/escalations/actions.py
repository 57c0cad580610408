"""Actions on escalation policies and alert routes."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError

from domain.access.actions import action, question
from domain.access.actor import Work
from domain.alerts.formats.base import Reading
from domain.alerts.reading.text import storable
from domain.audit.events import EventKind
from domain.core.database.paging import LARGEST_ID
from domain.core.errors import ConflictError, InvalidError, NotFoundError
from domain.core.types.base import Found
from domain.paging.escalations import dry_run
from domain.paging.escalations.locks import wake_escalations
from domain.paging.escalations.policies import lock_rules, policies_of, resolve_steps, used_policies
from domain.paging.escalations.routes import (
    all_routes,
    read_routes,
    read_routing,
    rows_of,
    used_routes,
)
from domain.paging.escalations.state import UNDER_WAY
from domain.paging.escalations.steps import Plan, check_plan, stored_steps
from domain.paging.escalations.types import (
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
from domain.projects.owners import (
    belongs_to,
    is_listed_by,
    is_owned_by,
    is_used_by,
    lineage_of,
    owner_columns,
    projects_of,
)
from domain.projects.policy_scope import settle_paging
from domain.projects.views import Holder
from models import AlertRoute as RouteRow
from models import Escalation, Group, Project
from models import EscalationPolicy as PolicyRow
from models.folding import fold

#: Maximum number of escalation policies and of routes in a project or group.
MOST_POLICIES = 100
MOST_ROUTES = 100
_UNDER_WAY = [each.value for each in UNDER_WAY]


@question("escalation_policies.index")
def list_policies(work: Work, holder: Holder, query: PolicyQuery) -> Found[EscalationPolicy]:
    """List the escalation policies of a project or group."""
    listed = is_listed_by(
        PolicyRow, holder, with_groups_above=query.include_ancestor_groups, session=work.session
    )
    here = select(PolicyRow).where(listed)
    part = here.order_by(PolicyRow.name_key, PolicyRow.id).offset(query.offset).limit(query.size)
    rows = work.session.scalars(part).all()
    total = work.session.scalar(select(func.count()).select_from(here.subquery()))
    return Found(items=policies_of(rows, session=work.session), total=total or 0)


@question("escalation_policies.show")
def show_policy(work: Work, holder: Holder, policy_id: int | str) -> EscalationPolicy:
    """Show an escalation policy.

    The policy is found by its id, or by its name regardless of case. Raise NotFoundError if there
    is no such policy.
    """
    return policies_of([_policy(work, holder, policy_id)], session=work.session)[0]


@question("escalation_policies.show")
def read_plan(work: Work, holder: Holder, new: NewPolicy) -> Plan:
    """Return the plan of a new policy without storing it.

    Raise InvalidError if a target cannot be paged, or if a limit is exceeded.
    """
    steps = resolve_steps(new.named_steps, holder, session=work.session, today=work.now.date())
    timeout = new.acknowledgement_timeout
    plan = Plan(
        steps=steps,
        repeats=new.repeats,
        pause=new.repeat_pause,
        timeout=timeout,
        retriggers=new.retrigger_when_critical,
    )
    check_plan(plan)
    return plan


@action("escalation_policies.create")
def create_policy(work: Work, holder: Holder, new: NewPolicy) -> EscalationPolicy:
    """Create an escalation policy.

    The policy applies to new alerts of the project, or of all projects below the group. Raise
    InvalidError if a field is invalid, or ConflictError if the name is taken.
    """
    lock_rules(holder, session=work.session)
    plan = read_plan(work, holder, new)
    own = belongs_to(PolicyRow, holder)
    count = work.session.scalar(select(func.count(PolicyRow.id)).where(own)) or 0
    if count >= MOST_POLICIES:
        message = (
            f"{holder.path} already has {MOST_POLICIES} escalation policies, which is the maximum. "
            "Delete a policy first."
        )
        raise InvalidError(message)
    row = PolicyRow(**owner_columns(holder), created_at=work.now, updated_at=work.now)
    row.name = _checked(new.name, "Night")
    _fill(work, holder, row, plan, is_default=new.default)
    _store(work, row)
    settle_paging(projects_of(holder), session=work.session)
    return _policy_stored(work, holder, row, EventKind.ESCALATION_POLICY_CREATED)


@action("escalation_policies.change")
def change_policy(
    work: Work, holder: Holder, policy_id: int | str, change: PolicyChange
) -> EscalationPolicy:
    """Change an escalation policy.

    Omitted fields are kept. Escalations under way use the new steps immediately, and continue at
    the number of their next step. Raise NotFoundError if there is no such policy, InvalidError if a
    field is invalid, or ConflictError if the name is taken.
    """
    lock_rules(holder, session=work.session)
    row = _policy(work, holder, policy_id)
    work.session.refresh(row)
    present = policies_of([row], session=work.session)[0]
    given = change.given
    if "steps" in given:
        steps = resolve_steps(
            change.named_steps, holder, session=work.session, today=work.now.date()
        )
    else:
        steps = present.plan.steps
    plan = Plan(
        steps=steps,
        repeats=given.get("repeats", present.repeats),
        pause=given.get("repeat_pause", present.plan.pause),
        timeout=given.get("acknowledgement_timeout", present.plan.timeout),
        retriggers=given.get("retrigger_when_critical", present.retrigger_when_critical),
    )
    check_plan(plan)
    with work.session.no_autoflush:
        row.name = _checked(given.get("name", row.name), "Night")
        _fill(work, holder, row, plan, is_default=given.get("default", present.default))
    if not work.session.is_modified(row):
        return present
    row.updated_at = work.now
    _store(work, row)
    _wake_escalations(work, row)
    return _policy_stored(work, holder, row, EventKind.ESCALATION_POLICY_CHANGED)


@action("escalation_policies.delete")
def delete_policy(work: Work, holder: Holder, policy_id: int | str) -> EscalationPolicy:
    """Delete an escalation policy.

    Its escalations start again with the policies that apply then. If no other policy applies,
    alerts page nobody. Return the deleted policy. Raise NotFoundError if there is no such policy,
    or ConflictError if a route uses it.
    """
    lock_rules(holder, session=work.session)
    row = _policy(work, holder, policy_id)
    policy = policies_of([row], session=work.session)[0]
    _check_no_route_leads(work, holder, row)
    _check_others_take_over(work, row)
    _wake_escalations(work, row)
    _record_policy(work, holder, policy, EventKind.ESCALATION_POLICY_REMOVED)
    work.session.delete(row)
    work.session.flush()
    settle_paging(projects_of(holder), session=work.session)
    return policy


def _check_no_route_leads(work: Work, holder: Holder, row: PolicyRow) -> None:
    """Raise ConflictError if a route of the project, the group or below uses the policy."""
    found = work.session.execute(
        select(RouteRow.name, func.coalesce(Project.path, Group.path).label("path"))
        .outerjoin(Project, Project.id == RouteRow.project_id)
        .outerjoin(Group, Group.id == RouteRow.group_id)
        .where(RouteRow.policy_id == row.id)
        .order_by(RouteRow.position, RouteRow.id)
    ).first()
    if found is not None:
        where = "" if found.path == holder.path else f" of {found.path}"
        message = (
            f"The route {found.name}{where} uses this policy. Change or delete the route first."
        )
        raise ConflictError(message, field="policy")


def _policy(work: Work, holder: Holder, policy_id: int | str) -> PolicyRow:
    """Return the policy with this id, or with this name regardless of case.

    Raise NotFoundError if there is no such policy.
    """
    if isinstance(policy_id, str):
        named = select(PolicyRow).where(
            belongs_to(PolicyRow, holder),
            PolicyRow.name_key == fold(storable(policy_id).strip()),
        )
        if (found := work.session.scalar(named)) is not None:
            return found
        if not (policy_id.isascii() and policy_id.isdecimal()):
            message = f"{holder.path} has no escalation policy named {policy_id[:100]}."
            raise NotFoundError(message)
    number = int(policy_id)
    row = work.session.get(PolicyRow, number) if number <= LARGEST_ID else None
    if row is None or not is_owned_by(row, holder):
        word = holder.namespace.resource_type
        raise NotFoundError(f"Escalation policy not found in this {word}.")
    return row


def _fill(work: Work, holder: Holder, row: PolicyRow, plan: Plan, *, is_default: bool) -> None:
    if is_default:
        work.session.execute(
            update(PolicyRow)
            .where(
                belongs_to(PolicyRow, holder),
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
    row.retrigger_when_critical = plan.retriggers


def _store(work: Work, row: PolicyRow) -> None:
    name = row.name
    try:
        with work.session.begin_nested():
            work.session.add(row)
    except IntegrityError as error:
        message = f"An escalation policy named {name} already exists here."
        raise ConflictError(message, field="name") from error


def _checked(name: str, example: str) -> str:
    kept = storable(name).strip()
    if not kept or not kept.isprintable():
        message = f"Enter a name with letters, digits or symbols, such as {example}."
        raise InvalidError(message, field="name")
    if len(kept) > LONGEST_NAME:
        raise InvalidError(f"The name can have at most {LONGEST_NAME} characters.", field="name")
    return kept


def _check_others_take_over(work: Work, row: PolicyRow) -> None:
    """Raise ConflictError if the deletion would leave current escalations without a policy."""
    running = (
        select(Escalation.project_id, func.count(Escalation.id))
        .where(Escalation.policy_id == row.id, Escalation.state.in_(_UNDER_WAY))
        .group_by(Escalation.project_id)
    )
    counts = dict(work.session.execute(running).all())
    routing = read_routing(counts, session=work.session, without=row.id) if counts else {}
    count = sum(counts[each] for each, found in routing.items() if found.pages_nobody)
    if not count:
        return
    alerts, them, these = (
        ("an alert", "it", "the alert") if count == 1 else (f"{count:,} alerts", "them", "them")
    )
    message = (
        f"This policy is escalating {alerts}, and no other policy would page anyone for {them}. "
        f"Make another policy the default policy first, or acknowledge {these}."
    )
    raise ConflictError(message, field="policy")


def _wake_escalations(work: Work, row: PolicyRow) -> None:
    """Make the escalations of a changed or deleted policy due immediately."""
    which = Escalation.policy_id == row.id, Escalation.state.in_(_UNDER_WAY)
    wake_escalations(*which, session=work.session, now=work.now)


def _policy_stored(work: Work, holder: Holder, row: PolicyRow, kind: EventKind) -> EscalationPolicy:
    policy = policies_of([row], session=work.session)[0]
    _record_policy(work, holder, policy, kind)
    return policy


def _record_policy(work: Work, holder: Holder, policy: EscalationPolicy, kind: EventKind) -> None:
    details = {
        holder.namespace.resource_type: holder.path,
        "policy_id": policy.id,
        "steps": policy.summary,
        "default": policy.default,
    }
    work.record(kind, subject=policy.name, details=details)


@question("alert_routes.index")
def list_routes(work: Work, holder: Holder, query: RouteQuery) -> Found[AlertRoute]:
    """List the alert routes in the order in which they are applied."""
    if query.include_ancestor_groups:
        found = used_routes(lineage_of(holder, session=work.session), session=work.session)
    else:
        found = all_routes(holder, session=work.session)
    return Found(items=found[query.offset : query.offset + query.size], total=len(found))


@question("alert_routes.show")
def show_route(work: Work, holder: Holder, route_id: int) -> AlertRoute:
    """Show an alert route.

    Raise NotFoundError if there is no such route.
    """
    return _shown(work, _route(work, holder, route_id))


@action("alert_routes.create")
def create_route(work: Work, holder: Holder, new: NewRoute) -> AlertRoute:
    """Create an alert route.

    Raise InvalidError if a field is invalid.
    """
    lock_rules(holder, session=work.session)
    rows = rows_of(holder, session=work.session)
    if len(rows) >= MOST_ROUTES:
        message = (
            f"{holder.path} already has {MOST_ROUTES} routes, which is the maximum. Delete a route "
            "first."
        )
        raise InvalidError(message)
    row = RouteRow(
        **owner_columns(holder),
        name=_checked(new.name, "Production"),
        conditions=new.conditions().to_json(),
        policy_id=_known_policy(work, holder, new.escalation_policy_id),
        position=len(rows) + 1,
        created_at=work.now,
        updated_at=work.now,
    )
    work.session.add(row)
    _put(rows, row, new.position or len(rows) + 1)
    return _route_stored(work, holder, row, EventKind.ALERT_ROUTE_CREATED)


@action("alert_routes.change")
def change_route(work: Work, holder: Holder, route_id: int, change: RouteChange) -> AlertRoute:
    """Change an alert route.

    Omitted fields are kept. Raise NotFoundError if there is no such route, or InvalidError if a
    field is invalid.
    """
    lock_rules(holder, session=work.session)
    row = _route(work, holder, route_id)
    present = _shown(work, row)
    rows = [each for each in rows_of(holder, session=work.session) if each.id != row.id]
    row.name = _checked(change.given.get("name", row.name), "Production")
    row.conditions = change.conditions(present.conditions).to_json()
    if "escalation_policy_id" in change.given:
        row.policy_id = _known_policy(work, holder, change.escalation_policy_id)
    _put(rows, row, change.given.get("position", row.position))
    if _shown(work, row) == present:
        return present
    row.updated_at = work.now
    return _route_stored(work, holder, row, EventKind.ALERT_ROUTE_CHANGED)


@action("alert_routes.delete")
def delete_route(work: Work, holder: Holder, route_id: int) -> AlertRoute:
    """Delete an alert route and move up the routes after it.

    Return the deleted route. Raise NotFoundError if there is no such route.
    """
    lock_rules(holder, session=work.session)
    row = _route(work, holder, route_id)
    route = _shown(work, row)
    rows = [each for each in rows_of(holder, session=work.session) if each.id != row.id]
    _record_route(work, holder, route, EventKind.ALERT_ROUTE_REMOVED)
    work.session.delete(row)
    _number(rows)
    work.session.flush()
    return route


@question("alert_routes.dry_run")
def show_dry_run(work: Work, holder: Holder, asked: DryRunBody) -> AlertRouteDryRun:
    """Show the pages that past alerts would have caused.

    Raise InvalidError if the period is too long or in the future.
    """
    since = asked.since
    if asked.days is not None:
        if since is not None:
            raise InvalidError("`since` and `days` cannot be combined. Use one.", field="days")
        since = min(asked.until or work.now, work.now) - timedelta(days=asked.days)
    period = dry_run.period(since, asked.until, now=work.now)
    return dry_run.dry_run(holder, period, session=work.session, reading=work.policy(Reading))


def _route(work: Work, holder: Holder, route_id: int) -> RouteRow:
    row = work.session.get(RouteRow, route_id) if route_id <= LARGEST_ID else None
    if row is None or not is_owned_by(row, holder):
        raise NotFoundError(f"Alert route not found in this {holder.namespace.resource_type}.")
    return row


def _known_policy(work: Work, holder: Holder, policy_id: int | str | None) -> int | None:
    """Return the id of a policy of the project or group, or of a group above it.

    If several policies have the name, the nearest policy is used. Raise InvalidError if there is
    none.
    """
    if policy_id is None:
        return None
    used = lineage_of(holder, session=work.session)
    rows = work.session.execute(
        select(PolicyRow.id, PolicyRow.name_key, PolicyRow.project_id, PolicyRow.group_id).where(
            is_used_by(PolicyRow, [used])
        )
    )
    found = sorted(rows, key=used.distance)
    key = fold(storable(policy_id).strip()) if isinstance(policy_id, str) else None
    named = [row.id for row in found if row.name_key == key]
    wanted = str(policy_id)
    numbered = [row.id for row in found if str(row.id) == wanted]
    if not (named or numbered):
        message = f'Escalation policy "{wanted[:100]}" not found here or in the groups above.'
        raise InvalidError(message, field="escalation_policy_id")
    chosen: int = (named or numbered)[0]
    return chosen


def _shown(work: Work, row: RouteRow) -> AlertRoute:
    return read_routes([row], session=work.session)[0]


def _put(others: list[RouteRow], row: RouteRow, position: int) -> None:
    others.insert(max(position, 1) - 1, row)
    _number(others)


def _number(rows: Sequence[RouteRow]) -> None:
    for position, row in enumerate(rows, 1):
        row.position = position


def _route_stored(work: Work, holder: Holder, row: RouteRow, kind: EventKind) -> AlertRoute:
    work.session.flush()
    route = _shown(work, row)
    _record_route(work, holder, route, kind)
    return route


def _record_route(work: Work, holder: Holder, route: AlertRoute, kind: EventKind) -> None:
    names: Mapping[int, str] = {
        policy.id: policy.name
        for policy in used_policies(
            [lineage_of(holder, session=work.session)], session=work.session
        )
    }
    details = {
        holder.namespace.resource_type: holder.path,
        "route_id": route.id,
        "position": route.position,
        "what": route.sentence(names),
    }
    work.record(kind, subject=route.name, details=details)
