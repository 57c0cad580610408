"""/<project>/-/on_call/policies: escalation policies, with a preview in words."""

from dataclasses import dataclass, field

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.errors import ConflictError
from domain.escalations import actions
from domain.escalations.policies import Choices, all_policies, choices, named_steps
from domain.escalations.recipients import read_recipients
from domain.escalations.types import EscalationPolicy, NewPolicy, PolicyChange, describe
from domain.projects.views import ProjectView
from forms.escalations import EscalationPolicyForm, policy_form_for
from web.access.marks import get_current_user, permitted
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.list_query import list_query
from web.pages.refusals import refusals_shown
from web.services import now, settings

escalation_policies = PageBlueprint(
    "escalation_policies", __name__, url_prefix="/<names:project_path>/-/on_call/policies"
)
_SAVE = "save"
_FIRST_NAME = "On call"
#: People in a list of choices.
_MOST_PEOPLE = 200


@dataclass(frozen=True, kw_only=True)
class _Editor:
    """The form of a policy, and the preview of what it says."""

    form: EscalationPolicyForm
    choices: Choices
    policy: EscalationPolicy | None = None
    preview: tuple[str, ...] = field(default=())


@escalation_policies.get("")
@permitted("escalation_policies.index")
def index(project: ProjectView) -> ResponseReturnValue:
    """List escalation policies, each in words."""
    list_query()
    found = all_policies(project.id, session=db.session())
    recipients = read_recipients(
        {(project.id, True): [policy.plan for policy in found]},
        sends_mail=bool(settings().mail_url),
        session=db.session(),
        now=now(),
    )
    gaps = {policy.id: recipients.gaps_of(project.id, policy.plan) for policy in found}
    return render_template("escalations/policies.html", project=project, policies=found, gaps=gaps)


@escalation_policies.route("/new", methods=["GET", "POST"])
@permitted("escalation_policies.create")
def new(project: ProjectView) -> ResponseReturnValue:
    """Create an escalation policy."""
    form = _first_form(project) or EscalationPolicyForm()
    if not _is_saved():
        return _page(project, form)
    made = form.carry_out(lambda: actions.create_policy(work(), project, form.policy(NewPolicy)))
    if made is None:
        return _page(project, form)
    flash(f"Policy {made.name} created. {_APPLIES[made.default]}")
    return _to_list(project)


_APPLIES = {
    True: "It applies to new alerts.",
    False: "It applies to new alerts once a route leads to it, or once it is the default policy.",
}


def _first_form(project: ProjectView) -> EscalationPolicyForm | None:
    """Return a form that pages somebody as it is, if the project has no policy yet."""
    if request.method == "POST" or all_policies(project.id, session=db.session()):
        return None
    offered, me = _offered(project), get_current_user().id
    likely = [*offered.schedules, *(each for each in offered.people if each.id == me)]
    step = {"after": "0s", "targets": [each.text for each in likely[:1]]}
    return EscalationPolicyForm(data={"name": _FIRST_NAME, "steps": [step], "is_default": True})


@escalation_policies.route("/<int:policy_id>", methods=["GET", "POST"])
@permitted("escalation_policies.change")
def edit(project: ProjectView, policy_id: int) -> ResponseReturnValue:
    """Change an escalation policy."""
    policy = actions.show_policy(work(), project, policy_id)
    form = policy_form_for(policy)
    if not _is_saved():
        return _page(project, form, policy)
    changed = form.carry_out(
        lambda: actions.change_policy(work(), project, policy_id, form.policy(PolicyChange))
    )
    if changed is None:
        return _page(project, form, policy)
    flash(f"Policy {changed.name} saved.")
    return _to_list(project)


@escalation_policies.post("/<int:policy_id>/delete")
@permitted("escalation_policies.delete")
def delete(project: ProjectView, policy_id: int) -> ResponseReturnValue:
    """Delete an escalation policy that no route leads to."""
    with refusals_shown(ConflictError):
        gone = actions.delete_policy(work(), project, policy_id)
        flash(f"Policy {gone.name} deleted.")
    return _to_list(project)


def _is_saved() -> bool:
    return request.method == "POST" and request.form.get("do", _SAVE) == _SAVE


def _page(
    project: ProjectView, form: EscalationPolicyForm, policy: EscalationPolicy | None = None
) -> ResponseReturnValue:
    action = request.form.get("do", "")
    is_posted = request.method == "POST"
    preview = _preview(project, form) if is_posted and action == "preview" else ()
    if is_posted and action not in {_SAVE, "preview", ""}:
        form = form.changed(action)
    editor = _Editor(form=form, choices=_offered(project), policy=policy, preview=preview)
    page = render_template("escalations/policy.html", project=project, editor=editor)
    return page, 422 if form.errors else 200


def _offered(project: ProjectView) -> Choices:
    return choices(project.namespace, most=_MOST_PEOPLE, session=db.session(), today=now().date())


def _preview(project: ProjectView, form: EscalationPolicyForm) -> tuple[str, ...]:
    plan = form.carry_out(lambda: actions.read_plan(work(), project, form.policy(NewPolicy)))
    if plan is None:
        return ()
    return describe(plan, named_steps(plan, session=db.session()))


def _to_list(project: ProjectView) -> ResponseReturnValue:
    return redirect(url_for("escalation_policies.index", project_path=project.path))
