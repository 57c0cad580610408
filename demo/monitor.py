"""A monitor that keeps sending faults and pings to the running service."""

import random  # noqa: TID251 - nothing here is a secret
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Event
from urllib.error import URLError
from urllib.request import Request, urlopen

from demo.arrangement import DemoObjects, IntegrationSender
from demo.bodies import OngoingFault, build_webhook
from demo.catalog import FAULTS
from domain.core.clock import read_system_clock

_MAX_FAULTS = 4
_PING_INTERVAL = timedelta(minutes=10)
_TIMEOUT_SECONDS = 10


@dataclass
class Monitor:
    """Sends random faults: each step may start a fault, and ends faults that are over."""

    places: DemoObjects
    chance: random.Random = field(default_factory=random.Random)
    #: Current faults with their end times.
    _going_on: dict[OngoingFault, datetime] = field(default_factory=dict)
    _pinged_at: datetime | None = None

    def run_steps(self, is_stopped: Event, *, pause_seconds: float = 15) -> None:
        """Run steps until stopped; if the service is unreachable, try again at the next step."""
        while not is_stopped.is_set():
            with suppress(URLError, OSError):
                self.send_due_reports(read_system_clock())
            is_stopped.wait(pause_seconds)

    def send_due_reports(self, now: datetime) -> None:
        """Send everything that is due."""
        sender = self.places.prometheus
        for occurring in [each for each, until in self._going_on.items() if until <= now]:
            _post_body(sender, build_webhook([occurring], ended_at=now))
            del self._going_on[occurring]
        if len(self._going_on) < _MAX_FAULTS:
            self._begin_fault(sender, now)
        if self._pinged_at is None or now - self._pinged_at > _PING_INTERVAL:
            self._pinged_at = now
            for name in ("Invoice run", "Sitemap"):
                _send_request(Request(self.places.heartbeats[name], method="POST"))  # noqa: S310 - our own

    def _begin_fault(self, sender: IntegrationSender, now: datetime) -> None:
        (fault,) = self.chance.choices(FAULTS, [each.weight for each in FAULTS])
        instance = self.chance.choice(fault.instances)
        if any((each.fault, each.instance) == (fault, instance) for each in self._going_on):
            return
        occurring = OngoingFault(fault=fault, instance=instance, began_at=now)
        self._going_on[occurring] = now + timedelta(seconds=self.chance.randint(60, 300))
        _post_body(sender, build_webhook([occurring]))


def _post_body(sender: IntegrationSender, body: bytes) -> None:
    headers = {"Authorization": f"Bearer {sender.key}", "Content-Type": "application/json"}
    _send_request(Request(sender.url, data=body, headers=headers, method="POST"))  # noqa: S310 - our own


def _send_request(request: Request) -> None:
    with urlopen(request, timeout=_TIMEOUT_SECONDS) as answer:  # noqa: S310 - our own
        answer.read()
