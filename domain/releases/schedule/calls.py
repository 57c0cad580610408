"""Paths and calls that several entries in the schedule share."""

from functools import partial

from domain.releases.changes import ApiNameKind, CallPattern, ChangePattern, NamePattern

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
build_get_call = partial(CallPattern, methods=("GET",))
build_post_call = partial(CallPattern, methods=("POST",))
build_put_call = partial(CallPattern, methods=("PUT",))


def build_project_attribute_calls(name: str) -> tuple[CallPattern, ...]:
    """Return the calls that show or set an attribute of a project."""
    projects = f"{API_PATH}/projects"
    return (
        *(build_get_call(path=path, fields=(name,)) for path in PROJECT_LIST_PATHS),
        *(
            build_post_call(path=f"{PROJECT_PATH}/{action}", fields=(name,))
            for action in ("archive", "unarchive")
        ),
        build_get_call(path=PROJECT_PATH, fields=(name,)),
        build_put_call(path=f"{PROJECT_PATH}/transfer", fields=(name,)),
        build_post_call(path=projects, fields=(name,), attributes=(name,)),
        build_put_call(path=PROJECT_PATH, fields=(name,), attributes=(name,)),
    )


def build_setting_patterns(*names: str) -> tuple[ChangePattern, ...]:
    """Return patterns for the names of settings and for the calls that show or set the settings."""
    return (
        build_get_call(path=SETTINGS_PATH, fields=names),
        build_put_call(path=SETTINGS_PATH, fields=names, attributes=names),
        NamePattern(where=ApiNameKind.SETTING, names=names),
    )
