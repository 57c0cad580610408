"""The project's context for functions that build the URLs of its integrations."""

from domain.alerts.integrations.integrations import (
    IntegrationContext,
    IntegrationView,
    get_integration,
)
from domain.errors import NotFoundError
from domain.projects.views import ProjectView
from web.extensions import db
from web.services import settings


def integration_context(project: ProjectView) -> IntegrationContext:
    """Return the context of a project's integrations, with base URL and tier of the settings."""
    current = settings()
    return IntegrationContext(
        project_id=project.id,
        project_path=project.path,
        base_url=current.base_url,
        allows_several=current.tier != "free",
    )


def integration_of(project: ProjectView, integration_id: int) -> IntegrationView:
    """Return an integration of a project, or raise NotFoundError."""
    return get_integration(integration_id, integration_context(project), session=db.session())


def receiver_of(project: ProjectView, integration_id: int) -> IntegrationView:
    """Return an integration of a project that receives alerts, or raise NotFoundError."""
    integration = integration_of(project, integration_id)
    if not integration.receives:
        raise NotFoundError("A link to an on-call tool does not receive alerts.")
    return integration
