"""Paths and calls that several entries in the schedule share."""

from domain.releases.changes import CallPattern

API_PATH = "/api/v4"
GROUP_PATH = f"{API_PATH}/groups/:id"
PROJECT_PATH = f"{API_PATH}/projects/:id"
PROJECT_LIST_PATHS = (
    f"{API_PATH}/projects",
    f"{GROUP_PATH}/projects",
    f"{API_PATH}/users/:id/projects",
)
SETTINGS_PATH = f"{API_PATH}/application/settings"
#: Text about the replacement for registering runners with a registration token.
REGISTRATION_REPLACEMENT = (
    "Create the runner first, and register it with its runner authentication token."
)
_PROJECT_WRITES = (
    CallPattern(methods=("POST",), path=f"{API_PATH}/projects"),
    CallPattern(methods=("PUT",), path=PROJECT_PATH),
)


def build_project_attribute_calls(name: str) -> tuple[CallPattern, ...]:
    """Return the calls that show or set an attribute of a project."""
    shown = (
        *(CallPattern(methods=("GET",), path=path, fields=(name,)) for path in PROJECT_LIST_PATHS),
        *(
            CallPattern(methods=("POST",), path=f"{PROJECT_PATH}/{action}", fields=(name,))
            for action in ("archive", "unarchive")
        ),
        CallPattern(methods=("GET",), path=PROJECT_PATH, fields=(name,)),
        CallPattern(methods=("PUT",), path=f"{PROJECT_PATH}/transfer", fields=(name,)),
    )
    set_by = tuple(
        CallPattern(methods=each.methods, path=each.path, fields=(name,), attributes=(name,))
        for each in _PROJECT_WRITES
    )
    return shown + set_by


def build_setting_calls(name: str) -> tuple[CallPattern, ...]:
    """Return the calls that show or set a setting of the instance."""
    return (
        CallPattern(methods=("GET",), path=SETTINGS_PATH, fields=(name,)),
        CallPattern(methods=("PUT",), path=SETTINGS_PATH, fields=(name,), attributes=(name,)),
    )
