"""The endpoints of on-call schedules: name, method, path, parameters."""

from tests.support.wire.group_endpoints import ABOVE, PAGES, TOKEN

SCHEDULES_AT = "/api/v4/{project}/on_call/schedules"
_OVERRIDES_AT = f"{SCHEDULES_AT}/{{id}}/overrides"
_SWAPS_AT = f"{SCHEDULES_AT}/{{id}}/swaps"
_SCHEDULE = ("name", "time_zone", "description", "rotations")
_OVERRIDE = ("user", "starts_at", "ends_at")

ON_CALL_ENDPOINTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("api_v4.on_call_schedules.index", "GET", SCHEDULES_AT, (*PAGES, ABOVE)),
    ("api_v4.on_call_schedules.current", "GET", f"{SCHEDULES_AT}/current", (*PAGES, ABOVE)),
    ("api_v4.on_call_schedules.create", "POST", SCHEDULES_AT, _SCHEDULE),
    ("api_v4.on_call_schedules.show", "GET", f"{SCHEDULES_AT}/{{id}}", TOKEN),
    ("api_v4.on_call_schedules.change", "PUT", f"{SCHEDULES_AT}/{{id}}", _SCHEDULE),
    ("api_v4.on_call_schedules.delete", "DELETE", f"{SCHEDULES_AT}/{{id}}", TOKEN),
    ("api_v4.on_call_schedules.current_of_one", "GET", f"{SCHEDULES_AT}/{{id}}/current", TOKEN),
    (
        "api_v4.on_call_schedules.shifts",
        "GET",
        f"{SCHEDULES_AT}/{{id}}/shifts",
        (*PAGES, "from", "until"),
    ),
    ("api_v4.on_call_overrides.index", "GET", _OVERRIDES_AT, PAGES),
    ("api_v4.on_call_overrides.create", "POST", _OVERRIDES_AT, _OVERRIDE),
    ("api_v4.on_call_overrides.show", "GET", f"{_OVERRIDES_AT}/{{id}}", TOKEN),
    ("api_v4.on_call_overrides.delete", "DELETE", f"{_OVERRIDES_AT}/{{id}}", TOKEN),
    ("api_v4.on_call_swaps.index", "GET", _SWAPS_AT, PAGES),
    (
        "api_v4.on_call_swaps.create",
        "POST",
        _SWAPS_AT,
        (*_OVERRIDE, "other_user", "other_starts_at", "other_ends_at"),
    ),
    ("api_v4.on_call_swaps.show", "GET", f"{_SWAPS_AT}/{{id}}", TOKEN),
    ("api_v4.on_call_swaps.delete", "DELETE", f"{_SWAPS_AT}/{{id}}", TOKEN),
)
