"""The endpoints of silences, maintenance windows and flap settings, with all their parameters."""

from tests.support.wire.group_endpoints import PAGES, TOKEN

#: Parameter of lists that can include objects of ancestor groups.
ANCESTORS = "include_ancestor_groups"
SILENCES_AT = "/api/v4/{project}/silences"
WINDOWS_AT = "/api/v4/{project}/maintenance_windows"
FLAP_SETTINGS_AT = "/api/v4/{project}/flap_settings"
CONDITIONS = ("severities", "environments", "services", "labels")
WINDOW = ("name", "starts_at", "duration", "time_zone", "rule", *CONDITIONS)
FLAP_SETTINGS = (
    "enabled",
    "openings",
    "within_minutes",
    "hold_minutes",
    "reopen_minutes",
    "holds_critical",
)

SILENCE_ENDPOINTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "api_v4.silences.index",
        "GET",
        SILENCES_AT,
        ("page", "per_page", "pagination", "cursor", "order_by", "sort", "state", ANCESTORS),
    ),
    ("api_v4.silences.show", "GET", f"{SILENCES_AT}/{{id}}", TOKEN),
    ("api_v4.silences.preview", "GET", f"{SILENCES_AT}/preview", ("matchers",)),
    (
        "api_v4.silences.create",
        "POST",
        SILENCES_AT,
        ("matchers", "comment", "starts_at", "ends_at", "duration"),
    ),
    (
        "api_v4.silences.edit",
        "PUT",
        f"{SILENCES_AT}/{{id}}",
        ("comment", "ends_at", "duration"),
    ),
    ("api_v4.silences.delete", "DELETE", f"{SILENCES_AT}/{{id}}", TOKEN),
    ("api_v4.alert_mutes.show", "GET", "/api/v4/{project}/alerts/1/mute", TOKEN),
    ("api_v4.alert_timeline.index", "GET", "/api/v4/{project}/alerts/1/timeline", PAGES),
    ("api_v4.maintenance_windows.index", "GET", WINDOWS_AT, (*PAGES, ANCESTORS)),
    ("api_v4.maintenance_windows.show", "GET", f"{WINDOWS_AT}/{{id}}", TOKEN),
    ("api_v4.maintenance_windows.create", "POST", WINDOWS_AT, WINDOW),
    ("api_v4.maintenance_windows.edit", "PUT", f"{WINDOWS_AT}/{{id}}", WINDOW),
    ("api_v4.maintenance_windows.delete", "DELETE", f"{WINDOWS_AT}/{{id}}", TOKEN),
    ("api_v4.flap_settings.show", "GET", FLAP_SETTINGS_AT, TOKEN),
    ("api_v4.flap_settings.edit", "PUT", FLAP_SETTINGS_AT, FLAP_SETTINGS),
)
