"""Snippets for jobs that send pings to a heartbeat, declared in `snippets.toml`."""

from pathlib import Path

from domain.alerts.formats.snippets import Snippet, fill_snippets
from domain.heartbeats.states import HeartbeatSchedule

_DECLARATIONS = Path(__file__).with_name("snippets.toml")


def build_ping_snippets(url: str, schedule: HeartbeatSchedule) -> tuple[Snippet, ...]:
    """Return the snippets for jobs, with the URL filled in."""
    cron = schedule.cron or "*/5 * * * *"
    return fill_snippets(_DECLARATIONS, "snippets", URL=url, CRON=cron)
