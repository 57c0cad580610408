"""Pages for the escalation policies of projects and groups, with a preview in words."""

from dataclasses import dataclass, field

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.core.errors import ConflictError
from domain.paging.escalations import actions
from domain.paging.escalations.policies import (
    Choices,
    all_policies,
    choices,
    default_among,
    named_steps,
    used_policies,
)
from domain.paging.escalations.recipients import read_recipients
from domain.paging.escalations.types import EscalationPolicy, NewPolicy, PolicyChange, describe
from domain.projects.owners import lineage_of
from domain.projects.views import Holder
from forms.escalations import EscalationPolicyForm, policy_form_for
from web.access.decorators import get_current_user, permitted
from web.extensions import db
from web.http.endpoints import NamespaceBlueprint
from web.http.work import work
from web.pages.form_errors import refusals_shown
from web.pages.list_query import list_query
from web.services import now, settings

escalation_policies = NamespaceBlueprint("escalation_policies", __name__, below="on_call/policies")
_SAVE = "save"
_FIRST_NAME = "On call"
#: Maximum number of users in a choice list.
_MOST_PEOPLE = 200


@dataclass(frozen=True, kw_only=True)
class _Editor:
    """The form of a policy, with a preview of the policy in words."""

    form: EscalationPolicyForm
    choices: Choices
    policy: EscalationPolicy | None = None
    preview: tuple[str, ...] = field(default=())


@escalation_policies.get("")
@permitted("escalation_policies.index")
def index(holder: Holder) -> ResponseReturnValue:
    """List escalation policies, each described in words."""
    list_query()
    found = used_policies([lineage_of(holder, session=db.session())], session=db.session())
    place = holder.namespace
    recipients = read_recipients(
        {(place, True): [policy.plan for policy in found]},
        sends_mail=bool(settings().mail_url),
        session=db.session(),
        now=now(),
    )
    gaps = {policy.id: recipients.gaps_of(place, policy.plan) for policy in found}
    own = holder.path if holder.is_group else None
    return render_template(
        "escalations/policies.html",
        holder=holder,
        policies=[each for each in found if each.group == own],
        above=[each for each in found if each.group != own],
        gaps=gaps,
    )


@escalation_policies.route("/new", methods=["GET", "POST"])
@permitted("escalation_policies.create")
def new(holder: Holder) -> ResponseReturnValue:
    """Create an escalation policy."""
    form = _first_form(holder) or EscalationPolicyForm()
    if not _is_saved():
        return _page(holder, form)
    made = form.carry_out(lambda: actions.create_policy(work(), holder, form.policy(NewPolicy)))
    if made is None:
        return _page(holder, form)
    flash(f"Policy {made.name} created. {_APPLIES[made.default]}")
    return _to_list(holder)


_APPLIES = {
    True: "It applies to new alerts.",
    False: "It applies to new alerts when a route leads to it or it is the default policy.",
}


def _first_form(holder: Holder) -> EscalationPolicyForm | None:
    """Return a form with a working first step if the project or group has no policy yet."""
    if request.method == "POST" or all_policies(holder, session=db.session()):
        return None
    offered, me = _offered(holder), get_current_user().id
    likely = [*offered.schedules, *(each for each in offered.people if each.id == me)]
    step = {"after": "0s", "targets": [each.text for each in likely[:1]]}
    used = used_policies([lineage_of(holder, session=db.session())], session=db.session())
    is_default = default_among(used) is None
    return EscalationPolicyForm(
        data={"name": _FIRST_NAME, "steps": [step], "is_default": is_default}
    )


@escalation_policies.route("/<int:policy_id>", methods=["GET", "POST"])
@permitted("escalation_policies.change")
def edit(holder: Holder, policy_id: int) -> ResponseReturnValue:
    """Change an escalation policy."""
    policy = actions.show_policy(work(), holder, policy_id)
    form = policy_form_for(policy)
    if not _is_saved():
        return _page(holder, form, policy)
    changed = form.carry_out(
        lambda: actions.change_policy(work(), holder, policy_id, form.policy(PolicyChange))
    )
    if changed is None:
        return _page(holder, form, policy)
    flash(f"Policy {changed.name} saved.")
    return _to_list(holder)


@escalation_policies.post("/<int:policy_id>/delete")
@permitted("escalation_policies.delete")
def delete(holder: Holder, policy_id: int) -> ResponseReturnValue:
    """Delete an escalation policy that no route uses."""
    with refusals_shown(ConflictError):
        gone = actions.delete_policy(work(), holder, policy_id)
        flash(f"Policy {gone.name} deleted.")
    return _to_list(holder)


def _is_saved() -> bool:
    return request.method == "POST" and request.form.get("do", _SAVE) == _SAVE


def _page(
    holder: Holder, form: EscalationPolicyForm, policy: EscalationPolicy | None = None
) -> ResponseReturnValue:
    action = request.form.get("do", "")
    is_posted = request.method == "POST"
    preview = _preview(holder, form) if is_posted and action == "preview" else ()
    if is_posted and action not in {_SAVE, "preview", ""}:
        form = form.changed(action)
    editor = _Editor(form=form, choices=_offered(holder), policy=policy, preview=preview)
    page = render_template("escalations/policy.html", holder=holder, editor=editor)
    return page, 422 if form.errors else 200


def _offered(holder: Holder) -> Choices:
    return choices(holder, most=_MOST_PEOPLE, session=db.session(), today=now().date())


def _preview(holder: Holder, form: EscalationPolicyForm) -> tuple[str, ...]:
    plan = form.carry_out(lambda: actions.read_plan(work(), holder, form.policy(NewPolicy)))
    if plan is None:
        return ()
    return describe(plan, named_steps(plan, session=db.session()))


def _to_list(holder: Holder) -> ResponseReturnValue:
    return redirect(url_for("escalation_policies.index", **holder.url_values))
