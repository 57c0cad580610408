"""Creates the integrations of an export."""

from collections.abc import Iterable

from domain.alerts.integrations.integrations import (
    IntegrationDetails,
    create_integration,
    list_integrations,
)
from domain.errors import DomainError
from domain.importing.plan import ImportedIntegration
from domain.projects.views import ProjectView
from models.folding import fold
from web.alerts.integration_audit import record_change
from web.alerts.integration_context import integration_context
from web.extensions import db
from web.importing.report import Entry, Outcome
from web.importing.target_projects import Places
from web.services import now, services


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
        present = list_integrations(integration_context(project), session=db.session())
        if fold(integration.name.strip()) not in {fold(each.name) for each in present}:
            _create(integration, project, entry)
    return entries


def _create(integration: ImportedIntegration, project: ProjectView, entry: Entry) -> None:
    session, kind = db.session(), integration.type
    details = IntegrationDetails(name=integration.name.strip(), active=integration.is_active)
    try:
        with session.begin_nested():
            made, key = create_integration(
                integration_context(project),
                kind,
                details,
                session=session,
                keyring=services().keyring,
                now=now(),
            )
    except DomainError as error:
        entry.outcome = Outcome.LEFT_OUT
        entry.notes.append(str(error))
        return
    record_change("created", project, made)
    entry.outcome = Outcome.CREATED
    entry.notes += integration.notes
    entry.details = {"type": kind.name, "url": made.url, "key": key}
