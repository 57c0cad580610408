"""Pages for the rules that open incidents from a project's alerts."""

from dataclasses import replace

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.core.database.pagination import MAX_ID
from domain.incidents import rule_actions as actions
from domain.incidents.rule_decisions import STORM_SIZE, STORM_TIME
from domain.incidents.types import IncidentRuleChange, NewIncidentRule
from domain.paging.escalations.policies import TargetChoices, find_target_choices
from domain.projects.views import ProjectView
from forms.incidents import IncidentRuleForm
from web.access.decorators import permission_required
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.unit_of_work import get_unit_of_work
from web.pages.list_query import get_list_query
from web.services import get_current_time

incident_rules = PageBlueprint(
    "incident_rules", __name__, url_prefix="/<names:project_path>/-/incidents/rules"
)
_MAX_RESPONDER_CHOICES = 500
_RULE_PATH = f"/<int(max={MAX_ID}):rule_id>"


@incident_rules.get("")
@permission_required("incident_rules.index")
def index(project: ProjectView) -> ResponseReturnValue:
    """List the rules, with a form for a new rule. Links can prefill the name and the labels."""
    given = get_list_query("name", "labels")
    return _render_list_page(project, IncidentRuleForm(formdata=None, **given.to_dict()))


def _render_list_page(project: ProjectView, form: IncidentRuleForm) -> str:
    return render_template(
        "incidents/rules/index.html",
        project=project,
        rules=actions.list_all_rules(get_unit_of_work(), project),
        form=form,
        offered=_list_responder_choices(project),
        storm_size=STORM_SIZE,
        storm_minutes=int(STORM_TIME.total_seconds() // 60),
    )


def _list_responder_choices(project: ProjectView) -> TargetChoices:
    """Return the users and schedules that a rule can page.

    Channels are not included, because only escalation policies page channels.
    """
    found = find_target_choices(
        project,
        maximum=_MAX_RESPONDER_CHOICES,
        session=db.session(),
        today=get_current_time().date(),
    )
    return replace(found, channels=())


@incident_rules.post("")
@permission_required("incident_rules.create")
def create(project: ProjectView) -> ResponseReturnValue:
    """Create a rule that opens incidents."""
    form = IncidentRuleForm()
    made = form.run_if_valid(
        lambda: actions.create_rule(get_unit_of_work(), project, form.build_body(NewIncidentRule))
    )
    if made is None:
        return _render_list_page(project, form), 422
    flash("Rule created. It applies to new alerts.")
    return _redirect_to_list(project)


@incident_rules.get(_RULE_PATH)
@permission_required("incident_rules.change")
def edit(project: ProjectView, rule_id: int) -> ResponseReturnValue:
    """Show the form to change a rule."""
    rule = actions.show_rule(get_unit_of_work(), project, rule_id)
    return _render_edit_page(project, rule_id, IncidentRuleForm.from_rule(rule))


def _render_edit_page(project: ProjectView, rule_id: int, form: IncidentRuleForm) -> str:
    return render_template(
        "incidents/rules/edit.html",
        project=project,
        rule_id=rule_id,
        form=form,
        offered=_list_responder_choices(project),
    )


@incident_rules.post(_RULE_PATH)
@permission_required("incident_rules.change")
def change(project: ProjectView, rule_id: int) -> ResponseReturnValue:
    """Change an incident rule."""
    form = IncidentRuleForm()
    changed = form.run_if_valid(
        lambda: actions.change_rule(
            get_unit_of_work(), project, rule_id, form.build_body(IncidentRuleChange)
        )
    )
    if changed is None:
        return _render_edit_page(project, rule_id, form), 422
    flash("Rule saved. Incidents that it opened do not change.")
    return _redirect_to_list(project)


@incident_rules.post(f"{_RULE_PATH}/<any(turn_on, turn_off):action>")
@permission_required("incident_rules.change")
def switch(project: ProjectView, rule_id: int, action: str) -> ResponseReturnValue:
    """Turn a rule on or off."""
    change = IncidentRuleChange.model_validate({"active": action == "turn_on"})
    rule = actions.change_rule(get_unit_of_work(), project, rule_id, change)
    flash(
        f"The rule “{rule.name}” was turned on. It applies to new alerts."
        if rule.active
        else f"The rule “{rule.name}” was turned off. Incidents that it opened do not change."
    )
    return _redirect_to_list(project)


@incident_rules.post(f"{_RULE_PATH}/delete")
@permission_required("incident_rules.delete")
def delete(project: ProjectView, rule_id: int) -> ResponseReturnValue:
    """Delete an incident rule and keep its incidents."""
    gone = actions.delete_rule(get_unit_of_work(), project, rule_id)
    flash(f"The rule “{gone.name}” was deleted. Incidents that it opened are kept.")
    return _redirect_to_list(project)


def _redirect_to_list(project: ProjectView) -> ResponseReturnValue:
    return redirect(url_for("incident_rules.index", project_path=project.path))
