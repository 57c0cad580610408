"""The settings of heartbeats and of the self-monitor.

The table goes on in `web/settings/table.py`.
"""

from dataclasses import dataclass

from web.settings import kinds
from web.settings.fields import live
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
        "How much of the body of a ping is kept in the log of its heartbeat.",
    )
    heartbeat_log_keep_count: int = live(
        100, kinds.whole_number(10, 10_000), "Number of pings kept in the log of a heartbeat."
    )
