"""Template context and template filters for times, sizes, links and untrusted text."""

import hashlib
import math
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from flask import Flask, g, has_request_context, request, url_for
from flask_login import current_user
from markupsafe import Markup, escape
from sqlalchemy.exc import SQLAlchemyError

from domain.alerts.parsing.times import format_utc_time
from domain.core.clock import CLOCK_TOLERANCE
from domain.core.durations import format_duration, format_waiting_time
from domain.core.errors import DomainError
from domain.core.text_links import is_web_url, split_at_alert_numbers, split_at_urls
from domain.core.time_zones import format_period, format_utc_offset, get_zone, list_zone_choices
from domain.git.access import can_read_repository
from domain.paging.on_call.rotation_syntax import format_cadence, format_restriction
from domain.projects.access import COUNT_LIMIT
from web.access.decorators import can_open_group
from web.access.return_urls import shorten_return_url
from web.access.second_factor_requirements import find_upcoming_second_factor_requirement
from web.http.browser_zone import get_browser_zone
from web.http.public_urls import find_page_url, get_current_path_and_query
from web.pages.charts import TEMPLATE_GLOBALS
from web.pages.compiled_templates import open_template_cache
from web.pages.cooperative_rendering import CooperativeTemplate
from web.pages.double_submit_protection import is_form_result, is_page_refresh
from web.pages.list_query import build_page_size_choice
from web.pages.markdown import render_markdown_document
from web.services import get_current_time, get_settings

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
#: Minimum number of seconds for each unit. The largest unit that fits is used.
_UNITS = (
    (1, "second"),
    (_MINUTE, "minute"),
    (_HOUR, "hour"),
    (_DAY, "day"),
    (30 * _DAY, "month"),
    (365 * _DAY, "year"),
)
#: Units of durations in short form, largest first.
_SHORT_UNITS = ((_HOUR, "h"), (_MINUTE, "min"), (1, "s"))
#: Pattern for times in the details of audit events.
_STORED_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d))?")
#: Pattern for times in messages to several people (domain/core/clock.py).
_MESSAGE_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)? UTC)")
_MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
#: Maximum number of seconds between a time and now for which the distance is always shown.
_NEAR_SECONDS = 12 * _HOUR
#: Number of seconds below which a time counts as just now.
_JUST_NOW_SECONDS = 10
#: Seconds by which a past time may appear to be in the future, because another host's clock is
#: ahead.
_CLOCK_TOLERANCE_SECONDS = 1
_KIBIBYTE = 1024
#: Characters LEFT-TO-RIGHT OVERRIDE and RIGHT-TO-LEFT OVERRIDE, which reverse the order of text.
_DIRECTION_OVERRIDES = {0x202D: "\ufffd", 0x202E: "\ufffd"}
_SEVERITIES = frozenset({"critical", "high", "medium", "low", "info"})
_STATUS_ACTIONS = {"acknowledged": "Acknowledge", "resolved": "Resolve", "ignored": "Ignore"}
#: URL variables of pages below a project or group.
_PATHS = frozenset({"project_path", "group_path"})
_SIGNED_IN_LINKS = (
    ("Home", "home.index", ("home.index",)),
    ("Alerts", "all_alerts.index", ("all_alerts.", "alert_batches.")),
    ("On call", "own_on_call.index", ("own_on_call.",)),
    (
        "Projects",
        "home.groups_and_projects",
        # All pages below a project or group also belong to this navigation link.
        ("home.groups", "groups.", "projects."),
    ),
    (
        "Applications",
        "applications.index",
        ("applications.", "authorized_applications."),
    ),
)
#: Icons of the links in the navigation bar at the bottom of the screen on phones.
_NAVIGATION_ICONS = {
    "Home": "home",
    "Alerts": "bell",
    "On call": "calendar",
    "Projects": "folder",
    "Applications": "plug",
    "Administration": "sliders",
}
_ADMINISTRATOR_LINK = ("Administration", "admin.overview.index", ("admin.", "audit."))


@dataclass(frozen=True, kw_only=True)
class NavLink:
    """Link in the main navigation."""

    label: str
    href: str
    #: Name of a symbol in `static/icons.svg`.
    icon: str
    current: bool


def configure_templates(app: Flask) -> None:
    """Register filters, tests, globals and the context processor for templates."""
    app.jinja_env.template_class = CooperativeTemplate
    app.jinja_env.bytecode_cache = open_template_cache(Path(app.root_path))
    init_app(app)
    app.context_processor(_build_context)


def _build_context() -> dict[str, Any]:
    current = get_settings()
    return {
        "nav": _build_navigation(),
        "now": get_current_time(),
        "instance_name": current.instance_name,
        "header_message": current.header_message,
        "footer_message": current.footer_message,
        "project": g.get("project"),
        "group": g.get("group"),
        "page_mark": g.get("page_mark"),
        "current_path": get_current_path_and_query,
        "second_factor_to_come": find_upcoming_second_factor_requirement,
    }


def build_sign_in_return_url(path: str | None = None) -> str | None:
    """Return the URL of a page, by default this page, for redirects after a sign-in.

    If the database is unavailable, a long URL loses its query, because error pages must not fail.
    """
    path = path or get_current_path_and_query()
    if g.get("asks_no_database"):
        return path.partition("?")[0]
    try:
        return shorten_return_url(path)
    except (DomainError, SQLAlchemyError):
        return path.partition("?")[0]


def _build_navigation() -> tuple[NavLink, ...]:
    if not current_user.is_authenticated:
        return ()
    here = request.endpoint or ""
    more = (_ADMINISTRATOR_LINK,) if current_user.is_admin else ()
    return tuple(
        NavLink(
            label=label,
            href=url_for(endpoint),
            icon=_NAVIGATION_ICONS.get(label, "folder"),
            current=here.startswith(prefixes)
            or (label == "Projects" and not _PATHS.isdisjoint(request.view_args or ())),
        )
        for label, endpoint, prefixes in (*_SIGNED_IN_LINKS, *more)
    )


def pluralize(number: int, word: str, plural: str | None = None) -> str:
    """Return a number with a noun, such as `1 alert` or `1,204 alerts`."""
    return f"{number:,} {choose_noun_form(number, word, plural)}"


def choose_noun_form(number: int, word: str, plural: str | None = None) -> str:
    """Return a noun that matches a number shown elsewhere, such as `alert` or `alerts`."""
    return word if number == 1 else plural or f"{word}s"


def format_capped_count(number: int) -> str:
    """Return a count that may be capped, such as `914` or `1,000+`."""
    return f"{number:,}" if number <= COUNT_LIMIT else f"{COUNT_LIMIT:,}+"


def format_seconds(seconds: float) -> str:
    """Return a duration in its largest unit, rounded down, such as `3 minutes`."""
    length, word = next((unit for unit in reversed(_UNITS) if seconds >= unit[0]), (1, "second"))
    return pluralize(int(seconds // length), word)


def _format_interval(seconds: float) -> str:
    """Return `4 min ago` or, rounded up to a minute, `in 1 h 30 min`."""
    if abs(seconds) < _JUST_NOW_SECONDS:
        return "in a moment" if seconds < -_CLOCK_TOLERANCE_SECONDS else "just now"
    if seconds > 0:
        length, unit = next(each for each in _SHORT_UNITS if seconds >= each[0])
        return f"{int(seconds // length)} {unit} ago"
    if seconds >= -_MINUTE:
        return f"in {math.ceil(-seconds)} s"
    hours, minutes = divmod(math.ceil(-seconds / _MINUTE), 60)
    parts = ((hours, "h"), (minutes, "min"))
    return "in " + " ".join(f"{number} {unit}" for number, unit in parts if number)


def format_short_time(moment: datetime, now: datetime, *, seconds: bool = False) -> str:
    """Return a time in the viewer's zone, such as `12:52 (4 min ago)` or `27 Nov 12:52`.

    Times on the current day have no date, and other times in the current year have no year. The
    distance from now is shown for the current day and within 12 hours. Both times must have a time
    zone. `static/js/page.js` formats times in the same way.
    """
    zone = get_zone(get_viewer_zone())
    local, today = moment.astimezone(zone), now.astimezone(zone).date()
    text = f"{local:%H:%M:%S}" if seconds else f"{local:%H:%M}"
    if local.date() != today:
        year = "" if local.year == today.year else f" {local.year}"
        text = f"{local.day} {_MONTHS[local.month - 1]}{year} {text}"
    distance = (now - moment).total_seconds()
    is_near = local.date() == today or abs(distance) < _NEAR_SECONDS
    return f"{text} ({_format_interval(distance)})" if is_near else text


def split_message_times(text: str) -> list[str | datetime]:
    """Split a message at the times that it contains, and return the text and the times in order."""
    return [
        datetime.fromisoformat(part.replace(" UTC", "+00:00")) if index % 2 else part
        for index, part in enumerate(_MESSAGE_TIME.split(text))
    ]


def format_exact_time(moment: datetime) -> str:
    """Return a time in the viewer's zone, to the second, such as `2026-11-23 14:05:03 +01:00`."""
    local = moment.astimezone(get_zone(get_viewer_zone()))
    return f"{local.isoformat(' ', 'seconds')[:19]} {format_utc_offset(local)}"


def format_day(day: date) -> str:
    """Remove overrides of the writing direction from the given text."""
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def format_event_detail(text: str) -> str:
    """Return a detail of an audit event, formatted as an exact time if it is a stored time.

    Times without an offset are in the time zone of the affected object, so they are not converted.
    """
    if not _STORED_TIME.fullmatch(text):
        return text
    moment = datetime.fromisoformat(text)
    return format_exact_time(moment) if moment.tzinfo else text.replace("T", " ")


def get_viewer_zone() -> str:
    """Return the time zone of the user's profile, or of the browser if nobody is signed in."""
    if not has_request_context():
        return "UTC"
    if "viewer_zone" not in g:
        is_known = not g.get("asks_no_database") and current_user.is_authenticated
        g.viewer_zone = current_user.user.time_zone if is_known else get_browser_zone() or "UTC"
    return str(g.viewer_zone)


def format_local_time(moment: datetime, time_zone: str) -> Markup:
    """Return the local time in a zone, such as `Mon 23 Nov 09:00` or `Mon 4 Jan 2027 09:00`.

    Times in the current year have no year. The markup prevents line breaks inside a time.
    """
    zone = get_zone(time_zone)
    local = moment.astimezone(zone)
    year = "" if local.year == get_current_time().astimezone(zone).year else f" {local.year}"
    words = f"{local:%a} {local.day} {_MONTHS[local.month - 1]}{year} {local:%H:%M}"
    return Markup('<span class="nowrap">{}</span>').format(words)


def format_file_size(size: int) -> str:
    """Return a readable size, such as `340 bytes`, `1.2 KiB`, `1.0 MiB` or `5.0 GiB`."""
    if size < _KIBIBYTE:
        return pluralize(size, "byte")
    if size < _KIBIBYTE * _KIBIBYTE:
        return f"{size / _KIBIBYTE:.1f} KiB"
    if size < _KIBIBYTE**3:
        return f"{size / _KIBIBYTE**2:.1f} MiB"
    return f"{size / _KIBIBYTE**3:.1f} GiB"


def format_milliseconds(duration: int | None) -> str:
    """Return a duration given in microseconds, such as `3.4 ms`, or `not measured` for None."""
    return "not measured" if duration is None else f"{duration / 1000:,.1f} ms"


def format_run_duration(took_ms: int) -> str:
    """Return a runtime given in milliseconds, such as `340 ms`, `12.3 s` or `1h30m`."""
    length = timedelta(milliseconds=took_ms)
    if length < timedelta(seconds=1):
        return f"{took_ms} ms"
    if length < timedelta(minutes=1):
        return f"{length.total_seconds():.1f} s"
    return format_duration(length)


def get_severity_icon(severity: str) -> str:
    """Return the name of a severity's icon."""
    return f"severity-{severity}" if severity in _SEVERITIES else "severity-unknown"


def get_status_action(status: str, current: str) -> str:
    """Return the label of the button that changes an alert's status."""
    back = "Unacknowledge" if current == "acknowledged" else "Reopen"
    return _STATUS_ACTIONS.get(status, back)


def replace_invisible_text(text: str | None, instead: str = "(blank)") -> str:
    """Return a name or title, or the fallback if it would be invisible.

    A name of spaces and zero-width characters would be an invisible link. Overrides of the writing
    direction are replaced, because they can disguise text.
    """
    if text and any(unicodedata.category(character)[0] not in "CZ" for character in text):
        return text.translate(_DIRECTION_OVERRIDES)
    return instead


def remove_direction_overrides(text: str) -> str:
    """Remove overrides of the writing direction from a text."""
    return text.translate(_DIRECTION_OVERRIDES)


def format_code_spans(text: str) -> Markup:
    """Mark the parts of the given text between backticks as code.

    Error messages and descriptions of settings use backticks for the names of parameters in all
    interfaces.
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:  # A value in the text contains a backtick.
        return escape(text)
    code = Markup("<code>{}</code>")
    return Markup("").join(
        code.format(part) if place % 2 else escape(part) for place, part in enumerate(parts)
    )


def get_initial(text: str) -> str:
    """Return the first letter or digit of a name in upper case."""
    return next((character.upper() for character in text if character.isalnum()), "?")


def format_lateness(start: datetime | None, now: datetime) -> str:
    """Return how long a task has been waiting, or an empty string if the worker is on time."""
    if start is None or now - start <= CLOCK_TOLERANCE:
        return ""
    return format_waiting_time(now - start)


def init_app(app: Flask) -> None:
    """Register filters, tests and globals for templates."""
    folder = Path(app.static_folder or "static")

    @cache
    def compute_asset_version(filename: str) -> str:
        return hashlib.sha256((folder / filename).read_bytes()).hexdigest()[:12]

    def asset(filename: str) -> str:
        # The URL changes with the content, so that browsers may cache it for a year.
        return url_for("static", filename=filename, v=compute_asset_version(filename))

    filters: dict[str, Callable[..., Any]] = {
        "pluralize": pluralize,
        "capped": format_capped_count,
        "noun": choose_noun_form,
        "link_parts": split_at_urls,
        "alert_parts": split_at_alert_numbers,
        "duration": format_seconds,
        "lateness": format_lateness,
        "duration_text": format_duration,
        "format_run_duration": format_run_duration,
        "short_time": format_short_time,
        "exact_time": format_exact_time,
        "in_zone": format_local_time,
        "message_parts": split_message_times,
        "cadence": format_cadence,
        "restriction": format_restriction,
        "written_day": format_day,
        "event_fact": format_event_detail,
        # This is for the `datetime` attribute (RFC 3339, in UTC).
        "machine_time": format_utc_time,
        "file_size": format_file_size,
        "milliseconds": format_milliseconds,
        "severity_icon": get_severity_icon,
        "status_action": get_status_action,
        "visible": replace_invisible_text,
        "readable": remove_direction_overrides,
        "document": render_markdown_document,
        "initial": get_initial,
        "format_code_spans": format_code_spans,
    }
    app.jinja_env.filters.update(filters)
    app.jinja_env.globals.update(TEMPLATE_GLOBALS)
    app.jinja_env.tests["web_link"] = is_web_url
    app.jinja_env.tests["with_files"] = can_read_repository
    app.jinja_env.tests["open_group"] = can_open_group
    app.jinja_env.globals["asset"] = asset
    app.jinja_env.globals["follows_a_change"] = is_form_result
    app.jinja_env.globals["is_page_refresh"] = is_page_refresh
    app.jinja_env.globals["page_url"] = find_page_url
    app.jinja_env.globals["build_sign_in_return_url"] = build_sign_in_return_url
    app.jinja_env.globals["viewer_zone"] = get_viewer_zone
    app.jinja_env.globals["format_period"] = format_period
    app.jinja_env.globals["zone_choices"] = lambda: list_zone_choices(get_current_time())
    app.jinja_env.globals["size_choice"] = build_page_size_choice
