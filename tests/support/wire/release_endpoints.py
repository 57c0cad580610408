"""The endpoints of the release schedule: name, method, path, parameters."""

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
)
