"""The endpoints of heartbeats, with all their parameters."""

from tests.support.wire.group_endpoints import PAGES

_AT = "/api/v4/{project}/heartbeats"
_FIELDS = (
    *("name", "every", "cron", "time_zone", "grace"),
    *("description", "severity", "environment"),
)
HEARTBEAT_ENDPOINTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("api_v4.heartbeats.index", "GET", _AT, PAGES),
    ("api_v4.heartbeats.create", "POST", _AT, _FIELDS),
    ("api_v4.heartbeats.show", "GET", f"{_AT}/{{id}}", ()),
    ("api_v4.heartbeats.change", "PUT", f"{_AT}/{{id}}", _FIELDS),
    ("api_v4.heartbeats.delete", "DELETE", f"{_AT}/{{id}}", ()),
    ("api_v4.heartbeats.pause", "POST", f"{_AT}/{{id}}/pause", ()),
    ("api_v4.heartbeats.resume", "POST", f"{_AT}/{{id}}/resume", ()),
    ("api_v4.heartbeats.url", "GET", f"{_AT}/{{id}}/url", ()),
    ("api_v4.heartbeats.reset_url", "POST", f"{_AT}/{{id}}/reset_url", ("previous_for",)),
    ("api_v4.heartbeats.pings", "GET", f"{_AT}/{{id}}/pings", PAGES),
)
