"""Creates the integrations of an export."""

from collections.abc import Iterable

from domain.alerts.integrations.actions import create_integration
from domain.alerts.integrations.integrations import list_integrations
from domain.alerts.integrations.types import NewIntegration
from domain.errors import DomainError
from domain.importing.plan import ImportedIntegration
from domain.projects.views import ProjectView
from domain.types.reading import read_body
from models.folding import fold
from web.http.work import work
from web.importing.report import Entry, Outcome
from web.importing.target_projects import Places


def import_integrations(found: Iterable[ImportedIntegration], places: Places) -> list[Entry]:
    """Create the integrations that are not there; return what became of each.

    Those that are new have their URL and key, which senders have to be given.
    """
    entries = []
    for integration in found:
        project = places.of(integration.team)
        if project is None:
            entries.append(places.without("integration", integration.name, integration.team))
            continue
        entry = Entry(
            kind="integration",
            name=integration.name,
            outcome=Outcome.EXISTS,
            project=project.path,
        )
        entries.append(entry)
        present = list_integrations(work(), project)
        if fold(integration.name.strip()) not in {fold(each.name) for each in present}:
            _create(integration, project, entry)
    return entries


def _create(integration: ImportedIntegration, project: ProjectView, entry: Entry) -> None:
    unit, kind = work(), integration.type
    given = {
        "type": kind.name,
        "name": integration.name.strip(),
        "active": integration.is_active,
    }
    try:
        with unit.session.begin_nested():
            made = create_integration(unit, project, read_body(NewIntegration, given))
    except DomainError as error:
        entry.outcome = Outcome.LEFT_OUT
        entry.notes.append(str(error))
        return
    entry.outcome = Outcome.CREATED
    entry.notes += integration.notes
    entry.details = {"type": kind.name, "url": made.url, "key": made.key}
