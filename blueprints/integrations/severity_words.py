"""The table of severity words of an integration, and the button that adds one to it."""

from flask import flash, redirect, url_for
from flask.typing import ResponseReturnValue

from domain.alerts.integrations import mapping_actions as actions
from domain.errors import InvalidError
from domain.projects.views import ProjectView
from forms.integrations import SeverityWordForm, SeverityWordsForm
from web.access.marks import permitted
from web.http.endpoints import PageBlueprint
from web.http.work import work
from web.pages.refusals import refusals_shown

severity_words = PageBlueprint(
    "severity_words",
    __name__,
    url_prefix="/<names:project_path>/-/settings/integrations/<int:integration_id>/severity_words",
)


@severity_words.post("")
@permitted("alert_mappings.change")
def save(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Replace the table."""
    with refusals_shown(InvalidError, ValueError):
        table = SeverityWordsForm().table
        actions.save_severity_words(work(), project, integration_id, table)
        flash("Severity words saved. They apply to new deliveries.")
    return _back(project, integration_id)


@severity_words.post("/add")
@permitted("alert_mappings.change")
def add(project: ProjectView, integration_id: int) -> ResponseReturnValue:
    """Add a word, or change what one stands for."""
    form = SeverityWordForm()
    word, severity = form.word.data or "", form.severity.data
    try:
        actions.add_severity_word(work(), project, integration_id, word, severity)
    except InvalidError as error:
        flash(str(error), "error")
        return _back(project, integration_id)
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
