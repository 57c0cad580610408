"""Pages for the rules that open incidents from a project's alerts."""

from dataclasses import replace

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.core.database.paging import LARGEST_ID
from domain.incidents import rule_actions as actions
from domain.incidents.rule_engine import STORM_SIZE, STORM_TIME
from domain.incidents.types import IncidentRuleChange, NewIncidentRule
from domain.paging.escalations.policies import Choices, choices
from domain.projects.views import ProjectView
from forms.incidents import IncidentRuleForm
from web.access.decorators import permitted
from web.extensions import db
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.list_query import list_query
from web.services import now

incident_rules = PageBlueprint(
    "incident_rules", __name__, url_prefix="/<names:project_path>/-/incidents/rules"
)
_MOST_PEOPLE = 500
_ONE = f"/<int(max={LARGEST_ID}):rule_id>"


@incident_rules.get("")
@permitted("incident_rules.index")
def index(project: ProjectView) -> ResponseReturnValue:
    """List the rules with a form for a new rule; links can fill in its name and labels."""
    given = list_query("name", "labels")
    return _list_page(project, IncidentRuleForm(formdata=None, **given.to_dict()))


def _list_page(project: ProjectView, form: IncidentRuleForm) -> str:
    return render_template(
        "incidents/rules/index.html",
        project=project,
        rules=actions.list_all_rules(work(), project),
        form=form,
        offered=_offered(project),
        storm_size=STORM_SIZE,
        storm_minutes=int(STORM_TIME.total_seconds() // 60),
    )


def _offered(project: ProjectView) -> Choices:
    """Return the targets that a rule can page; only escalation policies page channels."""
    found = choices(project, most=_MOST_PEOPLE, session=db.session(), today=now().date())
    return replace(found, channels=())


@incident_rules.post("")
@permitted("incident_rules.create")
def create(project: ProjectView) -> ResponseReturnValue:
    """Create a rule."""
    form = IncidentRuleForm()
    made = form.carry_out(
        lambda: actions.create_rule(work(), project, form.entered(NewIncidentRule))
    )
    if made is None:
        return _list_page(project, form), 422
    flash("Rule created. It applies to new alerts.")
    return _to_list(project)


@incident_rules.get(_ONE)
@permitted("incident_rules.change")
def edit(project: ProjectView, rule_id: int) -> ResponseReturnValue:
    """Show the form of a rule."""
    rule = actions.show_rule(work(), project, rule_id)
    return _edit_page(project, rule_id, IncidentRuleForm.of(rule))


def _edit_page(project: ProjectView, rule_id: int, form: IncidentRuleForm) -> str:
    return render_template(
        "incidents/rules/edit.html",
        project=project,
        rule_id=rule_id,
        form=form,
        offered=_offered(project),
    )


@incident_rules.post(_ONE)
@permitted("incident_rules.change")
def change(project: ProjectView, rule_id: int) -> ResponseReturnValue:
    """Change a rule."""
    form = IncidentRuleForm()
    changed = form.carry_out(
        lambda: actions.change_rule(work(), project, rule_id, form.entered(IncidentRuleChange))
    )
    if changed is None:
        return _edit_page(project, rule_id, form), 422
    flash("Rule saved. Incidents that it opened do not change.")
    return _to_list(project)


@incident_rules.post(f"{_ONE}/<any(turn_on, turn_off):action>")
@permitted("incident_rules.change")
def switch(project: ProjectView, rule_id: int, action: str) -> ResponseReturnValue:
    """Turn a rule on or off."""
    change = IncidentRuleChange.model_validate({"active": action == "turn_on"})
    rule = actions.change_rule(work(), project, rule_id, change)
    flash(
        f"The rule “{rule.name}” was turned on. It applies to new alerts."
        if rule.active
        else f"The rule “{rule.name}” was turned off. Incidents that it opened do not change."
    )
    return _to_list(project)


@incident_rules.post(f"{_ONE}/delete")
@permitted("incident_rules.delete")
def delete(project: ProjectView, rule_id: int) -> ResponseReturnValue:
    """Delete an incident rule and keep its incidents."""
    gone = actions.delete_rule(work(), project, rule_id)
    flash(f"The rule “{gone.name}” was deleted. Incidents that it opened are kept.")
    return _to_list(project)


def _to_list(project: ProjectView) -> ResponseReturnValue:
    return redirect(url_for("incident_rules.index", project_path=project.path))
