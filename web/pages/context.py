"""The template context of all pages."""

from dataclasses import dataclass
from typing import Any

from flask import Flask, g, request, url_for
from flask_login import current_user

from web.http.public_urls import current_path
from web.pages.filters import init_app as register_filters
from web.services import now, settings


@dataclass(frozen=True, kw_only=True)
class NavLink:
    """A link of the main navigation."""

    label: str
    href: str
    current: bool


_SIGNED_IN = (
    ("Home", "home.index", ("home.index",)),
    ("Alerts", "all_alerts.index", ("all_alerts.", "alert_batches.")),
    (
        "Projects",
        "home.groups_and_projects",
        (
            *("home.groups", "groups.", "group_settings.", "projects.", "project_settings."),
            *("resource_tokens.", "alerts.", "on_call"),
            *("incidents.", "incident_"),
            *("environments.", "files.", "registry_pages.", "integrations.", "integration_"),
            *("deliveries.", "test_alerts.", "heartbeats.", "webhooks.", "webhook_deliveries."),
            *("escalation_policies.", "alert_routes.", "channels."),
            *("silences.", "maintenance_windows."),
        ),
    ),
    (
        "Applications",
        "applications.index",
        ("applications.", "authorized_applications."),
    ),
)

_ADMINISTRATOR = ("Administration", "admin.overview.index", ("admin.", "audit."))


def give_pages_their_context(app: Flask) -> None:
    """Register filters, tests, globals and the context processor of templates."""
    register_filters(app)
    app.context_processor(_context)


def _context() -> dict[str, Any]:
    current = settings()
    return {
        "nav": _nav(),
        "now": now(),
        "instance_name": current.instance_name,
        "header_message": current.header_message,
        "footer_message": current.footer_message,
        "project": g.get("project"),
        "current_path": current_path,
    }


def _nav() -> tuple[NavLink, ...]:
    if not current_user.is_authenticated:
        return ()
    here = request.endpoint or ""
    more = (_ADMINISTRATOR,) if current_user.is_admin else ()
    return tuple(
        NavLink(label=label, href=url_for(endpoint), current=here.startswith(prefixes))
        for label, endpoint, prefixes in (*_SIGNED_IN, *more)
    )
