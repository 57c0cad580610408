"""Permissions for the repository of a project, and the audit event for downloads."""

from collections.abc import Mapping
from enum import StrEnum

from sqlalchemy.orm import Session

from domain.access.roles import MINIMUM_ROLES, Ability, Role
from domain.audit.events import Event, EventKind
from domain.core.errors import ForbiddenError, NotFoundError
from domain.git.errors import CredentialsNeededError
from domain.projects.access import PRIVATE, PUBLIC, resolve_project
from domain.projects.views import ProjectView, Viewer
from domain.releases.version import Release


class GitService(StrEnum):
    """A service that a Git client can request, named after the Git program that provides it."""

    #: Service for clones and fetches.
    UPLOAD_PACK = "git-upload-pack"
    #: Service for pushes.
    RECEIVE_PACK = "git-receive-pack"


#: Token scopes that allow the use of a service. One of them is sufficient.
ACCEPTED_SCOPES: Mapping[GitService, tuple[str, ...]] = {
    GitService.UPLOAD_PACK: ("api", "read_repository", "write_repository"),
    GitService.RECEIVE_PACK: ("api", "write_repository"),
}
#: Minimum role that can read the repository of a private project.
MIN_READ_ROLE = MINIMUM_ROLES[Ability.READ_CODE]
#: Minimum role that can push to a repository.
MIN_PUSH_ROLE = Role.DEVELOPER
#: First release that streams the audit events of public downloads without storing them.
_PUBLIC_STREAMING_RELEASE = Release(17, 0)


def can_read_repository(project: ProjectView) -> bool:
    """Return whether a viewer who can see the project may read its files."""
    if project.visibility != PRIVATE:
        return True
    return project.has_ability(Ability.READ_CODE)


def check_can_read_repository(project: ProjectView) -> None:
    """Check that a viewer who can see the project may read its files.

    Raise ForbiddenError otherwise.
    """
    if not can_read_repository(project):
        message = f"You need the {MIN_READ_ROLE.label} role in {project.path} to read its files."
        raise ForbiddenError(message)


def can_push(project: ProjectView) -> bool:
    """Return whether a viewer who can see the project may push."""
    try:
        check_can_push(project)
    except ForbiddenError:
        return False
    return True


def check_can_push(project: ProjectView) -> None:
    """Check that a viewer who can see the project may push.

    This function checks all conditions that make a repository read-only. Raise ForbiddenError if
    the viewer may not push.
    """
    if project.role is None or project.role < MIN_PUSH_ROLE:
        raise ForbiddenError(f"You need the {MIN_PUSH_ROLE.label} role in {project.path} to push.")
    if project.is_archived:
        raise ForbiddenError(f"{project.path} is archived: its repository is read-only.")


def get_project_for_git(
    path: str, service: GitService, viewer: Viewer, *, session: Session
) -> ProjectView:
    """Return the project if the viewer may use the service.

    Raise CredentialsNeededError for anonymous viewers, except for reads of a public project. The
    error does not reveal whether the project exists. Raise NotFoundError or ForbiddenError for
    other viewers.
    """
    if viewer.user_id is None:
        return _get_public_project(path, service, viewer, session=session)
    project = resolve_project(path, viewer, session=session)
    if service is GitService.RECEIVE_PACK:
        check_can_push(project)
    else:
        check_can_read_repository(project)
    return project


def check_can_still_push(project: ProjectView, viewer: Viewer, *, session: Session) -> None:
    """Check that the viewer may still push to this project.

    Raise ForbiddenError or NotFoundError otherwise.
    """
    present = get_project_for_git(project.path, GitService.RECEIVE_PACK, viewer, session=session)
    # SQLite can reuse the ID of a deleted project.
    if (present.id, present.created_at) != (project.id, project.created_at):
        raise NotFoundError(f"{project.path} is now a different project.")


def _get_public_project(
    path: str, service: GitService, viewer: Viewer, *, session: Session
) -> ProjectView:
    needed = "Use an access token as the password, with any username."
    try:
        project = resolve_project(path, viewer, session=session)
    except NotFoundError as error:
        raise CredentialsNeededError(needed) from error
    if service is GitService.RECEIVE_PACK or project.visibility != PUBLIC:
        raise CredentialsNeededError(needed)
    return project


def build_download_event(project: ProjectView, *, release: Release) -> Event:
    """Return the audit event for a download.

    `release` is the running release. As of 17.0, a download from a public project creates a
    `public_repository_download_operation` event, which is streamed but not stored. Any other
    download creates a `repository_download_operation` event, which is stored.
    """
    is_apart = project.visibility == PUBLIC and release >= _PUBLIC_STREAMING_RELEASE
    kind = EventKind.PUBLIC_REPOSITORY_DOWNLOADED if is_apart else EventKind.REPOSITORY_DOWNLOADED
    return Event(
        kind=kind,
        subject=project.path,
        place=project.namespace,
        details={
            "project_id": project.id,
            "visibility": project.visibility,
            "protocol": "http",
            "action": "git-upload-pack",
        },
    )
