"""Hosts of one service behind a balancer, and clients that use it continuously."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from threading import Condition, Event
from time import monotonic, sleep
from typing import Any
from urllib.parse import urljoin, urlsplit

import requests

from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    make_application,
    make_user,
    sign_in,
)
from tests.support.alerts.senders import JSON, Endpoint, connect
from tests.support.oauth.oauth_wire import parse_redirect
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_with

_READY_SECONDS = 60
_ROUNDS_SECONDS = 120
_numbers = count()


class Balancer:
    """Sends each request to the next host in service."""

    def __init__(self, hosts: list[LiveGatebell]) -> None:
        self.hosts = hosts
        self._serving = list(hosts)
        self._busy: Counter[str] = Counter()
        self._turn = count()
        self._changed = Condition()

    @contextmanager
    def pick(self) -> Iterator[LiveGatebell]:
        """Choose the host for one request."""
        with self._changed:
            host = self._serving[next(self._turn) % len(self._serving)]
            self._busy[host.url] += 1
        try:
            yield host
        finally:
            with self._changed:
                self._busy[host.url] -= 1
                self._changed.notify_all()

    def restart(self, host: LiveGatebell, *, change: Callable[[LiveGatebell], None]) -> None:
        """Take a host out of service, change it, and put it back when it is ready."""
        with self._changed:
            self._serving.remove(host)
            assert self._changed.wait_for(lambda: not self._busy[host.url], _READY_SECONDS)
        assert host.stop() == 0, host.log_text()
        change(host)
        host.start()
        deadline = monotonic() + _READY_SECONDS
        while not is_ready(host):
            assert monotonic() < deadline, host.log_text()
            sleep(0.1)
        with self._changed:
            self._serving.append(host)

    def restart_all(self, change: Callable[[LiveGatebell], None]) -> None:
        """Change one host after another; the others stay ready."""
        for host in self.hosts:
            self.restart(host, change=change)
            assert all(is_ready(each) for each in self.hosts), [h.log_text() for h in self.hosts]


def is_ready(host: LiveGatebell) -> bool:
    return requests.get(f"{host.url}/readyz", timeout=10).status_code == 200


@dataclass
class Record:
    """Collects the results of the clients."""

    answers: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    #: Number of accepted alerts by title. Each title is sent twice, so that the second is grouped.
    accepted: Counter[str] = field(default_factory=Counter)
    #: Number of times that a client has used everything.
    rounds: int = 0
    clients: int = 0
    slowest: float = 0.0

    def wait_for_rounds(self, more: int) -> None:
        """Wait for this number of additional rounds, on slow machines as well."""
        wanted, deadline = self.rounds + more, monotonic() + _ROUNDS_SECONDS
        while self.rounds < wanted:
            assert monotonic() < deadline, self.failures
            sleep(0.05)


@dataclass(frozen=True, kw_only=True)
class Client:
    """Represents a user with a browser, an application, a script and a monitoring system."""

    balancer: Balancer
    record: Record
    person: Person
    application: ClientCredentials
    endpoint: Endpoint
    script_token: str
    browser: requests.Session

    def use_everything(self, refresh_token: str) -> str:
        """Send a request of each kind to any host, and return the next refresh token."""
        pair = self._token(grant_type="refresh_token", refresh_token=refresh_token)
        if not pair:
            return refresh_token
        self._get("/oauth/token/info", pair["access_token"])
        self._get("/api/v4/user", self.script_token)
        alert: dict[str, Any] = {"headers": {**self.endpoint.bearer, "Content-Type": JSON}}
        title = f"Disk {next(_numbers) // 2} full"
        if self._ask("alert", "POST", self.endpoint.path, json={"title": title}, **alert):
            self.record.accepted[title] += 1
        if code := self._approve():
            redirect = {"redirect_uri": self.application.redirect_uri}
            self._token(grant_type="authorization_code", code=code, **redirect)
        return str(pair["refresh_token"])

    def first_refresh_token(self) -> str:
        own = {"username": self.person.username, "password": self.person.password}
        pair = self._token(grant_type="password", scope="read_user offline_access", **own)
        return str(pair["refresh_token"])

    def _token(self, **form: str) -> dict[str, Any]:
        application = self.application
        form |= {"client_id": application.client_id, "client_secret": application.secret}
        answer = self._ask(form["grant_type"], "POST", "/oauth/token", data=form)
        found: dict[str, Any] = answer.json() if answer is not None else {}
        return found

    def _get(self, path: str, token: str) -> None:
        self._ask(path, "GET", path, headers={"Authorization": f"Bearer {token}"})

    def _approve(self) -> str:
        """Open the consent page on one host, and submit it on another."""
        parameters = {
            "client_id": self.application.client_id,
            "redirect_uri": self.application.redirect_uri,
            "response_type": "code",
            "scope": "read_user",
            "state": "s",
            "prompt": "consent",
        }
        ask: dict[str, Any] = {"params": parameters, "session": self.browser}
        page = self._ask("consent page", "GET", "/oauth/authorize", **ask)
        if page is None:
            return ""
        form = form_with(page, "decision")
        action = urlsplit(urljoin(page.url, form.action))
        pressed: dict[str, Any] = {
            "data": form.filled(decision="authorize"),
            "session": self.browser,
        }
        answer = self._ask("consent", "POST", action.path, good=302, **pressed)
        return parse_redirect(answer)["code"] if answer is not None else ""

    def _ask(
        self, what: str, method: str, path: str, *, good: int = 200, **options: Any
    ) -> requests.Response | None:
        session = options.pop("session", requests)
        with self.balancer.pick() as host:
            try:
                answer = session.request(
                    method, f"{host.url}{path}", allow_redirects=False, timeout=60, **options
                )
            except requests.RequestException as error:
                self.record.failures.append(f"{what}: {error}")
                return None
        self.record.answers[what] += 1
        self.record.slowest = max(self.record.slowest, answer.elapsed.total_seconds())
        if answer.status_code == good:
            found: requests.Response = answer
            return found
        self.record.failures.append(f"{what}: {answer.status_code} {answer.text[:200]}")
        return None


MakeClient = Callable[[Balancer, Record], Client]


def client_of_database(balancer: Balancer, record: Record) -> Client:
    """Create a client in a database with the schema of this release."""
    host = balancer.hosts[0]
    person = make_user(host)
    token = host.cli("tokens", "create", person.username, "--name", "x", "--scopes", "api")
    return Client(
        balancer=balancer,
        record=record,
        person=person,
        application=make_application(host, person, scopes="read_user offline_access"),
        endpoint=connect(host),
        script_token=token["token"],
        browser=sign_in(host, person),
    )


@contextmanager
def clients_at_work(
    balancer: Balancer, how_many: int, *, pause: float = 0, make: MakeClient = client_of_database
) -> Iterator[Record]:
    """Run clients for the duration of the block, with a pause between rounds."""
    record, end = Record(clients=how_many), Event()
    clients = [make(balancer, record) for _ in range(how_many)]

    def work(client: Client) -> None:
        token = client.first_refresh_token()
        while not end.is_set():
            token = client.use_everything(token)
            record.rounds += 1
            sleep(pause)

    with ThreadPoolExecutor(how_many) as threads:
        running = [threads.submit(work, client) for client in clients]
        try:
            yield record
        finally:
            end.set()
    for each in running:
        each.result()
