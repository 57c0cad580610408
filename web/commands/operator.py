"""The operator, who has all permissions, and what commands are told to find."""

from domain.projects.access import follow_to_project
from domain.projects.views import ProjectView, Viewer
from web.extensions import db

#: The command line has all permissions.
OPERATOR = Viewer(user_id=None, is_admin=True)


def project_at(path: str) -> ProjectView:
    """Return the project of a path, also of a former one, or raise NotFoundError."""
    return follow_to_project(path, OPERATOR, session=db.session())
