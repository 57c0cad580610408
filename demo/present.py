"""Special events of the demo: an incident at night, a failed backup, and current alerts."""

from datetime import datetime, timedelta
from functools import partial
from hashlib import sha256
from typing import Any

from demo.arrangement import build_project_path
from demo.cast import SHOP
from demo.catalog import FAULTS_BY_NAME
from demo.fortnight import ALERT_DAYS, TwoWeeksOfAlerts

_MINUTE, _HOUR, _DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
_BACKUP_LOG = """\
pg_basebackup: error: could not write to file "base.tar": No space left on device
removing contents of data directory "/backup/2026"
exit status 1
"""
_REVIEW = """\
## What happened

A query without a limit took all connections of the database for 22 minutes.

| time | |
|---|---|
| +0 min | first page |
| +5 min | second person paged |
| +9 min | query found and ended |

## What we change

- a statement timeout for the reporting user
- an alert on connections **before** they are all taken
"""


class SpecialEvents:
    """Adds special events to two weeks of alerts."""

    def __init__(self, fortnight: TwoWeeksOfAlerts) -> None:
        """Store the arguments without planning anything."""
        self.fortnight = fortnight
        self.machine, self.places = fortnight.machine, fortnight.places
        self.diary = fortnight.diary

    def plan_events(self, end: datetime) -> None:
        """Plan the events; the last events are still ongoing at the end."""
        self._plan_bad_night(end - 6 * _DAY)
        self._plan_second_incident(end - 2 * _DAY)
        self._plan_heartbeats(end)
        self._plan_deployments(end)
        self._plan_rejections(end)
        self._plan_silences(end)
        self._plan_current_events(end)

    def _plan_bad_night(self, begin: datetime) -> None:
        fault = FAULTS_BY_NAME["HighErrorRate", "production"]
        slow = FAULTS_BY_NAME["SlowResponses", "production"]
        # No one acknowledges the alert for five minutes, so that a second user is paged.
        self.fortnight.plan_fault(fault, "web-1", begin, 52 * _MINUTE, answer=8 * _MINUTE)
        for instance in ("web-2", "web-3"):
            later = begin + 2 * _MINUTE
            self.fortnight.plan_fault(slow, instance, later, 48 * _MINUTE, answer=7 * _MINUTE)
        self.diary.plan_action(begin + 11 * _MINUTE, self._link_slow_ones)
        for minutes, who, text in (
            (8, "alice", "All three web servers. Looking at the database first."),
            (12, "bob", "`SELECT … FROM orders` of *reporting* holds 97 of 100 connections."),
            (16, "bob", "Ended it. Errors go down."),
        ):
            self.diary.plan_action(
                begin + minutes * _MINUTE, partial(self._comment_on_incident, who, text)
            )
        self.diary.plan_action(
            begin + 9 * _HOUR, lambda: self._comment_on_incident("marta", _REVIEW)
        )

    def _link_slow_ones(self) -> None:
        token = self.places.tokens["alice"]
        found = self.fortnight.open_alerts("Checkout is slow")
        iid = self._find_newest_incident(token)["iid"]
        path = f"{build_project_path(SHOP)}/incidents/{iid}/alerts"
        self.machine.call_api(token, "POST", path, alerts=found)

    def _find_newest_incident(self, token: str) -> Any:
        return self.machine.call_api(
            token, "GET", f"{build_project_path(SHOP)}/incidents?status=all"
        )[0]

    def _plan_second_incident(self, begin: datetime) -> None:
        fault = FAULTS_BY_NAME["DiskAlmostFull", "production"]
        self.fortnight.plan_fault(fault, "db-1", begin, 95 * _MINUTE)
        self.diary.plan_action(begin + 6 * _MINUTE, lambda: self._open_incident("Disk almost full"))
        self.diary.plan_action(
            begin + 20 * _MINUTE,
            lambda: self._comment_on_incident(
                "chen", "Old exports. Deleting what is older than 30 days."
            ),
        )

    def _open_incident(self, title: str) -> None:
        found = self.fortnight.open_alerts(title)
        who = self.fortnight.find_user_on_call()
        if found:
            token = self.places.tokens[who]
            fields = {"alerts": found[:1], "assignees": [who], "close_when_resolved": True}
            self.machine.call_api(token, "POST", f"{build_project_path(SHOP)}/incidents", **fields)

    def _comment_on_incident(self, who: str, text: str) -> None:
        """Comment on the newest incident."""
        token = self.places.tokens[who]
        newest = self._find_newest_incident(token)
        path = f"{build_project_path(SHOP)}/incidents/{newest['iid']}"
        if not newest["assignees"]:
            self.machine.call_api(token, "PUT", path, assignees=[who], status="acknowledged")
        self.machine.call_api(token, "POST", f"{path}/notes", body=text)

    def _plan_heartbeats(self, end: datetime) -> None:
        for day in range(ALERT_DAYS, -1, -1):
            night = end - day * _DAY
            backup = night.replace(hour=1, minute=31, second=0)
            if day == 4:  # noqa: PLR2004 - the night in which the disk was full
                self.diary.plan_action(
                    backup, partial(self._ping_heartbeat, "Nightly backup", "/start")
                )
                failed = backup + 7 * _MINUTE
                self.diary.plan_action(
                    failed, partial(self._ping_heartbeat, "Nightly backup", "/1", _BACKUP_LOG)
                )
            elif backup < end:
                self.diary.plan_action(
                    backup, partial(self._ping_heartbeat, "Nightly backup", "/start")
                )
                self.diary.plan_action(
                    backup + 11 * _MINUTE, partial(self._ping_heartbeat, "Nightly backup")
                )
            self.diary.plan_action(night - 4 * _HOUR, partial(self._ping_heartbeat, "Invoice run"))
            for hours in (5, 11, 17, 23):
                self.diary.plan_action(
                    night - hours * _HOUR, partial(self._ping_heartbeat, "Sitemap")
                )

    def _ping_heartbeat(self, name: str, suffix: str = "", body: str = "") -> None:
        self.machine.request_heartbeat_url(self.places.heartbeats[name], suffix, body)

    def _plan_deployments(self, end: datetime) -> None:
        token = self.places.tokens["marta"]
        for name in ("production", "staging"):
            url = f"https://{'www' if name == 'production' else name}.acme.example"
            fields = {"name": name, "external_url": url}
            self.machine.call_api(
                token, "POST", f"{build_project_path(SHOP)}/environments", **fields
            )
        for number, day in enumerate(range(13, 0, -2)):
            for hours, name in ((9, "staging"), (11, "production")):
                status = "failed" if (number, name) == (3, "staging") else "success"
                self.diary.plan_action(
                    end - day * _DAY + hours * _HOUR,
                    partial(self._record_deployment, name, status, number),
                )

    def _record_deployment(self, environment: str, status: str, number: int) -> None:
        fields = {
            "environment": environment,
            "sha": sha256(b"commit %d" % number).hexdigest()[:40],
            "ref": f"v2.{14 + number}.0",
            "tag": True,
            "status": status,
        }
        path = f"{build_project_path(SHOP)}/deployments"
        self.machine.call_api(self.places.tokens["chen"], "POST", path, **fields)

    def _plan_rejections(self, end: datetime) -> None:
        checks, payments = self.places.checks, self.places.payments
        refused = (
            (26 * _HOUR, checks, b'{"title": "Certificate ends', "application/json"),
            (25 * _HOUR, checks, b"subject=Disk+full", "application/x-www-form-urlencoded"),
            (5 * _HOUR, payments, b'["settlement", "late"]', "application/json"),
            (4 * _HOUR, self.places.prometheus, b'{"title": "Cron failed"}', "application/json"),
        )
        for before, sender, body, media_type in refused:
            self.diary.plan_action(
                end - before,
                partial(
                    self.machine.send_to_integration,
                    sender.url,
                    sender.key,
                    body,
                    media_type=media_type,
                ),
            )
        self.diary.plan_action(
            end - 3 * _HOUR,
            lambda: self.machine.send_to_integration(
                payments.url, "gbk-of-last-year", b'{"title": "Late"}'
            ),
        )

    def _plan_silences(self, end: datetime) -> None:
        words = ("silences", "create", SHOP, "--matcher")
        deploy = (*words, 'service="recommendations"', "--for", "3h", "--comment", "Load test")
        self.diary.plan_action(end - 3 * _DAY, lambda: self.machine.run_command(*deploy))
        token = self.places.tokens["bob"]
        search = {
            "matchers": 'service="search"',
            "duration": "8h",
            "comment": "The index is built anew, see the plan of Thursday.",
        }
        self.diary.plan_action(
            end - 2 * _HOUR,
            lambda: self.machine.call_api(
                token, "POST", f"{build_project_path(SHOP)}/silences", **search
            ),
        )
        self.diary.plan_action(end - 5 * _DAY, self._create_override)

    def _create_override(self) -> None:
        """Put Chen on call for a Saturday that is one to two weeks ahead."""
        saturday = self.machine.now + ((5 - self.machine.now.weekday()) % 7 + 7) * _DAY
        begin = saturday.replace(hour=8, minute=0, second=0, microsecond=0)
        path = f"{build_project_path(SHOP)}/on_call/schedules/{self.places.schedule_id}/overrides"
        times = {"starts_at": begin.isoformat(), "ends_at": (begin + 10 * _HOUR).isoformat()}
        self.machine.call_api(self.places.tokens["marta"], "POST", path, user="chen", **times)

    def _plan_current_events(self, end: datetime) -> None:
        occur = self.fortnight.plan_fault
        occur(FAULTS_BY_NAME["ReplicationLag", "production"], "db-2", end - 130 * _MINUTE, None)
        occur(
            FAULTS_BY_NAME["SearchIndexStale", "production"], "search-1", end - 35 * _MINUTE, None
        )
        occur(FAULTS_BY_NAME["MemoryPressure", "production"], "node-3", end - 5 * _HOUR, None)
        occur(FAULTS_BY_NAME["HighErrorRate", "staging"], "staging-1", end - 45 * _MINUTE, None)
        occur(FAULTS_BY_NAME["DiskAlmostFull", "production"], "db-2", end - 90 * _MINUTE, None)
        occur(FAULTS_BY_NAME["SlowResponses", "production"], "web-2", end - 12 * _MINUTE, None)
        occur(FAULTS_BY_NAME["QueueGrowing", "production"], "worker-1", end - 4 * _MINUTE, None)
        errors = FAULTS_BY_NAME["HighErrorRate", "production"]
        occur(errors, "web-2", end - 24 * _MINUTE, None)
        self.diary.plan_action(
            end - 17 * _MINUTE,
            partial(
                self._comment_on_incident, "alice", "Since the release of v2.20.0. Rolling back."
            ),
        )
        payments = self.places.payments
        body = b'{"title": "Settlement is late", "severity": "high", "service": "settlement"}'
        self.diary.plan_action(
            end - 35 * _MINUTE,
            lambda: self.machine.send_to_integration(payments.url, payments.key, body),
        )
