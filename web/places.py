"""Where things are, for domain functions that build addresses."""

from domain.alerts.integrations import Place
from domain.projects.views import ProjectView
from web.services import settings


def integration_place(project: ProjectView) -> Place:
    """Return where a project's integrations are; the address comes from the setting."""
    return Place(
        project_id=project.id, project_path=project.path, base_url=settings().base_url
    )
