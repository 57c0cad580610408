"""The audit event of a clone or a fetch."""

from domain.audit.events import Event, EventKind
from domain.projects.access import PUBLIC
from domain.projects.views import ProjectView
from domain.releases.version import Release

#: From this release on, downloads of public projects are streamed only.
_PUBLIC_APART = Release(17, 0)


def download_event(project: ProjectView, *, release: Release) -> Event:
    """Return the event of a download; `release` is the running one, whatever a request rehearses.

    Before 17.0 the event of every project is `repository_download_operation`, which is stored.
    """
    is_apart = project.visibility == PUBLIC and release >= _PUBLIC_APART
    kind = EventKind.PUBLIC_REPOSITORY_DOWNLOADED if is_apart else EventKind.REPOSITORY_DOWNLOADED
    return Event(
        kind=kind,
        subject=project.path,
        details={
            "project_id": project.id,
            "visibility": project.visibility,
            "protocol": "http",
            "action": "git-upload-pack",
        },
    )
