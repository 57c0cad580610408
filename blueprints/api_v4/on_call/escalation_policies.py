"""/api/v4/projects/:id/escalation_policies: whom alerts page, and after how long."""

from flask import Blueprint

from domain.escalations import policies as domain
from domain.escalations.policies import PolicyEdit
from domain.projects.views import ProjectView
from web.alerts.escalations import (
    WrittenPlan,
    change_policy,
    create_policy,
    delete_policy,
    read_plan,
)
from web.api.operations import Found, operation
from web.api.schemas.on_call.escalation_policies import (
    EscalationPolicy,
    EscalationPolicyBody,
    EscalationPolicyChange,
    EscalationPolicyQuery,
    read_steps,
)
from web.extensions import db

escalation_policies = Blueprint(
    "escalation_policies", __name__, url_prefix="/projects/<path:reference>/escalation_policies"
)


@escalation_policies.get("")
@operation("escalation_policies.index", query=EscalationPolicyQuery, returns=EscalationPolicy)
def index(project: ProjectView, query: EscalationPolicyQuery) -> Found[EscalationPolicy]:
    """List escalation policies."""
    found, total = domain.list_policies(
        project.id, offset=query.offset, limit=query.size, session=db.session()
    )
    return Found(items=[EscalationPolicy.of(each) for each in found], total=total)


@escalation_policies.get("/<int:policy_id>")
@operation("escalation_policies.show", returns=EscalationPolicy)
def show(project: ProjectView, policy_id: int) -> EscalationPolicy:
    """Show an escalation policy."""
    return EscalationPolicy.of(domain.get_policy(project.id, policy_id, session=db.session()))


@escalation_policies.post("")
@operation(
    "escalation_policies.create", body=EscalationPolicyBody, returns=EscalationPolicy, status=201
)
def create(project: ProjectView, body: EscalationPolicyBody) -> EscalationPolicy:
    """Create an escalation policy."""
    written = WrittenPlan(
        steps=read_steps(body.steps), repeats=body.repeats, pause=body.repeat_pause
    )
    return EscalationPolicy.of(create_policy(project, body.name, written, is_default=body.default))


@escalation_policies.put("/<int:policy_id>")
@operation("escalation_policies.change", body=EscalationPolicyChange, returns=EscalationPolicy)
def change(project: ProjectView, policy_id: int, body: EscalationPolicyChange) -> EscalationPolicy:
    """Change an escalation policy; omitted fields are kept."""
    present = domain.get_policy(project.id, policy_id, session=db.session()).plan
    written = WrittenPlan(
        steps=None if body.steps is None else read_steps(body.steps),
        repeats=body.repeats,
        pause=body.repeat_pause,
    )
    plan = read_plan(project, written, present)
    edit = PolicyEdit(name=body.name, plan=plan, is_default=body.default)
    return EscalationPolicy.of(change_policy(project, policy_id, edit))


@escalation_policies.delete("/<int:policy_id>")
@operation("escalation_policies.delete")
def delete(project: ProjectView, policy_id: int) -> None:
    """Delete an escalation policy that no route leads to; its escalations end."""
    delete_policy(project, policy_id)
