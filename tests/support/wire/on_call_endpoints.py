"""The endpoints of on-call schedules: name, method, path, parameters."""

from tests.support.wire.group_endpoints import ABOVE, PAGES, TOKEN

SCHEDULES_AT = "/api/v4/{project}/on_call/schedules"
_OVERRIDES_AT = f"{SCHEDULES_AT}/{{id}}/overrides"
_SWAPS_AT = f"{SCHEDULES_AT}/{{id}}/swaps"
_REQUESTS_AT = f"{SCHEDULES_AT}/{{id}}/swap_requests"
_NOTES_AT = f"{SCHEDULES_AT}/{{id}}/handover_notes"
_REPORT_AT = "/api/v4/{project}/on_call/report"
_REPORT = ("period", "from", "until", "time_zone", "weekday", "hour")
_SCHEDULE = ("name", "time_zone", "description", "rotations")
_SHIFT = ("user", "starts_at", "ends_at")
_OVERRIDE = (*_SHIFT, "instead_of", "in_addition")
_SWAP = (*_SHIFT, "other_user", "other_starts_at", "other_ends_at")
_OWN = "/api/v4/user/on_call"
_HOLIDAYS_AT = f"{SCHEDULES_AT}/{{id}}/holiday_calendars"
_ABSENCES_AT = f"{_OWN}/absence_calendars"
_CALENDAR = ("name", "url", "content")
_COVER = (*_SHIFT, "schedules")

ON_CALL_ENDPOINTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("api_v4.on_call_schedules.index", "GET", SCHEDULES_AT, (*PAGES, ABOVE)),
    ("api_v4.on_call_schedules.current", "GET", f"{SCHEDULES_AT}/current", (*PAGES, ABOVE)),
    ("api_v4.on_call_schedules.create", "POST", SCHEDULES_AT, _SCHEDULE),
    ("api_v4.on_call_schedules.show", "GET", f"{SCHEDULES_AT}/{{id}}", TOKEN),
    ("api_v4.on_call_schedules.change", "PUT", f"{SCHEDULES_AT}/{{id}}", _SCHEDULE),
    ("api_v4.on_call_schedules.delete", "DELETE", f"{SCHEDULES_AT}/{{id}}", TOKEN),
    ("api_v4.on_call_schedules.current_of_one", "GET", f"{SCHEDULES_AT}/{{id}}/current", TOKEN),
    (
        "api_v4.on_call_schedules.balance",
        "GET",
        f"{SCHEDULES_AT}/{{id}}/balance",
        (*TOKEN, "from", "until"),
    ),
    (
        "api_v4.on_call_schedules.shifts",
        "GET",
        f"{SCHEDULES_AT}/{{id}}/shifts",
        (*PAGES, "from", "until"),
    ),
    ("api_v4.on_call_reports.show", "GET", _REPORT_AT, _REPORT),
    ("api_v4.on_call_reports.download", "GET", f"{_REPORT_AT}.csv", _REPORT),
    ("api_v4.on_call_reports.download_figures", "GET", f"{_REPORT_AT}/figures.csv", _REPORT),
    ("api_v4.on_call_handover_notes.index", "GET", _NOTES_AT, PAGES),
    ("api_v4.on_call_handover_notes.draft", "GET", f"{_NOTES_AT}/draft", TOKEN),
    ("api_v4.on_call_handover_notes.create", "POST", _NOTES_AT, ("text",)),
    ("api_v4.on_call_handover_notes.delete", "DELETE", f"{_NOTES_AT}/{{id}}", TOKEN),
    ("api_v4.on_call_overrides.index", "GET", _OVERRIDES_AT, PAGES),
    ("api_v4.on_call_overrides.create", "POST", _OVERRIDES_AT, _OVERRIDE),
    ("api_v4.on_call_overrides.show", "GET", f"{_OVERRIDES_AT}/{{id}}", TOKEN),
    ("api_v4.on_call_overrides.delete", "DELETE", f"{_OVERRIDES_AT}/{{id}}", TOKEN),
    ("api_v4.on_call_swaps.index", "GET", _SWAPS_AT, PAGES),
    ("api_v4.on_call_swaps.create", "POST", _SWAPS_AT, _SWAP),
    ("api_v4.on_call_swap_requests.index", "GET", _REQUESTS_AT, PAGES),
    ("api_v4.on_call_swap_requests.create", "POST", _REQUESTS_AT, _SWAP),
    ("api_v4.on_call_swap_requests.show", "GET", f"{_REQUESTS_AT}/{{id}}", TOKEN),
    (
        "api_v4.on_call_swap_requests.answer",
        "POST",
        f"{_REQUESTS_AT}/{{id}}/answer",
        ("answer",),
    ),
    ("api_v4.on_call_swaps.show", "GET", f"{_SWAPS_AT}/{{id}}", TOKEN),
    ("api_v4.own_on_call.show", "GET", _OWN, (*TOKEN, "weeks")),
    ("api_v4.own_on_call.preview_cover", "GET", f"{_OWN}/cover", (*TOKEN, *_COVER)),
    ("api_v4.own_on_call.cover", "POST", f"{_OWN}/cover", _COVER),
    ("api_v4.own_on_call.show_calendar", "GET", f"{_OWN}/calendar", TOKEN),
    ("api_v4.own_on_call.renew_calendar", "POST", f"{_OWN}/calendar", TOKEN),
    ("api_v4.own_on_call.end_calendar", "DELETE", f"{_OWN}/calendar", TOKEN),
    ("api_v4.on_call_swaps.delete", "DELETE", f"{_SWAPS_AT}/{{id}}", TOKEN),
    ("api_v4.on_call_conflicts.index", "GET", f"{SCHEDULES_AT}/{{id}}/conflicts", PAGES),
    ("api_v4.on_call_holidays.index", "GET", f"{SCHEDULES_AT}/{{id}}/holidays", PAGES),
    ("api_v4.on_call_holiday_calendars.index", "GET", _HOLIDAYS_AT, PAGES),
    ("api_v4.on_call_holiday_calendars.create", "POST", _HOLIDAYS_AT, _CALENDAR),
    ("api_v4.on_call_holiday_calendars.delete", "DELETE", f"{_HOLIDAYS_AT}/{{id}}", TOKEN),
    ("api_v4.on_call_holiday_calendars.refresh", "POST", f"{_HOLIDAYS_AT}/{{id}}/refresh", TOKEN),
    ("api_v4.own_absences.index", "GET", f"{_OWN}/absences", PAGES),
    ("api_v4.own_absences.create", "POST", f"{_OWN}/absences", ("starts_at", "ends_at", "note")),
    ("api_v4.own_absences.delete", "DELETE", f"{_OWN}/absences/{{id}}", TOKEN),
    ("api_v4.own_absence_calendars.index", "GET", _ABSENCES_AT, PAGES),
    ("api_v4.own_absence_calendars.create", "POST", _ABSENCES_AT, _CALENDAR),
    ("api_v4.own_absence_calendars.delete", "DELETE", f"{_ABSENCES_AT}/{{id}}", TOKEN),
    ("api_v4.own_absence_calendars.refresh", "POST", f"{_ABSENCES_AT}/{{id}}/refresh", TOKEN),
)
