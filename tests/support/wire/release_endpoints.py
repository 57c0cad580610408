"""The endpoints of the release schedule: name, method, path, parameters."""

from tests.support.wire.group_endpoints import TOKEN

_RESET = "runners/reset_registration_token"
_GROUP_ROLES = "/api/v4/groups/{id}/member_roles"
_JOB_TOKEN_SCOPE = "/api/v4/projects/{id}/job_token_scope"

RELEASE_ENDPOINTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "api_v4.release_changes.index",
        "GET",
        "/api/v4/releases/changes",
        ("page", "per_page", "pagination", "release", "interface", "state"),
    ),
    (
        "api_v4.release_checks.create",
        "POST",
        "/api/v4/releases/check",
        ("name", "content", "release"),
    ),
    ("api_v4.runners.register", "POST", "/api/v4/runners", ("token", "locked", "tag_list")),
    ("api_v4.runners.reset_token", "POST", f"/api/v4/{_RESET}", TOKEN),
    ("api_v4.runners.reset_project_token", "POST", f"/api/v4/projects/{{id}}/{_RESET}", TOKEN),
    ("api_v4.runners.reset_group_token", "POST", f"/api/v4/groups/{{id}}/{_RESET}", TOKEN),
    ("api_v4.group_member_roles.index", "GET", _GROUP_ROLES, ("page", "per_page")),
    ("api_v4.group_member_roles.create", "POST", _GROUP_ROLES, ("name", "base_access_level")),
    ("api_v4.group_member_roles.delete", "DELETE", f"{_GROUP_ROLES}/{{id}}", TOKEN),
    ("api_v4.job_token_scope.show", "GET", _JOB_TOKEN_SCOPE, TOKEN),
    (
        "api_v4.job_token_scope.change",
        "PATCH",
        _JOB_TOKEN_SCOPE,
        ("enabled", "inbound_enabled", "outbound_enabled"),
    ),
)
