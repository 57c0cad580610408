"""Simulates two weeks of a team of five with two projects, and checks pages and answers.

The clock of the service is moved from one night to the next. In between, its worker, web server and
database are killed. At the end, all alerts must be stored, and all pages sent.
"""

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import sleep
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import requests

from domain.access.roles import Role
from tests.conftest import KINDS
from tests.faults.conftest import BreakablePostgres
from tests.faults.database.test_database_away import locked
from tests.faults.processes import children, wait_until, web_processes
from tests.faults.test_clock_set_back import MOVED_CLOCK
from tests.support.accounts.api_caller import ApiCaller, api_caller
from tests.support.accounts.people import Person, make_user
from tests.support.accounts.team import give_role
from tests.support.alerts.senders import Endpoint, connect
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.service.live import ROOT, SECRET_KEY, LiveGatebell

BERLIN = ZoneInfo("Europe/Berlin")
TEAM = ("ada", "ben", "cleo", "dan", "eve")
_TODAY = datetime.now(BERLIN).replace(hour=10, minute=0, second=0, microsecond=0)
#: The next Monday, so that tokens that are created today are valid in both weeks.
MONDAY = _TODAY + timedelta(days=7 - _TODAY.weekday())
SHOP, PAY = "acme/shop", "acme/pay"


@dataclass(frozen=True)
class Night:
    """Describes an alert, the program that is killed before it, and the users' actions."""

    day: int
    at: str
    project: str
    #: The expected recipients, in order.
    told: tuple[str, ...]
    #: One of: answered, late (the next user answers), recovers, silenced or unanswered.
    story: str = "answered"
    #: One of: worker, web, database or everything.
    dies: str = ""

    @property
    def title(self) -> str:
        return f"Night {self.day:02} in {self.project.rpartition('/')[2]}"

    @property
    def moment(self) -> datetime:
        hour, minute = map(int, self.at.split(":"))
        return (MONDAY + timedelta(days=self.day)).replace(hour=hour, minute=minute)

    @property
    def answered_by(self) -> str | None:
        return self.told[-1] if self.story in {"answered", "late"} else None


#: Ada is on call in the first week, and Ben in the second one. Cleo covers the night of Thursday.
#: From the second Thursday on, the second project has its own policy.
NIGHTS = (
    Night(0, "23:10", SHOP, ("ada",)),
    Night(1, "02:40", PAY, ("ada",), dies="worker"),
    Night(2, "03:15", SHOP, ("ada", "eve"), "late", dies="web"),
    Night(3, "23:50", SHOP, ("cleo",), dies="database"),
    Night(4, "03:05", PAY, ("cleo",), "recovers"),
    Night(5, "04:00", SHOP, (), "silenced"),
    Night(6, "02:30", PAY, ("ada",), dies="everything"),
    Night(6, "03:30", SHOP, ("ada",)),
    Night(7, "08:59", SHOP, ("ada",)),
    Night(7, "09:01", PAY, ("ben",), dies="worker"),
    Night(8, "01:20", PAY, ("ben", "eve"), "unanswered"),
    Night(9, "05:00", SHOP, ("ben",), dies="database"),
    Night(10, "12:00", PAY, ("dan",)),
    Night(11, "00:30", SHOP, ("ben", "eve"), "late", dies="worker"),
    Night(12, "02:00", PAY, ("dan",), dies="web"),
    Night(13, "06:45", SHOP, ("ben",), "recovers", dies="everything"),
)


@dataclass
class Weeks:
    """Represents the team, its two projects and its service."""

    live: LiveGatebell
    mailbox: Mailbox
    moved: Path
    postgres: BreakablePostgres | None
    people: dict[str, Person] = field(default_factory=dict)
    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    kills: int = 0

    def go_to(self, moment: datetime) -> None:
        """Move the clock of the service, which continues from there."""
        self.moved.write_text(str((moment - datetime.now(UTC)).total_seconds()))

    def caller(self, name: str, path: str) -> ApiCaller:
        return api_caller(self.live, self.people[name], path)

    def begin(self) -> None:
        """Create the team, with one schedule and one policy of the group for both projects."""
        self.live.cli("groups", "create", "acme")
        for path in (SHOP, PAY):
            self.live.cli("projects", "create", path)
            self.endpoints[path] = connect(self.live, path)
        for name in TEAM:
            self.people[name] = make_user(self.live, name=name)
            role = Role.MAINTAINER if name == "dan" else Role.DEVELOPER
            give_role(self.live, "acme", self.people[name], role)
        call = self.caller("dan", "/groups/acme")
        rotation = {
            "name": "Weeks",
            "type": "weekly",
            "users": [self.people[name].username for name in TEAM],
            "weekdays": ["mon"],
            "handover_time": "09:00",
            "starts_on": f"{MONDAY:%Y-%m-%d}",
        }
        schedule = call.done(
            "POST",
            "/on_call/schedules",
            json={"name": "Primary", "time_zone": "Europe/Berlin", "rotations": [rotation]},
            status=201,
        )
        eve = self.people["eve"].username
        policy = {
            "name": "Night",
            "default": True,
            "steps": ["0s schedule:Primary", f"5m user:{eve}"],
        }
        call.done("POST", "/escalation_policies", json=policy, status=201)
        thursday = MONDAY + timedelta(days=3)
        cover = {
            "user": self.people["cleo"].username,
            "starts_at": thursday.replace(hour=20).isoformat(),
            "ends_at": (thursday + timedelta(days=1)).replace(hour=8).isoformat(),
        }
        call.done("POST", f"/on_call/schedules/{schedule['id']}/overrides", json=cover, status=201)

    def let_die(self, what: str) -> None:
        """Kill a part of the service without a warning; it has to restart by itself."""
        if not what:
            return
        self.kills += 1
        if what == "everything":
            for pid in _descendants(self.live.pid):
                os.kill(pid, signal.SIGKILL)
            os.kill(self.live.pid, signal.SIGKILL)
            self.live.wait()
            self.live.start()
        elif what == "worker":
            (worker,) = [
                pid for pid, words in children(self.live.pid) if "web.jobs.worker" in words
            ]
            os.kill(worker, signal.SIGKILL)
        elif what == "web":
            os.kill(web_processes(self.live)[0], signal.SIGKILL)

    @contextmanager
    def database_away(self, what: str) -> Iterator[None]:
        """Stop the database, or hold SQLite's lock, for the duration of the block."""
        if what != "database":
            yield
        elif self.postgres is None:
            with locked(self.live):
                yield
        else:
            self.postgres.server.stop()
            try:
                yield
            finally:
                self.postgres.server.ensure_postgres_running()
                self.live.engine().dispose()

    def send(self, night: Night, **fields: Any) -> None:
        """Send an alert as a monitor does, until it is accepted."""
        wait_until(lambda: self._is_taken(night, fields), seconds=120, pause=1)

    def _is_taken(self, night: Night, fields: dict[str, Any]) -> bool:
        alert = {"title": night.title, "severity": "critical", "fingerprint": night.title}
        try:
            return self.endpoints[night.project].send(**alert, **fields).status_code == 200
        except requests.RequestException:
            return False

    def messages_to(self, name: str, title: str) -> list[str]:
        """Return the messages to a user about a firing alert."""
        address = self.people[name].email
        return [
            each.text
            for each in list(self.mailbox.messages)
            if str(each["To"]) == address
            and title in f"{each['Subject']}\n{each.text}"
            and "/-/acknowledge/" in each.text
        ]

    def wait_for(self, name: str, night: Night) -> str:
        """Wait for the message to a user, and return its acknowledgement link."""
        wait_until(lambda: self.messages_to(name, night.title), seconds=120)
        found = re.search(
            rf"{self.live.url}/-/acknowledge/\S+", self.messages_to(name, night.title)[-1]
        )
        assert found is not None
        return found[0]

    def acknowledge(self, link: str) -> None:
        wait_until(lambda: requests.post(link, timeout=30).status_code == 200, seconds=60, pause=1)


def _descendants(parent: int) -> list[int]:
    found = [pid for pid, _ in children(parent)]
    return found + [each for pid in found for each in _descendants(pid)]


@pytest.fixture(params=KINDS)
def weeks(
    request: pytest.FixtureRequest, tmp_path: Path, breakable_postgres: BreakablePostgres
) -> Iterator[Weeks]:
    (tmp_path / "sitecustomize.py").write_text(MOVED_CLOCK)
    moved = tmp_path / "moved"
    is_postgres = request.param == "postgres"
    mailbox = Mailbox()
    with running_mail_server(mailbox) as port:
        live = LiveGatebell(
            instance_path=tmp_path / "instance",
            database_url=breakable_postgres.new_database() if is_postgres else "",
            SECRET_KEY=SECRET_KEY,
            MAIL_URL=f"smtp://127.0.0.1:{port}",
            PYTHONPATH=str(tmp_path),
            CODE=str(ROOT),
            MOVED_BY=str(moved),
        )
        found = Weeks(live, mailbox, moved, breakable_postgres if is_postgres else None)
        found.go_to(MONDAY)
        live.start()
        try:
            yield found
        finally:
            live.stop()
            live.close()


@pytest.mark.faults_full
@pytest.mark.both_databases
@pytest.mark.spec("J1")
def test_two_weeks_of_a_team(weeks: Weeks) -> None:
    weeks.begin()
    for night in NIGHTS:
        _run_night(weeks, night)
    _check_account(weeks)


def _run_night(weeks: Weeks, night: Night) -> None:
    weeks.go_to(night.moment)
    if night.story == "silenced":
        silence = {"matchers": 'severity="critical"', "duration": "1h"}
        weeks.caller("ada", "/groups/acme").done("POST", "/silences", json=silence, status=201)
    if night.day == 10:
        own = {"name": "Own", "default": True, "steps": [f"0s user:{weeks.people['dan'].username}"]}
        weeks.caller("dan", f"/projects/{PAY}").done(
            "POST", "/escalation_policies", json=own, status=201
        )
    weeks.let_die(night.dies)
    with weeks.database_away(night.dies):
        sleep(1)
    weeks.send(night)
    for number, name in enumerate(night.told):
        if number:
            weeks.go_to(night.moment + timedelta(minutes=5, seconds=30))
        link = weeks.wait_for(name, night)
        if night.answered_by == name:
            weeks.acknowledge(link)
    if night.story == "unanswered":
        weeks.go_to(night.moment + timedelta(minutes=30))
        sleep(3)
    if night.story in {"recovers", "silenced", "unanswered"}:
        weeks.send(night, end_time=(night.moment + timedelta(hours=1)).isoformat())


def _check_account(weeks: Weeks) -> None:
    """Compare the stored alerts and received messages to the expected ones."""
    stored = {
        alert["title"]: alert
        for path in (SHOP, PAY)
        for alert in weeks.caller("dan", f"/projects/{path}").done(
            "GET", "/alert_management_alerts", params={"per_page": 100, "status": "all"}
        )
    }
    assert stored.keys() == {night.title for night in NIGHTS}
    for night in NIGHTS:
        told = {name: len(weeks.messages_to(name, night.title)) for name in TEAM}
        firing = {name for name, count in told.items() if count}
        assert firing == set(night.told), (night, told)
        expected = "acknowledged" if night.answered_by else "resolved"
        assert stored[night.title]["status"] == expected, night
    for path in (SHOP, PAY):
        _check_report(weeks, path, [night for night in NIGHTS if night.project == path])


def _check_report(weeks: Weeks, path: str, nights: list[Night]) -> None:
    """Compare the report of both weeks to the events."""
    asked = {"from": MONDAY.isoformat(), "until": (MONDAY + timedelta(days=14)).isoformat()}
    report = weeks.caller("dan", f"/projects/{path}").done(
        "GET", "/on_call/report", params={**asked, "time_zone": "Europe/Berlin"}
    )
    totals = report["totals"]
    assert (totals["alerts"], totals["pages"], totals["acknowledged"]) == (
        len(nights),
        sum(len(night.told) for night in nights),
        sum(night.answered_by is not None for night in nights),
    )
    told = [(night.title, weeks.people[name].username) for night in nights for name in night.told]
    assert sorted((page["title"], page["user"]) for page in report["pages"]) == sorted(told)
