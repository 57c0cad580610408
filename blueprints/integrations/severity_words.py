"""The table of severity words of an integration, and the button that adds one to it."""

from flask import flash, redirect, url_for
from flask.typing import ResponseReturnValue

from domain.access.abilities import Ability
from domain.access.roles import Role
from domain.alerts.integrations.samples import save_severity_words
from domain.errors import InvalidError
from domain.projects.views import ProjectView
from forms.mapping import SeverityWordForm, SeverityWordsForm
from web.access.marks import project_member
from web.alerts.integration_audit import record_change
from web.alerts.integration_context import receiver_of
from web.extensions import db
from web.http.endpoints import PageBlueprint

severity_words = PageBlueprint(
    "severity_words",
    __name__,
    url_prefix="/<names:project_path>/-/settings/integrations/<int:integration_id>/severity_words",
)


@severity_words.post("")
@project_member(at_least=Role.MAINTAINER, ability=Ability.ADMIN_INTEGRATIONS)
def save(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Replace the table."""
    integration, form = receiver_of(project, integration_id), SeverityWordsForm()
    try:
        save_severity_words(integration.id, form.table, session=db.session())
    except (InvalidError, ValueError) as error:
        flash(str(error), "error")
        return _back(project, integration_id)
    record_change("severity words saved", project, integration)
    flash("Severity words saved. They apply to new deliveries.")
    return _back(project, integration_id)


@severity_words.post("/add")
@project_member(at_least=Role.MAINTAINER, ability=Ability.ADMIN_INTEGRATIONS)
def add(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Add a word, or change what one stands for."""
    integration, form = receiver_of(project, integration_id), SeverityWordForm()
    word, severity = form.word.data or "", form.severity.data
    words = {**integration.mapping.rules.severity_words, word: severity}
    try:
        save_severity_words(integration.id, words, session=db.session())
    except InvalidError as error:
        flash(str(error), "error")
        return _back(project, integration_id)
    record_change("severity word added", project, integration)
    flash(f"“{word}” is {severity} from now on. Send deliveries again to apply it to them.")
    url = url_for("deliveries.index", project_path=project.path, integration_id=integration_id)
    return redirect(url)


def _back(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    url = url_for(
        "integration_settings.configure",
        project_path=project.path,
        integration_id=integration_id,
        _anchor="severity-words",
    )
    return redirect(url)
