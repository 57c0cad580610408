"""The settings of heartbeats and of the self-monitor.

The table goes on in `web/settings/table.py`.
"""

from dataclasses import dataclass

from web.settings import kinds
from web.settings.fields import live, secret
from web.settings.monitoring_kinds import line_of_text_or_nothing, outgoing_url
from web.settings.server_table import ServerSettings

_MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class MonitoringSettings(ServerSettings):
    """The second part of the settings of an installation."""

    heartbeat_rate_limit: str = live(
        "300/minute", kinds.rate(), "Rate limit for pings to the URL of one heartbeat."
    )
    heartbeat_address_rate_limit: str = live(
        "6000/minute", kinds.rate(), "Rate limit for pings to heartbeats from one IP address."
    )
    heartbeat_body_limit_bytes: int = live(
        10_000,
        kinds.whole_number(0, _MIB, "bytes"),
        "How much of the body of a ping is kept in the log of the heartbeat.",
    )
    heartbeat_log_keep_count: int = live(
        100, kinds.whole_number(10, 10_000), "Number of pings kept in the log of a heartbeat."
    )

    self_monitor_project: str = live(
        "",
        line_of_text_or_nothing(255),
        "Path of the project to which the self-monitor sends synthetic alerts, preferably a "
        "separate one; if empty, the self-monitor is off.",
    )
    self_monitor_interval_seconds: int = live(
        300,
        kinds.whole_number(10, 86_400, "seconds"),
        "Interval between checks of the self-monitor.",
    )
    self_monitor_deadline_seconds: int = live(
        60,
        kinds.whole_number(5, 600, "seconds"),
        "Time within which the page for a synthetic alert has to be sent, if an escalation policy "
        "pages somebody for it.",
    )
    self_monitor_switch_url: str = secret(
        "",
        outgoing_url(),
        "URL of a dead man's switch at another service, which gets a POST request after each "
        "successful check of the self-monitor.",
    )
