"""Paths and calls that several entries of the schedule share."""

from domain.releases.changes import Call

API = "/api/v4"
GROUP = f"{API}/groups/:id"
PROJECT = f"{API}/projects/:id"
PROJECT_LISTS = (f"{API}/projects", f"{GROUP}/projects", f"{API}/users/:id/projects")
SETTINGS = f"{API}/application/settings"
#: Replacement for the registration of runners with a registration token.
REGISTRATION_ENDED = (
    "Create the runner first, and register it with its runner authentication token."
)
_PROJECT_WRITES = (
    Call(methods=("POST",), path=f"{API}/projects"),
    Call(methods=("PUT",), path=PROJECT),
)


def project_attribute(name: str) -> tuple[Call, ...]:
    """Return the calls that show or set an attribute of a project."""
    shown = (
        *(Call(methods=("GET",), path=path, fields=(name,)) for path in PROJECT_LISTS),
        *(
            Call(methods=("POST",), path=f"{PROJECT}/{action}", fields=(name,))
            for action in ("archive", "unarchive")
        ),
        Call(methods=("GET",), path=PROJECT, fields=(name,)),
        Call(methods=("PUT",), path=f"{PROJECT}/transfer", fields=(name,)),
    )
    set_by = tuple(
        Call(methods=each.methods, path=each.path, fields=(name,), attributes=(name,))
        for each in _PROJECT_WRITES
    )
    return shown + set_by


def setting(name: str) -> tuple[Call, ...]:
    """Return the calls that show or set a setting of the instance."""
    return (
        Call(methods=("GET",), path=SETTINGS, fields=(name,)),
        Call(methods=("PUT",), path=SETTINGS, fields=(name,), attributes=(name,)),
    )
