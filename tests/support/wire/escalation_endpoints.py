"""The endpoints of escalation policies and alert routes: name, method, path, parameters."""

from tests.support.wire.group_endpoints import ABOVE, PAGES, TOKEN

_POLICIES_AT = "/api/v4/{project}/escalation_policies"
_ROUTES_AT = "/api/v4/{project}/alert_routes"
_POLICY = (
    *("name", "steps", "repeats", "repeat_pause", "acknowledgement_timeout"),
    *("retrigger_when_critical", "default"),
)
_ROUTE = (
    *("name", "severities", "environments", "services", "labels"),
    *("escalation_policy_id", "position"),
)

ESCALATION_ENDPOINTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("api_v4.escalation_policies.index", "GET", _POLICIES_AT, (*PAGES, ABOVE)),
    ("api_v4.escalation_policies.show", "GET", f"{_POLICIES_AT}/{{id}}", TOKEN),
    ("api_v4.escalation_policies.create", "POST", _POLICIES_AT, _POLICY),
    ("api_v4.escalation_policies.change", "PUT", f"{_POLICIES_AT}/{{id}}", _POLICY),
    ("api_v4.escalation_policies.delete", "DELETE", f"{_POLICIES_AT}/{{id}}", TOKEN),
    ("api_v4.alert_routes.index", "GET", _ROUTES_AT, (*PAGES, ABOVE)),
    ("api_v4.alert_routes.show", "GET", f"{_ROUTES_AT}/{{id}}", TOKEN),
    ("api_v4.alert_routes.create", "POST", _ROUTES_AT, _ROUTE),
    ("api_v4.alert_routes.change", "PUT", f"{_ROUTES_AT}/{{id}}", _ROUTE),
    ("api_v4.alert_routes.delete", "DELETE", f"{_ROUTES_AT}/{{id}}", TOKEN),
    ("api_v4.alert_routes.dry_run", "POST", f"{_ROUTES_AT}/dry_run", ("since", "until")),
)
