"""Where things are, for domain functions that build addresses, and for several views."""

from domain.alerts.integrations.integrations import (
    IntegrationRow,
    IntegrationView,
    Place,
    get_integration,
    view,
)
from domain.projects.views import ProjectView
from web.extensions import db
from web.services import settings


def integration_place(project: ProjectView) -> Place:
    """Return where a project's integrations are; the address comes from the setting."""
    current = settings()
    return Place(
        project_id=project.id,
        project_path=project.path,
        base_url=current.base_url,
        allows_several=current.tier != "free",
    )


def integration_of(project: ProjectView, integration_id: int) -> IntegrationRow:
    """Return an integration of a project, or raise NotFoundError."""
    return get_integration(integration_id, project_id=project.id, session=db.session())


def shown(integration: IntegrationRow, project: ProjectView) -> IntegrationView:
    """Return an integration as pages show it."""
    return view(integration, integration_place(project), session=db.session())
