"""/<project>/-/on_call/policies: escalation policies, with a preview in words."""

from dataclasses import dataclass, field

from flask import flash, redirect, render_template, request, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.abilities import Ability
from domain.accounts.roles import Role
from domain.errors import ConflictError, InvalidError
from domain.escalations import policies as domain
from domain.escalations.policies import PolicyEdit, PolicyView
from domain.escalations.recipients import read_recipients
from domain.escalations.targets import Choices, choices
from domain.projects.views import ProjectView
from forms.escalation_policy import EscalationPolicyForm, form_for
from web.access.marks import get_current_user, project_member
from web.alerts.escalations import (
    WrittenPlan,
    change_policy,
    create_policy,
    delete_policy,
    read_plan,
)
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.pages.list_query import list_query
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
    policy: PolicyView | None = None
    preview: tuple[str, ...] = field(default=())


@escalation_policies.get("")
@project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS)
def index(project: ProjectView) -> ResponseReturnValue:
    """List escalation policies, each in words."""
    list_query()
    found = domain.all_policies(project.id, session=db.session())
    recipients = read_recipients(
        {(project.id, True): [policy.plan for policy in found]},
        sends_mail=bool(settings().mail_url),
        session=db.session(),
        now=now(),
    )
    gaps = {policy.id: recipients.gaps_of(project.id, policy.plan) for policy in found}
    return render_template("escalations/policies.html", project=project, policies=found, gaps=gaps)


@escalation_policies.route("/new", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def new(project: ProjectView) -> ResponseReturnValue:
    """Create an escalation policy."""
    form = _first_form(project) or EscalationPolicyForm()
    if not _is_saved(form):
        return _page(project, form)
    try:
        made = create_policy(
            project, form.name.data or "", _written(form), is_default=form.is_default.data
        )
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _page(project, form)
    flash(f"Policy {made.name} created. {_APPLIES[made.is_default]}")
    return _to_list(project)


_APPLIES = {
    True: "It applies to new alerts.",
    False: "It applies to new alerts once a route leads to it, or once it is the default policy.",
}


def _first_form(project: ProjectView) -> EscalationPolicyForm | None:
    """Return a form that pages somebody as it is, if the project has no policy yet."""
    if request.method == "POST" or domain.all_policies(project.id, session=db.session()):
        return None
    offered, me = _offered(project), get_current_user().id
    likely = [*offered.schedules, *(each for each in offered.people if each.id == me)]
    step = {"after": "0s", "targets": [f"{each.kind.value}:{each.id}" for each in likely[:1]]}
    return EscalationPolicyForm(data={"name": _FIRST_NAME, "steps": [step], "is_default": True})


@escalation_policies.route("/<int:policy_id>", methods=["GET", "POST"])
@project_member(at_least=Role.MAINTAINER)
def edit(project: ProjectView, policy_id: int) -> ResponseReturnValue:
    """Change an escalation policy."""
    policy = domain.get_policy(project.id, policy_id, session=db.session())
    form = form_for(policy)
    if not _is_saved(form):
        return _page(project, form, policy)
    try:
        plan = read_plan(project, _written(form))
        edited = PolicyEdit(name=form.name.data, plan=plan, is_default=form.is_default.data)
        changed = change_policy(project, policy_id, edited)
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _page(project, form, policy)
    flash(f"Policy {changed.name} saved.")
    return _to_list(project)


@escalation_policies.post("/<int:policy_id>/delete")
@project_member(at_least=Role.MAINTAINER)
def delete(project: ProjectView, policy_id: int) -> ResponseReturnValue:
    """Delete an escalation policy that no route leads to."""
    try:
        gone = delete_policy(project, policy_id)
    except ConflictError as error:
        flash(str(error), "error")
    else:
        flash(f"Policy {gone.name} deleted.")
    return _to_list(project)


def _is_saved(form: EscalationPolicyForm) -> bool:
    return request.form.get("do", _SAVE) == _SAVE and form.validate_on_submit()


def _written(form: EscalationPolicyForm) -> WrittenPlan:
    return WrittenPlan(
        steps=form.named_steps, repeats=form.repeats.data, pause=form.repeat_pause.data
    )


def _page(
    project: ProjectView, form: EscalationPolicyForm, policy: PolicyView | None = None
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
    if not form.validate():
        return ()
    try:
        plan = read_plan(project, _written(form))
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return ()
    return domain.describe(plan, domain.named_steps(plan, session=db.session()))


def _to_list(project: ProjectView) -> ResponseReturnValue:
    return redirect(url_for("escalation_policies.index", project_path=project.path))
