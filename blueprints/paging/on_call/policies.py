"""Pages for the escalation policies of projects and groups, with plain-language previews."""

from dataclasses import dataclass, field

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.core.errors import ConflictError
from domain.paging.escalations import actions
from domain.paging.escalations.policies import (
    TargetChoices,
    build_named_steps,
    find_default_policy,
    find_target_choices,
    list_applicable_policies,
    list_own_policies,
)
from domain.paging.escalations.recipients import load_recipients
from domain.paging.escalations.types import EscalationPolicy, NewPolicy, PolicyChange, describe_plan
from domain.projects.row_ownership import find_group_chain
from domain.projects.views import ProjectOrGroup
from forms.escalations import EscalationPolicyForm, build_policy_form
from web.access.decorators import get_current_user, permission_required
from web.extensions import db
from web.http.endpoints import NamespaceBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.form_errors import show_errors_on_next_page
from web.pages.list_query import get_list_query
from web.services import get_current_time, get_settings

escalation_policies = NamespaceBlueprint("escalation_policies", __name__, below="on_call/policies")
_SAVE_ACTION = "save"
_DEFAULT_NAME = "On call"
#: Maximum number of users in a selection list.
_MAX_USER_CHOICES = 200


@dataclass(frozen=True, kw_only=True)
class _PolicyEditor:
    """The form for a policy, with a plain-language preview of the policy."""

    form: EscalationPolicyForm
    choices: TargetChoices
    policy: EscalationPolicy | None = None
    preview: tuple[str, ...] = field(default=())


@escalation_policies.get("")
@permission_required("escalation_policies.index")
def index(holder: ProjectOrGroup) -> ResponseReturnValue:
    """List escalation policies, with a plain-language description of each policy."""
    get_list_query()
    found = list_applicable_policies(
        [find_group_chain(holder, session=db.session())], session=db.session()
    )
    place = holder.namespace
    recipients = load_recipients(
        {(place, True): [policy.plan for policy in found]},
        sends_mail=bool(get_settings().mail_url),
        session=db.session(),
        now=get_current_time(),
    )
    gaps = {policy.id: recipients.find_gaps(place, policy.plan) for policy in found}
    own = holder.path if holder.is_group else None
    return render_template(
        "escalations/policies.html",
        holder=holder,
        policies=[each for each in found if each.group == own],
        above=[each for each in found if each.group != own],
        gaps=gaps,
    )


@escalation_policies.route("/new", methods=["GET", "POST"])
@permission_required("escalation_policies.create")
def new(holder: ProjectOrGroup) -> ResponseReturnValue:
    """Create an escalation policy."""
    form = _build_prefilled_form(holder) or EscalationPolicyForm()
    if not _is_save_request():
        return _render_page(holder, form)
    made = form.run_if_valid(
        lambda: actions.create_policy(get_unit_of_work(), holder, form.build_policy(NewPolicy))
    )
    if made is None:
        return _render_page(holder, form)
    flash(f"Policy {made.name} created. {_CREATED_MESSAGES[made.default]}")
    return _redirect_to_list(holder)


_CREATED_MESSAGES = {
    True: "It applies to new alerts.",
    False: "It applies to new alerts when a route leads to it or it is the default policy.",
}


def _build_prefilled_form(holder: ProjectOrGroup) -> EscalationPolicyForm | None:
    """Return a form with a prefilled first step if the project or group has no policy yet."""
    if request.method == "POST" or list_own_policies(holder, session=db.session()):
        return None
    offered, me = _find_choices(holder), get_current_user().id
    likely = [*offered.schedules, *(each for each in offered.people if each.id == me)]
    step = {"after": "0s", "targets": [each.form_value for each in likely[:1]]}
    used = list_applicable_policies(
        [find_group_chain(holder, session=db.session())], session=db.session()
    )
    is_default = find_default_policy(used) is None
    return EscalationPolicyForm(
        data={"name": _DEFAULT_NAME, "steps": [step], "is_default": is_default}
    )


@escalation_policies.route("/<int:policy_id>", methods=["GET", "POST"])
@permission_required("escalation_policies.change")
def edit(holder: ProjectOrGroup, policy_id: int) -> ResponseReturnValue:
    """Change an escalation policy."""
    policy = actions.show_policy(get_unit_of_work(), holder, policy_id)
    form = build_policy_form(policy)
    if not _is_save_request():
        return _render_page(holder, form, policy)
    changed = form.run_if_valid(
        lambda: actions.change_policy(
            get_unit_of_work(), holder, policy_id, form.build_policy(PolicyChange)
        )
    )
    if changed is None:
        return _render_page(holder, form, policy)
    flash(f"Policy {changed.name} saved.")
    return _redirect_to_list(holder)


@escalation_policies.post("/<int:policy_id>/delete")
@permission_required("escalation_policies.delete")
def delete(holder: ProjectOrGroup, policy_id: int) -> ResponseReturnValue:
    """Delete an escalation policy that no route uses."""
    with show_errors_on_next_page(ConflictError):
        gone = actions.delete_policy(get_unit_of_work(), holder, policy_id)
        flash(f"Policy {gone.name} deleted.")
    return _redirect_to_list(holder)


def _is_save_request() -> bool:
    return request.method == "POST" and request.form.get("do", _SAVE_ACTION) == _SAVE_ACTION


def _render_page(
    holder: ProjectOrGroup, form: EscalationPolicyForm, policy: EscalationPolicy | None = None
) -> ResponseReturnValue:
    action = request.form.get("do", "")
    is_posted = request.method == "POST"
    preview = _describe_policy_form(holder, form) if is_posted and action == "preview" else ()
    if is_posted and action not in {_SAVE_ACTION, "preview", ""}:
        form = form.apply_row_action(action)
    editor = _PolicyEditor(form=form, choices=_find_choices(holder), policy=policy, preview=preview)
    page = render_template("escalations/policy.html", holder=holder, editor=editor)
    return page, 422 if form.errors else 200


def _find_choices(holder: ProjectOrGroup) -> TargetChoices:
    return find_target_choices(
        holder, maximum=_MAX_USER_CHOICES, session=db.session(), today=get_current_time().date()
    )


def _describe_policy_form(holder: ProjectOrGroup, form: EscalationPolicyForm) -> tuple[str, ...]:
    plan = form.run_if_valid(
        lambda: actions.resolve_plan(get_unit_of_work(), holder, form.build_policy(NewPolicy))
    )
    if plan is None:
        return ()
    return describe_plan(plan, build_named_steps(plan, session=db.session()))


def _redirect_to_list(holder: ProjectOrGroup) -> ResponseReturnValue:
    return redirect(url_for("escalation_policies.index", **holder.url_values))
