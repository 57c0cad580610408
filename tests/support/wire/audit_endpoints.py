"""The endpoints of the audit log: name, method, path, parameters."""

from tests.support.wire.group_endpoints import PAGES

EVENTS_AT = "/api/v4/audit_events"
STREAMS_AT = "/api/v4/audit_streams"
EVENTS = (
    *("entity_type", "entity_id", "event_name", "author_id", "author", "target", "ip_address"),
    *("created_after", "created_before"),
)

AUDIT_ENDPOINTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    (
        "api_v4.audit_events.index",
        "GET",
        EVENTS_AT,
        (*PAGES, *EVENTS),
    ),
    (
        "api_v4.namespace_audit_events.index",
        "GET",
        "/api/v4/{namespace}/audit_events",
        (*PAGES, "created_after", "created_before"),
    ),
    ("api_v4.namespace_audit_events.show", "GET", "/api/v4/{namespace}/audit_events/{id}", ()),
    ("api_v4.audit_events.download", "GET", f"{EVENTS_AT}/export.csv", EVENTS),
    ("api_v4.audit_streams.index", "GET", STREAMS_AT, PAGES),
    ("api_v4.audit_streams.create", "POST", STREAMS_AT, ("url",)),
    ("api_v4.audit_streams.show", "GET", f"{STREAMS_AT}/{{id}}", ()),
    ("api_v4.audit_streams.change", "PUT", f"{STREAMS_AT}/{{id}}", ("url", "paused")),
    ("api_v4.audit_streams.delete", "DELETE", f"{STREAMS_AT}/{{id}}", ()),
    (
        "api_v4.audit_streams.rotate_secret",
        "POST",
        f"{STREAMS_AT}/{{id}}/rotate_secret",
        ("previous_secret_expires_at", "overlap"),
    ),
    ("api_v4.audit_streams.send_test", "POST", f"{STREAMS_AT}/{{id}}/test", ()),
    ("api_v4.audit_events.show", "GET", f"{EVENTS_AT}/{{id}}", ()),
)
