"""Functions that find projects and groups for commands by path."""

from contextlib import suppress

from domain.core.errors import NotFoundError
from domain.projects.access import resolve_group, resolve_project
from domain.projects.views import ProjectOrGroup, ProjectView, Viewer
from web.extensions import db

#: Viewer of the command line, which has all permissions.
COMMAND_LINE_VIEWER = Viewer(user_id=None, is_admin=True)


def get_project_by_path(path: str) -> ProjectView:
    """Return the project with this current or previous path.

    Raise NotFoundError if there is no such project.
    """
    return resolve_project(path, COMMAND_LINE_VIEWER, session=db.session())


def get_namespace_by_path(path: str) -> ProjectOrGroup:
    """Return the project or group with this current or previous path.

    Raise NotFoundError if there is no such project or group.
    """
    with suppress(NotFoundError):
        return get_project_by_path(path)
    with suppress(NotFoundError):
        return resolve_group(path, COMMAND_LINE_VIEWER, session=db.session())
    message = f'Group or project "{path}" not found.'
    raise NotFoundError(message)
