"""Two weeks of alerts, and the users' reactions to them."""

import random  # noqa: TID251 - nothing here is a secret
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Any

from demo.arrangement import DemoObjects, build_project_path
from demo.bodies import OngoingFault, build_check, build_webhook
from demo.cast import SHOP
from demo.catalog import FAULTS, WEBSITE_CHECKS, Fault
from demo.machine import SimulatedService

#: Random seed, so that each run creates the same alerts except for their dates.
_RANDOM_SEED = 20
_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ALERT_DAYS = 14
_ALERTS_PATH = f"{build_project_path(SHOP)}/alert_management_alerts"
_URGENT_SEVERITIES = frozenset({"critical", "high"})
#: Notes that users write after they have found the cause.
_NOTES = (
    "Rolled back to the last release, errors are gone.",
    "A batch job of the data team. They move it to the night.",
    "Known: the new index takes longer to build. Nothing to do.",
    "Restarted the worker. Should this not restart itself?",
    "Cleaned up old exports, 60 GB are free again.",
    "The provider had a short outage, their status page says so.",
)

#: Planned action. Its result is ignored.
PlannedAction = Callable[[], object]


@dataclass
class ActionPlan:
    """The planned actions in chronological order. Actions may plan further actions."""

    machine: SimulatedService
    _entries: list[tuple[datetime, int, PlannedAction]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def plan_action(self, moment: datetime, act: PlannedAction) -> None:
        """Plan an action; an action in the past runs next."""
        heappush(self._entries, (moment, next(self._numbers), act))

    def run_until(self, end: datetime) -> None:
        """Run all actions planned until a moment, and advance the clock to it."""
        while self._entries and self._entries[0][0] <= end:
            moment, _, act = heappop(self._entries)
            self.machine.advance_clock(moment)
            act()
        self.machine.advance_clock(end)


class TwoWeeksOfAlerts:
    """The alerts of the shop, and the users who handle them."""

    def __init__(self, machine: SimulatedService, places: DemoObjects, diary: ActionPlan) -> None:
        """Store the arguments without planning anything."""
        self.machine, self.places, self.diary = machine, places, diary
        self.chance = random.Random(_RANDOM_SEED)  # noqa: S311 - nothing here is a secret

    def plan_alerts(self, end: datetime, *, days: int) -> None:
        """Plan the alerts for the `days` days before a moment; all alerts end before then."""
        for day in range(days, 0, -1):
            for _ in range(self.chance.randint(3, 6)):
                self._plan_fault(end - day * _DAY + self.chance.random() * _DAY, end)
            if day % 2:
                self._plan_check(end - day * _DAY + self.chance.random() * _DAY)

    def _plan_fault(self, begin: datetime, end: datetime) -> None:
        (fault,) = self.chance.choices(FAULTS, [each.weight for each in FAULTS])
        lasts = self.chance.randint(*fault.lasts) * _MINUTE
        # `demo.present` creates the faults that are still ongoing at the end.
        if begin + lasts < end - 20 * _MINUTE:
            few = self.chance.randint(1, min(2, len(fault.instances)))
            for instance in self.chance.sample(fault.instances, few):
                self.plan_fault(fault, instance, begin, lasts)

    def plan_fault(
        self,
        fault: Fault,
        instance: str,
        begin: datetime,
        lasts: timedelta | None,
        *,
        answer: timedelta | None = None,
    ) -> None:
        """Plan a fault: it is reported repeatedly, and ends if it has a duration.

        Urgent faults are acknowledged after `answer`, by default after a few minutes.
        """
        occurring = OngoingFault(fault=fault, instance=instance, began_at=begin)
        until = begin + lasts if lasts else begin + _HOUR
        moment = begin
        while moment < until:
            self.diary.plan_action(moment, lambda: self._report_fault(occurring))
            moment += max((until - begin) / 4, 5 * _MINUTE)
        if fault.severity in _URGENT_SEVERITIES and fault.environment == "production":
            answer = answer or self.chance.randint(2, 4) * _MINUTE
            self.diary.plan_action(begin + answer, lambda: self.acknowledge_alerts(fault.summary))
        if lasts:
            self.diary.plan_action(until, lambda: self._end_fault(occurring))

    def _report_fault(self, occurring: OngoingFault) -> None:
        sender = self.places.prometheus
        self.machine.send_to_integration(sender.url, sender.key, build_webhook([occurring]))

    def _end_fault(self, occurring: OngoingFault) -> None:
        sender = self.places.prometheus
        body = build_webhook([occurring], ended_at=self.machine.now)
        self.machine.send_to_integration(sender.url, sender.key, body)

    def _plan_check(self, begin: datetime) -> None:
        severity, service, title, description = self.chance.choice(WEBSITE_CHECKS)
        fields = {
            "title": title,
            "description": description,
            "severity": severity,
            "service": service,
            "hosts": ["www.acme.example"],
            "fingerprint": title,
            "platform_environment_name": "production",
        }
        self.diary.plan_action(begin, lambda: self.send_check_result(fields))
        if severity == "low":
            self.diary.plan_action(
                begin + 3 * _HOUR, lambda: self.change_status(title, "ignored", "bob")
            )
        else:
            done = begin + self.chance.randint(5, 50) * _MINUTE
            self.diary.plan_action(
                done, lambda: self.send_check_result({**fields, "end_time": done.isoformat()})
            )

    def send_check_result(self, fields: dict[str, Any]) -> None:
        """Send the result of a website check."""
        sender = self.places.checks
        self.machine.send_to_integration(sender.url, sender.key, build_check(fields))

    def acknowledge_alerts(self, title: str) -> None:
        """Let the user on call acknowledge open alerts by title, and sometimes add a note.

        Alerts that have ended in the meantime are skipped.
        """
        who = self.find_user_on_call()
        found = self.open_alerts(title)
        for iid in found:
            self.update_alert(iid, who, status="acknowledged", assignee=who)
        if found and self.chance.random() < 0.5:  # noqa: PLR2004 - every second time
            text = self.chance.choice(_NOTES)
            later = self.machine.now + self.chance.randint(3, 15) * _MINUTE
            self.diary.plan_action(later, lambda: self.add_note(found[0], who, text))

    def change_status(self, title: str, status: str, who: str) -> None:
        """Change the status of the open alerts with the given title."""
        for iid in self.open_alerts(title):
            self.update_alert(iid, who, status=status)

    def open_alerts(self, title: str) -> list[int]:
        """Return the numbers of the open alerts with the given title."""
        path = f"{_ALERTS_PATH}?status=open&per_page=100"
        found = self.machine.call_api(self.places.tokens["marta"], "GET", path)
        return [each["iid"] for each in found if each["title"] == title]

    def update_alert(self, iid: int, who: str, **fields: str) -> None:
        """Change an alert as a user."""
        self.machine.call_api(self.places.tokens[who], "PUT", f"{_ALERTS_PATH}/{iid}", **fields)

    def add_note(self, iid: int, who: str, text: str) -> None:
        """Add a note to an alert."""
        self.machine.call_api(
            self.places.tokens[who], "POST", f"{_ALERTS_PATH}/{iid}/notes", body=text
        )

    def find_user_on_call(self) -> str:
        """Return the username of the current user on call."""
        path = f"{build_project_path(SHOP)}/on_call/schedules/{self.places.schedule_id}/current"
        now = self.machine.call_api(self.places.tokens["marta"], "GET", path)["now"]
        return str(now["users"][0]["username"])
