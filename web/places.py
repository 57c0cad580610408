"""Where things are, for domain functions that build addresses."""

from domain.alerts.integrations import Place
from domain.projects.views import ProjectView
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
