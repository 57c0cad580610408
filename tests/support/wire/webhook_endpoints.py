"""The endpoints of webhooks: name, method, path, parameters."""

_AT = "/api/v4/{project}/webhooks"
_CONDITIONS = ("severities", "environments", "services", "labels")
_PAGES = ("page", "per_page", "pagination")

WEBHOOK_ENDPOINTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("api_v4.hooks.index", "GET", "/api/v4/{project}/hooks", _PAGES),
    ("api_v4.hooks.show", "GET", "/api/v4/{project}/hooks/{id}", ()),
    ("api_v4.webhooks.index", "GET", _AT, _PAGES),
    ("api_v4.webhooks.create", "POST", _AT, ("url", "events", *_CONDITIONS)),
    ("api_v4.webhooks.show", "GET", f"{_AT}/{{id}}", ()),
    ("api_v4.webhooks.change", "PUT", f"{_AT}/{{id}}", ("url", "events", "active", *_CONDITIONS)),
    ("api_v4.webhooks.delete", "DELETE", f"{_AT}/{{id}}", ()),
    (
        "api_v4.webhooks.rotate_secret",
        "POST",
        f"{_AT}/{{id}}/rotate_secret",
        ("previous_secret_expires_at", "overlap"),
    ),
    ("api_v4.webhooks.send_test", "POST", f"{_AT}/{{id}}/test", ()),
    (
        "api_v4.webhook_deliveries.index",
        "GET",
        f"{_AT}/{{id}}/deliveries",
        ("cursor", "per_page", "pagination", "page", "state"),
    ),
    ("api_v4.webhook_deliveries.show", "GET", f"{_AT}/{{id}}/deliveries/{{id}}", ()),
    (
        "api_v4.webhook_deliveries.send_again",
        "POST",
        f"{_AT}/{{id}}/deliveries/{{id}}/send_again",
        (),
    ),
)
