"""Runs the service of a checkout in this process, with the same users and objects each time.

The clock stands still, and the database is restored before each request, so that a response depends
only on the request.
"""

import json
import os
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import flask
from werkzeug.test import TestResponse

from tests.support.service.url_rules import RememberedRule
from tests.support.wire.html_forms import forms_in

NOW = datetime(2031, 3, 3, 12, 0, tzinfo=UTC)
PASSWORD = "a long passphrase of the recordings 77"
SHA = "4f2c1d6b8e9a0c3d5e7f9a1b2c3d4e5f60718293"
REGISTRY_SECRET = "the-secret-of-notifications-of-the-registry"
#: Project with all objects, an archived one, and one with all features turned off.
SHOP, OLD, OFF = "acme/shop", "acme/old", "acme/off"
PROJECTS = (SHOP, OLD, OFF)
_MANY = "100000000/minute"
_LIMITS = (
    *("ALERT", "API", "EVENTS_ADDRESS", "HEARTBEAT", "HEARTBEAT_ADDRESS", "CLIENT_REGISTRATION"),
    *("OAUTH", "GIT", "RELEASE_CHECK", "USERS_API", "USER_API", "PROJECTS_API", "PROJECT_API"),
    *("ANONYMOUS_PROJECTS_API", "GROUPS_API", "GROUP_API", "GROUP_PROJECTS_API", "MEMBERS_API"),
)
_SETTINGS = {
    "BASE_URL": "http://localhost",
    "SECRET_KEY": "a key that only recordings have, and everybody knows",
    "LOG_LEVEL": "CRITICAL",
    "REGISTRY_URL": "http://registry.invalid:5000",
    "REGISTRY_NOTIFICATION_SECRETS": REGISTRY_SECRET,
    "DYNAMIC_CLIENT_REGISTRATION": "true",
    "OPEN_CLIENT_REGISTRATION": "true",
    "OAUTH2_DEVICE_GRANT_FLOW": "true",
    "ADMINISTRATOR_PROOF_SECONDS": "86400",
    "SIGN_IN_ATTEMPTS_PER_ADDRESS": "100000",
    "USER_CODE_ATTEMPTS_PER_ADDRESS": "100000",
    **{f"{name}_RATE_LIMIT": _MANY for name in _LIMITS},
}


@dataclass
class Happened:
    """Changes of a request to the database."""

    events: list[dict[str, Any]] = field(default_factory=list)
    #: Number of added rows by table.
    rows: dict[str, int] = field(default_factory=dict)


class World:
    """The application of a checkout, its database, and information about both."""

    def __init__(self, checkout: Path, folder: Path) -> None:
        """Import the application of a checkout; no other may have been imported before."""
        sys.path.insert(0, str(checkout))
        os.chdir(checkout)
        flask.Flask.url_rule_class = RememberedRule
        from web.database.schema import migrate_to_newest  # noqa: PLC0415
        from web.settings.environment import parse_settings  # noqa: PLC0415

        settings = parse_settings(_SETTINGS | {"INSTANCE_PATH": str(folder)})
        migrate_to_newest(settings)
        self._settings = replace(settings, password_hash_memory_kib=64, password_hash_passes=1)
        self._watch = sqlite3.connect(folder / "gatebell.db", isolation_level=None)
        self._pristine = sqlite3.connect(":memory:")
        self.app = self.new_app()
        #: Values of the variables of URL rules, by project.
        self.things: dict[str, dict[str, str]] = {}
        self.tokens: dict[str, str] = {}
        self.cookies: dict[str, dict[str, str]] = {}

    def new_app(self) -> Any:
        """Return a new application without cached data."""
        from app import create_app  # noqa: PLC0415

        self.app = create_app(self._settings, clock=lambda: NOW)
        return self.app

    def send(
        self, method: str, path: str, *, cookies: dict[str, str] | None = None, **options: Any
    ) -> TestResponse:
        """Send a request with cookies, which the response may change."""
        headers = dict(options.pop("headers", {}))
        if cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in cookies.items())
        client = self.app.test_client(use_cookies=False)
        answer: TestResponse = client.open(path, method=method, headers=headers, **options)
        if cookies is not None:
            for line in answer.headers.getlist("Set-Cookie"):
                name, _, value = line.partition(";")[0].partition("=")
                cookies[name] = value
        return answer

    def run(self, *words: str, stdin: str = "") -> Any:
        """Run a command."""
        return self.app.test_cli_runner().invoke(args=words, input=stdin)

    def api(self, who: str, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Call the API as a user; the request has to succeed."""
        headers = {"PRIVATE-TOKEN": self.tokens[who]}
        answer = self.send(method, f"/api/v4{path}", headers=headers, json=body or {})
        if answer.status_code >= 300:
            message = f"{method} {path} {body}: {answer.status_code} {answer.text}"
            raise RuntimeError(message)
        return answer.get_json(silent=True)

    def happened(self) -> Happened:
        """Return the changes of the last request, and undo them."""
        version = self._version()
        if version == self._seen_version:
            return Happened()
        found = Happened(
            events=list(self._new_events()),
            rows={
                table: count - self._counts[table]
                for table, count in self._count().items()
                if count != self._counts[table]
            },
        )
        if self._settings_rows() != self._kept_settings:
            self._restore()
            self.new_app()
        else:
            self._restore()
        return found

    def keep(self) -> None:
        """Save the current database as the state before each request."""
        self._watch.backup(self._pristine)
        self._counts = self._count()
        self._kept_settings = self._settings_rows()
        self._last_event = self._watch.execute("SELECT max(id) FROM audit_events").fetchone()[0]
        self._seen_version = self._version()

    def _restore(self) -> None:
        self._pristine.backup(self._watch)
        self._seen_version = self._version()

    def _version(self) -> tuple[int, int]:
        # The first number changes when another connection writes, the second when this one does.
        return (
            self._watch.execute("PRAGMA data_version").fetchone()[0],
            self._watch.total_changes,
        )

    def _tables(self) -> list[str]:
        rows = self._watch.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '%\\_fts%'"
            " ESCAPE '\\' AND name NOT LIKE 'sqlite%' ORDER BY name"
        )
        return [name for (name,) in rows]

    def _count(self) -> dict[str, int]:
        return {
            table: self._watch.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]  # noqa: S608
            for table in self._tables()
        }

    def _settings_rows(self) -> list[Any]:
        return self._watch.execute("SELECT * FROM instance_settings ORDER BY name").fetchall()

    def _new_events(self) -> Iterator[dict[str, Any]]:
        rows = self._watch.execute(
            "SELECT kind, actor_name, user_id, project_id, group_id, subject, details, address"
            " FROM audit_events WHERE id > ? ORDER BY id",
            (self._last_event,),
        )
        names = [column[0] for column in rows.description]
        for row in rows:
            event = dict(zip(names, row, strict=True))
            yield event | {"details": json.loads(event["details"] or "{}")}

    def sign_in(self, name: str) -> dict[str, str]:
        """Sign in and return the cookies of the browser."""
        cookies: dict[str, str] = {}
        page = self.send("GET", "/users/sign_in", cookies=cookies)
        form = next(form for form in forms_in(page.text) if form.has("password"))
        sent = dict(form.filled(login=name, password=PASSWORD))
        answer = self.send("POST", form.action, cookies=cookies, data=sent)
        if answer.status_code != 302:
            message = f"{name} could not sign in: {answer.text}"
            raise RuntimeError(message)
        return cookies
