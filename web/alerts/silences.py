"""What pages, API and commands do with silences, maintenance windows and settings for flapping."""

from datetime import timedelta

from domain.audit.events import Event, EventKind
from domain.silences.flapping import FlapSettings
from domain.silences.silences import SilenceView
from domain.silences.windows import WindowView
from web.http.audit_events import record_event
from web.services import settings


def longest_silence() -> timedelta:
    """Return how long a silence may take."""
    return timedelta(days=settings().longest_silence_days)


def silence_url(project_path: str, silence_id: int) -> str:
    """Return the absolute URL of the page of a silence; commands have no URL map."""
    return f"{settings().base_url}/{project_path}/-/silences/{silence_id}"


def record_silence(kind: EventKind, project_path: str, silence: SilenceView) -> None:
    """Record what was done to a silence in the audit log."""
    details = {
        "project": project_path,
        "silence": silence.id,
        "starts_at": silence.starts_at.isoformat(),
        "ends_at": silence.ends_at.isoformat(),
        "comment": silence.comment,
    }
    record_event(Event(kind=kind, subject=silence.text, details=details))


def record_window(kind: EventKind, project_path: str, window: WindowView) -> None:
    """Record what was done to a maintenance window in the audit log."""
    details = {
        "project": project_path,
        "window": window.id,
        "starts_at": window.times.local_start.isoformat(timespec="minutes"),
        "time_zone": window.times.time_zone,
        "minutes": window.times.length // timedelta(minutes=1),
        "rule": window.rule,
        **window.conditions.to_json(),
    }
    record_event(Event(kind=kind, subject=window.name, details=details))


def record_flap_settings(project_path: str, stored: FlapSettings) -> None:
    """Record that the settings for flapping alerts of a project changed."""
    record_event(
        Event(
            kind=EventKind.FLAP_SETTINGS_CHANGED,
            subject=project_path,
            details={"project": project_path, **vars(stored)},
        )
    )
