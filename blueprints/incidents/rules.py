"""The rules of a project that open incidents from alerts."""

from flask import flash, redirect, render_template, url_for
from flask.typing import ResponseReturnValue

from domain.accounts.abilities import Ability
from domain.accounts.roles import Role
from domain.audit.events import EventKind
from domain.database.paging import LARGEST_ID
from domain.errors import InvalidError
from domain.incidents import rules as domain
from domain.incidents.events import rule_event
from domain.incidents.planning import STORM_SIZE, STORM_TIME
from domain.projects.views import ProjectView
from forms.incident import IncidentRuleForm
from web.access.marks import project_member
from web.extensions import db
from web.http.audit_events import record_event
from web.http.endpoints import PageBlueprint
from web.services import now

incident_rules = PageBlueprint(
    "incident_rules", __name__, url_prefix="/<names:project_path>/-/incidents/rules"
)
_ONE = f"/<int(max={LARGEST_ID}):rule_id>"


@incident_rules.get("")
@project_member(at_least=Role.DEVELOPER, ability=Ability.READ_ALERTS)
def index(project: ProjectView) -> ResponseReturnValue:
    """List the rules, with a form for a new one."""
    return _list_page(project, IncidentRuleForm(formdata=None))


def _list_page(project: ProjectView, form: IncidentRuleForm) -> str:
    return render_template(
        "incidents/rules/index.html",
        project=project,
        rules=domain.list_rules(project.id, session=db.session()),
        form=form,
        storm_size=STORM_SIZE,
        storm_minutes=int(STORM_TIME.total_seconds() // 60),
    )


@incident_rules.post("")
@project_member(at_least=Role.MAINTAINER)
def create(project: ProjectView) -> ResponseReturnValue:
    """Create a rule."""
    form = IncidentRuleForm()
    if not form.validate():
        return _list_page(project, form), 422
    try:
        made = domain.create_rule(project.id, form.values, session=db.session(), now=now())
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _list_page(project, form), 422
    record_event(rule_event(EventKind.INCIDENT_RULE_CREATED, made, project.path))
    flash("Rule created. It applies to new alerts.")
    return _to_list(project)


@incident_rules.get(_ONE)
@project_member(at_least=Role.MAINTAINER)
def edit(project: ProjectView, rule_id: int) -> ResponseReturnValue:
    """Show the form of a rule."""
    rule = domain.get_rule(project.id, rule_id, session=db.session())
    return _edit_page(project, rule_id, IncidentRuleForm.of(rule))


def _edit_page(project: ProjectView, rule_id: int, form: IncidentRuleForm) -> str:
    return render_template("incidents/rules/edit.html", project=project, rule_id=rule_id, form=form)


@incident_rules.post(_ONE)
@project_member(at_least=Role.MAINTAINER)
def change(project: ProjectView, rule_id: int) -> ResponseReturnValue:
    """Change a rule."""
    form, session = IncidentRuleForm(), db.session()
    if not form.validate():
        return _edit_page(project, rule_id, form), 422
    try:
        rule = domain.change_rule(project.id, rule_id, form.values, session=session, now=now())
    except InvalidError as error:
        form.object_to(error.field, str(error))
        return _edit_page(project, rule_id, form), 422
    record_event(rule_event(EventKind.INCIDENT_RULE_CHANGED, rule, project.path))
    flash("Rule saved. Incidents that it opened do not change.")
    return _to_list(project)


@incident_rules.post(f"{_ONE}/<any(turn_on, turn_off):action>")
@project_member(at_least=Role.MAINTAINER)
def switch(project: ProjectView, rule_id: int, action: str) -> ResponseReturnValue:
    """Turn a rule on or off."""
    rule = domain.switch_rule(
        project.id, rule_id, is_active=action == "turn_on", session=db.session(), now=now()
    )
    record_event(rule_event(EventKind.INCIDENT_RULE_CHANGED, rule, project.path))
    flash(
        f"The rule “{rule.name}” was turned on. It applies to new alerts."
        if rule.is_active
        else f"The rule “{rule.name}” was turned off. Incidents that it opened do not change."
    )
    return _to_list(project)


@incident_rules.post(f"{_ONE}/delete")
@project_member(at_least=Role.MAINTAINER)
def delete(project: ProjectView, rule_id: int) -> ResponseReturnValue:
    """Delete a rule; incidents that it opened are kept."""
    gone = domain.delete_rule(project.id, rule_id, session=db.session())
    record_event(rule_event(EventKind.INCIDENT_RULE_REMOVED, gone, project.path))
    flash(f"The rule “{gone.name}” was deleted. Incidents that it opened are kept.")
    return _to_list(project)


def _to_list(project: ProjectView) -> ResponseReturnValue:
    return redirect(url_for("incident_rules.index", project_path=project.path))
