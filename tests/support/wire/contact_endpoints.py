"""The endpoints of contacts and of notification channels, with their parameters."""

from tests.support.wire.group_endpoints import ABOVE

_CONTACTS = "/api/v4/user/contacts"
_RULES = f"{_CONTACTS}/rules"
_CHANNELS = "/api/v4/projects/{id}/notification_channels"
_PAGES = ("page", "per_page", "pagination")
_RULE = ("contact_id", "alerts", "delay_minutes", "only")
_CHANGE = ("address", "label")
_NEW = ("type", "address", "label")

CONTACT_ENDPOINTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("api_v4.contacts.index", "GET", _CONTACTS, _PAGES),
    ("api_v4.contacts.create", "POST", _CONTACTS, _NEW),
    ("api_v4.contacts.show", "GET", f"{_CONTACTS}/{{id}}", ()),
    ("api_v4.contacts.change", "PUT", f"{_CONTACTS}/{{id}}", _CHANGE),
    ("api_v4.contacts.confirm", "POST", f"{_CONTACTS}/{{id}}/confirm", ("code",)),
    ("api_v4.contacts.send_code", "POST", f"{_CONTACTS}/{{id}}/send_code", ()),
    ("api_v4.contacts.send_test", "POST", f"{_CONTACTS}/{{id}}/test", ()),
    ("api_v4.contacts.delete", "DELETE", f"{_CONTACTS}/{{id}}", ()),
    ("api_v4.contacts.preferences", "GET", f"{_CONTACTS}/preferences", ()),
    (
        "api_v4.contacts.change_preferences",
        "PUT",
        f"{_CONTACTS}/preferences",
        ("quiet_hours", "follow_ups"),
    ),
    ("api_v4.contact_rules.index", "GET", _RULES, _PAGES),
    ("api_v4.contact_rules.create", "POST", _RULES, _RULE),
    ("api_v4.contact_rules.change", "PUT", f"{_RULES}/{{id}}", _RULE),
    ("api_v4.contact_rules.summary", "GET", f"{_RULES}/summary", ()),
    ("api_v4.contact_rules.show", "GET", f"{_RULES}/{{id}}", ()),
    ("api_v4.contact_rules.delete", "DELETE", f"{_RULES}/{{id}}", ()),
    ("api_v4.notification_channels.index", "GET", _CHANNELS, (*_PAGES, ABOVE)),
    ("api_v4.notification_channels.create", "POST", _CHANNELS, _NEW),
    ("api_v4.notification_channels.show", "GET", f"{_CHANNELS}/{{id}}", ()),
    ("api_v4.notification_channels.change", "PUT", f"{_CHANNELS}/{{id}}", _CHANGE),
    ("api_v4.notification_channels.send_test", "POST", f"{_CHANNELS}/{{id}}/test", ()),
    ("api_v4.notification_channels.delete", "DELETE", f"{_CHANNELS}/{{id}}", ()),
)
