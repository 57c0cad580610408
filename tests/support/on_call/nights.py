"""A project with on-call schedules in an app of this process, with a clock that tests set."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from flask import Flask
from sqlalchemy.orm import Session

from domain.paging.on_call.shifts import find_current_and_next_users, find_users_on_call
from tests.support.service.commands import operate
from web.extensions import db

BERLIN = ZoneInfo("Europe/Berlin")
PROJECT = "acme/shop"
AT = "/api/v4/projects/acme%2Fshop/on_call/schedules"


def berlin(text: str, *, fold: int = 0) -> datetime:
    """Return a local time in Berlin; `fold` is 1 for the second of two equal times."""
    local = datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold)
    return local.astimezone(UTC)


def wire(moment: datetime) -> str:
    """Return a time in the format of the API."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Nights:
    """Alice, Bob and Carol, developers of a project, and Olga, who maintains it."""

    def __init__(self, app: Flask, start: datetime) -> None:
        """Start at a time."""
        self.app, self.now = app, start
        app.extensions["gatebell"] = replace(app.extensions["gatebell"], clock=lambda: self.now)
        operate(app, "groups", "create", "acme")
        operate(app, "projects", "create", PROJECT)
        self.tokens: dict[str, str] = {}
        self.names: dict[int, str] = {}
        for name, role in (
            *((name, "Developer") for name in ("alice", "bob", "carol")),
            ("olga", "Maintainer"),
        ):
            self.enter(name, role)
        self.schedule = 0

    def enter(self, name: str, role: str) -> None:
        """Make a user a member with a token."""
        made = operate(self.app, "users", "create", name, "--email", f"{name}@people.example")
        self.names[made["id"]] = name
        operate(self.app, "members", "add", PROJECT, name, role)
        self.give_token(name)

    def give_token(self, name: str) -> None:
        """Create another token for a user, since the first one expires after a year."""
        made = operate(self.app, "tokens", "create", name, "--name", "any", "--scopes", "api")
        self.tokens[name] = made["token"]

    def create(self, *rotations: str, zone: str = "Europe/Berlin", name: str = "Primary") -> int:
        """Create a schedule by command; later calls use this schedule."""
        given = [word for each in rotations for word in ("--rotation", each)]
        made = operate(
            self.app,
            *("schedules", "create", PROJECT, "--name", name, "--time-zone", zone, *given),
        )
        self.schedule = made["id"]
        return self.schedule

    def call(
        self, name: str, method: str, path: str = "", *, status: int = 200, **sent: Any
    ) -> Any:
        """Call the API of the schedule as a user, and return the JSON of the response."""
        answer = self.app.test_client().open(
            f"{AT}/{self.schedule}{path}",
            method=method,
            headers={"PRIVATE-TOKEN": self.tokens[name]},
            **sent,
        )
        assert answer.status_code == status, (answer.status_code, answer.text)
        return answer.get_json() if answer.data else None

    def on_call(self) -> list[str]:
        """Return the names of the users on call now, from the function that the worker uses."""
        return self._names(find_users_on_call)

    def next(self) -> list[str]:
        """Return the names of the users who are on call next."""
        return self._names(_next_on_call)

    def _names(self, asked: Any) -> list[str]:
        with self.app.app_context():
            found: Mapping[int, tuple[int, ...]] = asked(
                [self.schedule], moment=self.now, session=db.session()
            )
            db.session.rollback()
        return sorted(self.names[each] for each in found[self.schedule])

    def shifts(self, start: datetime, end: datetime) -> list[tuple[str, str, list[str]]]:
        """Return the shifts between two times, in the time zone of Berlin."""
        query = {"from": wire(start), "until": wire(end)}
        found = self.call("alice", "GET", "/shifts", query_string=query)
        return [
            (
                _local(each["starts_at"]),
                _local(each["ends_at"]),
                sorted(user["username"] for user in each["users"]),
            )
            for each in found
        ]

    def wait(self, **length: float) -> None:
        """Let time pass."""
        self.now += timedelta(**length)


def _local(text: str) -> str:
    return f"{datetime.fromisoformat(text).astimezone(BERLIN):%a %d %b %H:%M}"


def _next_on_call(
    schedule_ids: Collection[int], *, moment: datetime, session: Session
) -> Mapping[int, tuple[int, ...]]:
    found = find_current_and_next_users(schedule_ids, moment=moment, session=session)
    return {each: shown.next.user_ids if shown.next else () for each, shown in found.items()}
