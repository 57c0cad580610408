"""The endpoints of alert integrations: name, method, path, parameters."""

from tests.support.wire.group_endpoints import PAGES, TOKEN

INTEGRATIONS_AT = "/api/v4/{project}/alert_management_integrations"
DELIVERIES_AT = f"{INTEGRATIONS_AT}/{{id}}/deliveries"
_SETTINGS = (
    *("name", "active", "api_url", "resolve_after_minutes"),
    *("environment_labels", "service_labels"),
)

INTEGRATION_ENDPOINTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("api_v4.alert_integrations.index", "GET", INTEGRATIONS_AT, PAGES),
    (
        "api_v4.alert_integrations.create",
        "POST",
        INTEGRATIONS_AT,
        ("type", *_SETTINGS),
    ),
    ("api_v4.alert_integrations.show", "GET", f"{INTEGRATIONS_AT}/{{id}}", TOKEN),
    (
        "api_v4.alert_integrations.change",
        "PUT",
        f"{INTEGRATIONS_AT}/{{id}}",
        _SETTINGS,
    ),
    ("api_v4.alert_integrations.labels", "GET", f"{INTEGRATIONS_AT}/{{id}}/labels", PAGES),
    ("api_v4.alert_integrations.warnings", "GET", f"{INTEGRATIONS_AT}/{{id}}/warnings", PAGES),
    ("api_v4.alert_integrations.delete", "DELETE", f"{INTEGRATIONS_AT}/{{id}}", TOKEN),
    (
        "api_v4.alert_integrations.test",
        "POST",
        f"{INTEGRATIONS_AT}/{{id}}/test",
        ("payload", "dry_run"),
    ),
    (
        "api_v4.alert_integration_keys.credentials",
        "GET",
        f"{INTEGRATIONS_AT}/{{id}}/credentials",
        TOKEN,
    ),
    ("api_v4.alert_integration_keys.index", "GET", f"{INTEGRATIONS_AT}/{{id}}/keys", PAGES),
    (
        "api_v4.alert_integration_keys.rotate",
        "POST",
        f"{INTEGRATIONS_AT}/{{id}}/keys",
        ("previous_key_expires_at", "key_id"),
    ),
    ("api_v4.alert_integration_keys.delete", "DELETE", f"{INTEGRATIONS_AT}/1/keys/{{id}}", TOKEN),
    ("api_v4.alert_recognition.recognize", "POST", f"{INTEGRATIONS_AT}/recognize", ("sample",)),
    ("api_v4.alert_mappings.show", "GET", f"{INTEGRATIONS_AT}/{{id}}/mapping", TOKEN),
    (
        "api_v4.alert_mappings.change",
        "PUT",
        f"{INTEGRATIONS_AT}/{{id}}/mapping",
        ("sample", "mapping", "rules"),
    ),
    ("api_v4.alert_mappings.delete", "DELETE", f"{INTEGRATIONS_AT}/{{id}}/mapping", TOKEN),
    (
        "api_v4.alert_mappings.preview",
        "POST",
        f"{INTEGRATIONS_AT}/{{id}}/mapping/preview",
        ("sample", "mapping", "rules", "sample_repeat", "sample_recovery"),
    ),
    (
        "api_v4.alert_deliveries.recognize",
        "POST",
        f"{DELIVERIES_AT}/recognize",
        ("sample", "sample_repeat", "sample_recovery"),
    ),
    (
        *("api_v4.alert_deliveries.index", "GET", DELIVERIES_AT),
        (*PAGES, "show", "status", "received_after", "received_before"),
    ),
    ("api_v4.alert_deliveries.show", "GET", f"{DELIVERIES_AT}/{{id}}", TOKEN),
    ("api_v4.alert_deliveries.body", "GET", f"{DELIVERIES_AT}/{{id}}/body", TOKEN),
    (
        "api_v4.alert_deliveries.replay",
        "POST",
        f"{INTEGRATIONS_AT}/{{id}}/deliveries/replay",
        ("since", "until", "after"),
    ),
    ("api_v4.alert_deliveries.resend", "POST", f"{DELIVERIES_AT}/{{id}}/resend", TOKEN),
)
