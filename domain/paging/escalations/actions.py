"""Actions on escalation policies and alert routes."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError

from domain.access.actions import action, read_action
from domain.access.actor import UnitOfWork
from domain.alerts.formats.base import ParserSettings
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.audit.events import EventKind
from domain.core.database.pagination import MAX_ID
from domain.core.errors import ConflictError, InvalidError, NotFoundError
from domain.core.types.pagination import ListPage
from domain.paging.escalations.locks import schedule_escalations_now
from domain.paging.escalations.policies import (
    build_policies,
    list_applicable_policies,
    lock_policies_and_routes,
    resolve_steps,
)
from domain.paging.escalations.policy_steps import EscalationPlan, check_plan, serialize_steps
from domain.paging.escalations.reporting import dry_run
from domain.paging.escalations.routes import (
    build_routes,
    list_applicable_routes,
    list_own_routes,
    list_route_rows,
    load_routing,
)
from domain.paging.escalations.state import ACTIVE_STATES
from domain.paging.escalations.types import (
    MAX_POLICY_NAME_LENGTH,
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
from domain.projects.escalation_followers import update_escalation_followers
from domain.projects.row_ownership import (
    build_owner_columns,
    build_owner_match_condition,
    build_used_by_condition,
    find_group_chain,
    is_owned_by,
    is_owned_by_self_or_ancestor,
    select_project_ids,
)
from domain.projects.views import ProjectOrGroup
from models import AlertRoute as RouteRow
from models import Escalation, Group, Project
from models import EscalationPolicy as PolicyRow
from models.case_folding import fold_text

#: Maximum number of escalation policies and of routes in a project or group.
MAX_POLICIES = 100
MAX_ROUTES = 100
_ACTIVE_STATE_VALUES = [each.value for each in ACTIVE_STATES]


@read_action("escalation_policies.index")
def list_policies(
    work: UnitOfWork, holder: ProjectOrGroup, query: PolicyQuery
) -> ListPage[EscalationPolicy]:
    """List the escalation policies of a project or group."""
    listed = is_owned_by_self_or_ancestor(
        PolicyRow, holder, with_groups_above=query.include_ancestor_groups, session=work.session
    )
    here = select(PolicyRow).where(listed)
    part = (
        here.order_by(PolicyRow.name_key, PolicyRow.id).offset(query.offset).limit(query.page_size)
    )
    rows = work.session.scalars(part).all()
    total = work.session.scalar(select(func.count()).select_from(here.subquery()))
    return ListPage(items=build_policies(rows, session=work.session), total=total or 0)


@read_action("escalation_policies.show")
def show_policy(work: UnitOfWork, holder: ProjectOrGroup, policy_id: int | str) -> EscalationPolicy:
    """Show an escalation policy.

    `policy_id` is the ID or the name of the policy. Names are not case-sensitive. Raise
    NotFoundError if there is no such policy.
    """
    return build_policies([_get_policy_row(work, holder, policy_id)], session=work.session)[0]


@read_action("escalation_policies.show")
def resolve_plan(work: UnitOfWork, holder: ProjectOrGroup, new: NewPolicy) -> EscalationPlan:
    """Return the plan for a new policy without storing the policy.

    Raise InvalidError if a target cannot be paged, or if a limit is exceeded.
    """
    steps = resolve_steps(work, new.named_steps, holder)
    timeout = new.acknowledgement_timeout
    plan = EscalationPlan(
        steps=steps,
        repeats=new.repeats,
        pause=new.repeat_pause,
        timeout=timeout,
        retriggers=new.retrigger_when_critical,
    )
    check_plan(plan)
    return plan


@action("escalation_policies.create")
def create_policy(work: UnitOfWork, holder: ProjectOrGroup, new: NewPolicy) -> EscalationPolicy:
    """Create an escalation policy.

    The policy applies to new alerts in the project, or in all projects below the group. Raise
    InvalidError if a field is invalid, or ConflictError if the name is taken.
    """
    lock_policies_and_routes(holder, session=work.session)
    plan = resolve_plan(work, holder, new)
    own = build_owner_match_condition(PolicyRow, holder)
    count = work.session.scalar(select(func.count(PolicyRow.id)).where(own)) or 0
    if count >= MAX_POLICIES:
        message = (
            f"{holder.path} already has {MAX_POLICIES} escalation policies, which is the maximum. "
            "Delete a policy first."
        )
        raise InvalidError(message)
    row = PolicyRow(**build_owner_columns(holder), created_at=work.now, updated_at=work.now)
    row.name = _check_name(new.name, "Night")
    _set_policy_fields(work, holder, row, plan, is_default=new.default)
    _store_policy(work, row)
    update_escalation_followers(select_project_ids(holder), session=work.session)
    return _build_and_record_policy(work, holder, row, EventKind.ESCALATION_POLICY_CREATED)


@action("escalation_policies.change")
def change_policy(
    work: UnitOfWork, holder: ProjectOrGroup, policy_id: int | str, change: PolicyChange
) -> EscalationPolicy:
    """Change an escalation policy.

    Omitted fields are kept. Active escalations use the new steps immediately, and continue at the
    same step number. Raise NotFoundError if there is no such policy, InvalidError if a field is
    invalid, or ConflictError if the name is taken.
    """
    lock_policies_and_routes(holder, session=work.session)
    row = _get_policy_row(work, holder, policy_id)
    work.session.refresh(row)
    present = build_policies([row], session=work.session)[0]
    given = change.given_values
    if "steps" in given:
        steps = resolve_steps(work, change.named_steps, holder)
    else:
        steps = present.plan.steps
    plan = EscalationPlan(
        steps=steps,
        repeats=given.get("repeats", present.repeats),
        pause=given.get("repeat_pause", present.plan.pause),
        timeout=given.get("acknowledgement_timeout", present.plan.timeout),
        retriggers=given.get("retrigger_when_critical", present.retrigger_when_critical),
    )
    check_plan(plan)
    with work.session.no_autoflush:
        row.name = _check_name(given.get("name", row.name), "Night")
        _set_policy_fields(
            work, holder, row, plan, is_default=given.get("default", present.default)
        )
    if not work.session.is_modified(row):
        return present
    row.updated_at = work.now
    _store_policy(work, row)
    _make_policy_escalations_due(work, row)
    return _build_and_record_policy(work, holder, row, EventKind.ESCALATION_POLICY_CHANGED)


@action("escalation_policies.delete")
def delete_policy(
    work: UnitOfWork, holder: ProjectOrGroup, policy_id: int | str
) -> EscalationPolicy:
    """Delete an escalation policy.

    Active escalations of the policy start again with another policy that applies to their alerts.
    Return the deleted policy. Raise NotFoundError if there is no such policy. Raise ConflictError
    if a route uses the policy, or if no other policy applies to an alert that it is escalating.
    """
    lock_policies_and_routes(holder, session=work.session)
    row = _get_policy_row(work, holder, policy_id)
    policy = build_policies([row], session=work.session)[0]
    _check_no_route_uses_policy(work, holder, row)
    _check_escalations_have_another_policy(work, row)
    _make_policy_escalations_due(work, row)
    _record_policy_event(work, holder, policy, EventKind.ESCALATION_POLICY_REMOVED)
    work.session.delete(row)
    work.session.flush()
    update_escalation_followers(select_project_ids(holder), session=work.session)
    return policy


def _check_no_route_uses_policy(work: UnitOfWork, holder: ProjectOrGroup, row: PolicyRow) -> None:
    """Check that no route uses the policy.

    Raise ConflictError if a route uses it.
    """
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


def _get_policy_row(work: UnitOfWork, holder: ProjectOrGroup, policy_id: int | str) -> PolicyRow:
    """Return the policy with the given ID or name.

    Names are not case-sensitive. Raise NotFoundError if there is no such policy.
    """
    if isinstance(policy_id, str):
        named = select(PolicyRow).where(
            build_owner_match_condition(PolicyRow, holder),
            PolicyRow.name_key == fold_text(replace_unstorable_characters(policy_id).strip()),
        )
        if (found := work.session.scalar(named)) is not None:
            return found
        if not (policy_id.isascii() and policy_id.isdecimal()):
            message = f"{holder.path} has no escalation policy named {policy_id[:100]}."
            raise NotFoundError(message)
    number = int(policy_id)
    row = work.session.get(PolicyRow, number) if number <= MAX_ID else None
    if row is None or not is_owned_by(row, holder):
        word = holder.namespace.resource_type
        raise NotFoundError(f"Escalation policy not found in this {word}.")
    return row


def _set_policy_fields(
    work: UnitOfWork,
    holder: ProjectOrGroup,
    row: PolicyRow,
    plan: EscalationPlan,
    *,
    is_default: bool,
) -> None:
    if is_default:
        work.session.execute(
            update(PolicyRow)
            .where(
                build_owner_match_condition(PolicyRow, holder),
                PolicyRow.id != (row.id or 0),
                PolicyRow.is_default,
            )
            .values(is_default=False, updated_at=work.now)
        )
    row.is_default = is_default
    row.steps = serialize_steps(plan.steps)
    row.repeats = plan.repeats
    row.repeat_pause = int(plan.pause.total_seconds())
    timeout = plan.timeout
    row.acknowledgement_timeout = int(timeout.total_seconds()) if timeout else None
    row.retrigger_when_critical = plan.retriggers


def _store_policy(work: UnitOfWork, row: PolicyRow) -> None:
    name = row.name
    try:
        with work.session.begin_nested():
            work.session.add(row)
    except IntegrityError as error:
        message = f"An escalation policy named {name} already exists here."
        raise ConflictError(message, field="name") from error


def _check_name(name: str, example: str) -> str:
    kept = replace_unstorable_characters(name).strip()
    if not kept or not kept.isprintable():
        message = f"Enter a name with letters, digits or symbols, such as {example}."
        raise InvalidError(message, field="name")
    if len(kept) > MAX_POLICY_NAME_LENGTH:
        raise InvalidError(
            f"The name can have at most {MAX_POLICY_NAME_LENGTH} characters.", field="name"
        )
    return kept


def _check_escalations_have_another_policy(work: UnitOfWork, row: PolicyRow) -> None:
    """Check that another policy applies to each alert that the policy is escalating.

    Raise ConflictError if no other policy applies to an alert.
    """
    running = (
        select(Escalation.project_id, func.count(Escalation.id))
        .where(Escalation.policy_id == row.id, Escalation.state.in_(_ACTIVE_STATE_VALUES))
        .group_by(Escalation.project_id)
    )
    counts = dict(work.session.execute(running).all())
    routing = load_routing(counts, session=work.session, without=row.id) if counts else {}
    count = sum(counts[each] for each, found in routing.items() if found.has_no_policy)
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


def _make_policy_escalations_due(work: UnitOfWork, row: PolicyRow) -> None:
    """Make the active escalations of a changed or deleted policy due immediately."""
    which = Escalation.policy_id == row.id, Escalation.state.in_(_ACTIVE_STATE_VALUES)
    schedule_escalations_now(*which, session=work.session, now=work.now)


def _build_and_record_policy(
    work: UnitOfWork, holder: ProjectOrGroup, row: PolicyRow, kind: EventKind
) -> EscalationPolicy:
    policy = build_policies([row], session=work.session)[0]
    _record_policy_event(work, holder, policy, kind)
    return policy


def _record_policy_event(
    work: UnitOfWork, holder: ProjectOrGroup, policy: EscalationPolicy, kind: EventKind
) -> None:
    details = {
        holder.namespace.resource_type: holder.path,
        "policy_id": policy.id,
        "steps": policy.summary,
        "default": policy.default,
    }
    work.record_audit_event(kind, subject=policy.name, details=details)


@read_action("alert_routes.index")
def list_routes(
    work: UnitOfWork, holder: ProjectOrGroup, query: RouteQuery
) -> ListPage[AlertRoute]:
    """List the alert routes in the order in which they are applied."""
    if query.include_ancestor_groups:
        found = list_applicable_routes(
            find_group_chain(holder, session=work.session), session=work.session
        )
    else:
        found = list_own_routes(holder, session=work.session)
    return ListPage(items=found[query.offset : query.offset + query.page_size], total=len(found))


@read_action("alert_routes.show")
def show_route(work: UnitOfWork, holder: ProjectOrGroup, route_id: int) -> AlertRoute:
    """Show an alert route.

    Raise NotFoundError if there is no such route.
    """
    return _build_route(work, _get_route_row(work, holder, route_id))


@action("alert_routes.create")
def create_route(work: UnitOfWork, holder: ProjectOrGroup, new: NewRoute) -> AlertRoute:
    """Create an alert route.

    Raise InvalidError if a field is invalid.
    """
    lock_policies_and_routes(holder, session=work.session)
    rows = list_route_rows(holder, session=work.session)
    if len(rows) >= MAX_ROUTES:
        message = (
            f"{holder.path} already has {MAX_ROUTES} routes, which is the maximum. Delete a route "
            "first."
        )
        raise InvalidError(message)
    row = RouteRow(
        **build_owner_columns(holder),
        name=_check_name(new.name, "Production"),
        conditions=new.build_conditions().to_json(),
        policy_id=_resolve_policy_id(work, holder, new.escalation_policy_id),
        position=len(rows) + 1,
        created_at=work.now,
        updated_at=work.now,
    )
    work.session.add(row)
    _insert_route(rows, row, new.position or len(rows) + 1)
    return _build_and_record_route(work, holder, row, EventKind.ALERT_ROUTE_CREATED)


@action("alert_routes.change")
def change_route(
    work: UnitOfWork, holder: ProjectOrGroup, route_id: int, change: RouteChange
) -> AlertRoute:
    """Change an alert route.

    Omitted fields are kept. Raise NotFoundError if there is no such route, or InvalidError if a
    field is invalid.
    """
    lock_policies_and_routes(holder, session=work.session)
    row = _get_route_row(work, holder, route_id)
    present = _build_route(work, row)
    rows = [each for each in list_route_rows(holder, session=work.session) if each.id != row.id]
    row.name = _check_name(change.given_values.get("name", row.name), "Production")
    row.conditions = change.build_conditions(present.conditions).to_json()
    if "escalation_policy_id" in change.given_values:
        row.policy_id = _resolve_policy_id(work, holder, change.escalation_policy_id)
    _insert_route(rows, row, change.given_values.get("position", row.position))
    if _build_route(work, row) == present:
        return present
    row.updated_at = work.now
    return _build_and_record_route(work, holder, row, EventKind.ALERT_ROUTE_CHANGED)


@action("alert_routes.delete")
def delete_route(work: UnitOfWork, holder: ProjectOrGroup, route_id: int) -> AlertRoute:
    """Delete an alert route, and move up the routes below it.

    Return the deleted route. Raise NotFoundError if there is no such route.
    """
    lock_policies_and_routes(holder, session=work.session)
    row = _get_route_row(work, holder, route_id)
    route = _build_route(work, row)
    rows = [each for each in list_route_rows(holder, session=work.session) if each.id != row.id]
    _record_route_event(work, holder, route, EventKind.ALERT_ROUTE_REMOVED)
    work.session.delete(row)
    _renumber_routes(rows)
    work.session.flush()
    return route


@read_action("alert_routes.dry_run")
def show_dry_run(work: UnitOfWork, holder: ProjectOrGroup, asked: DryRunBody) -> AlertRouteDryRun:
    """Show the pages that the current routes and policies would have sent for past alerts.

    Raise InvalidError if the period is too long or in the future.
    """
    since = asked.since
    if asked.days is not None:
        if since is not None:
            raise InvalidError("`since` and `days` cannot be combined. Use one.", field="days")
        since = min(asked.until or work.now, work.now) - timedelta(days=asked.days)
    period = dry_run.build_dry_run_period(since, asked.until, now=work.now)
    return dry_run.simulate_pages(
        holder, period, session=work.session, parser_settings=work.policy(ParserSettings)
    )


def _get_route_row(work: UnitOfWork, holder: ProjectOrGroup, route_id: int) -> RouteRow:
    row = work.session.get(RouteRow, route_id) if route_id <= MAX_ID else None
    if row is None or not is_owned_by(row, holder):
        raise NotFoundError(f"Alert route not found in this {holder.namespace.resource_type}.")
    return row


def _resolve_policy_id(
    work: UnitOfWork, holder: ProjectOrGroup, policy_id: int | str | None
) -> int | None:
    """Return the ID of a policy in the project or group, or in an ancestor group.

    If several policies have the same name, the nearest policy is used. Raise InvalidError if no
    policy is found.
    """
    if policy_id is None:
        return None
    used = find_group_chain(holder, session=work.session)
    rows = work.session.execute(
        select(PolicyRow.id, PolicyRow.name_key, PolicyRow.project_id, PolicyRow.group_id).where(
            build_used_by_condition(PolicyRow, [used])
        )
    )
    found = sorted(rows, key=used.count_levels_to_owner)
    key = (
        fold_text(replace_unstorable_characters(policy_id).strip())
        if isinstance(policy_id, str)
        else None
    )
    named = [row.id for row in found if row.name_key == key]
    wanted = str(policy_id)
    numbered = [row.id for row in found if str(row.id) == wanted]
    if not (named or numbered):
        message = f'Escalation policy "{wanted[:100]}" not found here or in ancestor groups.'
        raise InvalidError(message, field="escalation_policy_id")
    chosen: int = (named or numbered)[0]
    return chosen


def _build_route(work: UnitOfWork, row: RouteRow) -> AlertRoute:
    return build_routes([row], session=work.session)[0]


def _insert_route(others: list[RouteRow], row: RouteRow, position: int) -> None:
    others.insert(max(position, 1) - 1, row)
    _renumber_routes(others)


def _renumber_routes(rows: Sequence[RouteRow]) -> None:
    for position, row in enumerate(rows, 1):
        row.position = position


def _build_and_record_route(
    work: UnitOfWork, holder: ProjectOrGroup, row: RouteRow, kind: EventKind
) -> AlertRoute:
    work.session.flush()
    route = _build_route(work, row)
    _record_route_event(work, holder, route, kind)
    return route


def _record_route_event(
    work: UnitOfWork, holder: ProjectOrGroup, route: AlertRoute, kind: EventKind
) -> None:
    names: Mapping[int, str] = {
        policy.id: policy.name
        for policy in list_applicable_policies(
            [find_group_chain(holder, session=work.session)], session=work.session
        )
    }
    details = {
        holder.namespace.resource_type: holder.path,
        "route_id": route.id,
        "position": route.position,
        "what": route.describe_route(names),
    }
    work.record_audit_event(kind, subject=route.name, details=details)
