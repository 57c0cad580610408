"""Visitors that use tokens, pages, repositories and commands."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from itertools import count, cycle
from time import monotonic, sleep

from bench.soak.callers import RecordingClient, SoakVisitor, WrongResponseError
from bench.soak.ledger import ResponseLedger
from bench.soak.soak_service import SoakService
from tests.faults.slow_clients import KINDS, trickling
from tests.support.accounts.people import Person, open_browser
from tests.support.oauth.device_wire import DEVICE_GRANT
from tests.support.oauth.oauth_wire import parse_redirect
from tests.support.wire.html_forms import form_with
from tests.support.wire.kept_connection import KeptConnection, build_request_head

_DEVICE_SECONDS = 5.5
_REFRESHES_PER_CODE = 5
_ALERT_LINK_PATTERN = re.compile(r'href="([^"]+/-/alerts/\d+)"')
_WRONG_VALUE = "wrong"
#: Timeout for a command in seconds, which is long for busy machines.
_COMMAND_TIMEOUT_SECONDS = 300


def _build_bearer_header(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


class ApplicationVisitor:
    """An application that gets codes for a user, and uses the tokens until it revokes them."""

    def __init__(self, service: SoakService, ledger: ResponseLedger) -> None:
        self._client = service.client
        browser = open_browser(service.live, service.owner)
        self._browser = RecordingClient(service.live.url, ledger, browser)
        self._server = RecordingClient(service.live.url, ledger)
        self._access = self._refresh = ""
        self._refreshes = 0

    def turn(self) -> None:
        """Get or refresh the tokens, and use them."""
        if not self._refresh:
            self._redeem()
        elif self._refreshes < _REFRESHES_PER_CODE:
            self._renew()
        else:
            self._end()
            return
        self._server.ask(
            "token info", "GET", "/oauth/token/info", headers=_build_bearer_header(self._access)
        )
        self._server.ask("user", "GET", "/api/v4/user", headers=_build_bearer_header(self._access))
        form = {"token": self._access, **self._credentials}
        said = self._server.ask("introspection", "POST", "/oauth/introspect", data=form).json()
        if not said["active"]:
            self._server.ledger.note("introspection", "valid token is inactive", is_right=False)

    @property
    def _credentials(self) -> dict[str, str]:
        return {"client_id": self._client.client_id, "client_secret": self._client.secret}

    def _redeem(self) -> None:
        parameters = {
            "client_id": self._client.client_id,
            "redirect_uri": self._client.redirect_uri,
            "response_type": "code",
            "scope": "read_user",
            "state": "s",
        }
        page = self._browser.ask(
            "authorization", "GET", "/oauth/authorize", good=(302,), params=parameters
        )
        code = parse_redirect(page)["code"]
        redirect = {"redirect_uri": self._client.redirect_uri}
        self._take("code exchange", grant_type="authorization_code", code=code, **redirect)
        self._refreshes = 0

    def _renew(self) -> None:
        self._refreshes += 1
        try:
            self._take("refresh", grant_type="refresh_token", refresh_token=self._refresh)
        except WrongResponseError:
            self._refresh = ""  # it is unknown which token is valid
            raise

    def _take(self, what: str, **form: str) -> None:
        form |= self._credentials
        said = self._server.ask(what, "POST", "/oauth/token", data=form).json()
        self._access, self._refresh = said["access_token"], said["refresh_token"]

    def _end(self) -> None:
        form = {"token": self._refresh, **self._credentials}
        self._refresh = ""
        self._server.ask("revocation", "POST", "/oauth/revoke", data=form)
        self._server.ask(
            "revoked token",
            "GET",
            "/oauth/token/info",
            good=(401,),
            headers=_build_bearer_header(self._access),
        )


class DeviceVisitor:
    """A television that a user connects with its code."""

    def __init__(self, service: SoakService, ledger: ResponseLedger) -> None:
        self._client_id = service.device.client_id
        self._set = RecordingClient(service.live.url, ledger)
        browser = open_browser(service.live, service.owner)
        self._browser = RecordingClient(service.live.url, ledger, browser)

    def turn(self) -> None:
        """Request a code, enter and approve it, and get tokens."""
        form = {"client_id": self._client_id, "scope": "read_user"}
        said = self._set.ask("device request", "POST", "/oauth/authorize_device", data=form).json()
        device = said["device_code"]
        self._poll("device poll, pending", device, good=(400,))
        page = self._browser.ask("device page", "GET", "/oauth/device")
        form_of_code = form_with(page, "user_code")
        page = self._browser.ask(
            "device code entry",
            "POST",
            form_of_code.action or "/oauth/device",
            data=form_of_code.filled(user_code=said["user_code"]),
        )
        asked_for = form_with(page, "decision")
        self._browser.ask(
            "device approval",
            "POST",
            asked_for.action or "/oauth/device",
            data=asked_for.filled(decision="approve"),
        )
        sleep(_DEVICE_SECONDS)
        self._poll("device poll, approved", device, good=(200,))

    def _poll(self, what: str, device: str, *, good: tuple[int, ...]) -> None:
        form = {"grant_type": DEVICE_GRANT, "client_id": self._client_id, "device_code": device}
        self._set.ask(what, "POST", "/oauth/token", good=good, data=form)


class PageVisitor:
    """A signed-in user who opens one page after the other."""

    def __init__(
        self, service: SoakService, ledger: ResponseLedger, person: Person, paths: list[str]
    ) -> None:
        self._caller = RecordingClient(service.live.url, ledger, open_browser(service.live, person))
        self._paths = cycle(paths)

    def turn(self) -> None:
        """Open the next page."""
        page = self._caller.ask("page", "GET", next(self._paths))
        if alert := _ALERT_LINK_PATTERN.search(page.text):
            # The first alert of a list has not been pruned yet.
            self._caller.ask("alert page", "GET", alert[1])


def _list_member_pages(service: SoakService) -> list[str]:
    project, paging = service.script.project, service.pager.project
    return [
        "/",
        f"/{project}",
        f"/{project}/-/alerts",
        f"/{project}/-/alerts?status=all&search=Disk",
        f"/{project}/-/alerts/export.csv",
        "/-/alerts",
        f"/{paging}/-/alerts?status=all",
        f"/{paging}/-/on_call",
        f"/{paging}/-/on_call/policies",
        f"/{paging}/-/on_call/routes",
        f"/{paging}/-/on_call/reports",
        "/-/on_call",
        "/-/user_settings/applications",
        "/-/user_settings/authorized_applications",
        "/-/user_settings/contacts",
        "/-/user_settings/activity",
        "/help",
        "/help/releases",
        "/help/guides/alertmanager",
        f"/{service.git_project}",
    ]


_ADMINISTRATOR_PAGES = [
    "/admin",
    "/admin/users",
    "/admin/audit",
    "/admin/audit_streams",
    "/admin/applications",
    "/admin/queues",
    "/admin/settings",
    "/admin/api_usage",
    "/metrics",
]


class GitVisitor:
    """A developer who clones a repository and occasionally pushes to it."""

    _PUSHES_OF = 4

    def __init__(self, service: SoakService, ledger: ResponseLedger) -> None:
        self._service = service
        self._ledger = ledger
        self._numbers = count(1)

    def turn(self) -> None:
        """Clone the repository, and push every fourth time."""
        git, number = self._service.git, next(self._numbers)
        into = f"clone-{number}"
        try:
            cloned = ("clone", "--quiet", git.url(self._service.git_project), into)
            if not self._run("git clone", *cloned) or number % self._PUSHES_OF:
                return
            work = git.home / into
            git.commit(work, {"file-1": f"words {number}\n".encode()}, message="Change")
            pushed = ("-C", str(work), "push", "--quiet", "origin", "main")
            self._run("git push", *pushed)
        finally:
            shutil.rmtree(git.home / into, ignore_errors=True)

    def _run(self, what: str, *arguments: str) -> bool:
        began = monotonic()
        done = self._service.git.run(*arguments)
        is_right = done.status == 0
        said = "done" if is_right else f"{done.status}: {done.said}"
        self._ledger.note(what, said, took=monotonic() - began, is_right=is_right)
        return is_right


class CommandVisitor:
    """An operator who runs commands while the service is running."""

    def __init__(self, service: SoakService, ledger: ResponseLedger) -> None:
        self._service = service
        self._ledger = ledger
        self._commands = cycle(
            (
                ("prune",),
                ("alerts", "list", service.pager.project),
                ("prune",),
                ("users", "list"),
                ("prune",),
                ("integrations", "list", service.pager.project),
            )
        )

    def turn(self) -> None:
        """Run the next command."""
        command, began = next(self._commands), monotonic()
        live = self._service.live
        done = subprocess.run(
            [live.python, "gatebell.py", *command],
            cwd=live.code,
            env=live.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_COMMAND_TIMEOUT_SECONDS,
            check=False,
        )
        is_right = done.returncode == 0
        said = "done" if is_right else f"{done.returncode}: {done.stderr}"
        took = monotonic() - began
        what = f"gatebell {' '.join(command[:2])}"
        self._ledger.note(what, said, took=took, is_right=is_right)


class HostileVisitor:
    """A hostile client that sends wrong credentials, malformed data and endless requests."""

    _LARGE = b"x" * 300_000

    def __init__(self, service: SoakService, ledger: ResponseLedger) -> None:
        self._service = service
        self._ledger = ledger
        self._caller = RecordingClient(service.live.url, ledger)
        self._turns = cycle(
            (self._wrong_password, self._wrong_token, self._garbage, self._bad_bodies)
        )

    def turn(self) -> None:
        """Run the next attack."""
        next(self._turns)()

    def trickle(self) -> None:
        """Start requests of all kinds, and send them one byte at a time."""
        for said in KINDS.values():
            with trickling(self._service.live.port, said(self._service.script), 2, pause=0.5):
                sleep(3)
        self._ledger.note("slow requests, byte by byte", "closed")

    def _wrong_password(self) -> None:
        self._caller.session.cookies.clear()
        page = self._caller.ask("sign-in page", "GET", "/users/sign_in")
        form = form_with(page, "password")
        fields = form.filled(login=self._service.owner.username, password=_WRONG_VALUE)
        path = form.action or "/users/sign_in"
        self._caller.ask("wrong password", "POST", path, good=(200, 401, 422), data=fields)

    def _wrong_token(self) -> None:
        for path in ("/oauth/token/info", "/api/v4/user", "/api/v4/projects"):
            self._caller.ask(
                "wrong token", "GET", path, good=(401,), headers=_build_bearer_header("x" * 64)
            )
        form = {"grant_type": "authorization_code", "code": "x", "client_id": "x"}
        self._caller.ask("wrong client", "POST", "/oauth/token", good=(400, 401), data=form)

    def _garbage(self) -> None:
        for said in (
            b"\x16\x03\x01garbage\r\n\r\n",
            build_request_head("/" + "x" * 9000),
            b"GET\r\n\r\n",
        ):
            with KeptConnection(self._service.live.port) as connection:
                connection.socket.sendall(said)
                answered = connection.rest().split(b"\r\n")[0].decode("latin-1")
            is_right = answered[:12] in {"HTTP/1.1 400", "HTTP/1.1 414", ""}
            self._ledger.note("malformed request", answered[9:12] or "closed", is_right=is_right)

    def _bad_bodies(self) -> None:
        path, headers = self._service.script.path, self._service.script.bearer
        for body, good in ((b"{", 400), (self._LARGE, 413), (b"\xff" * 99, 400)):
            given = {**headers, "Content-Type": "application/json"}
            self._caller.ask("invalid body", "POST", path, good=(good,), data=body, headers=given)


def _build_check_visitor(service: SoakService, ledger: ResponseLedger) -> Callable[[], None]:
    line = "curl --silent https://gate.example/api/v4/projects/$ID/issues?private_token=$T\n"
    sizes = cycle((30, 30, 30, 3_000))
    caller = RecordingClient(service.live.url, ledger)

    def turn() -> None:
        body = {"name": "deploy.sh", "content": line * next(sizes)}
        headers = {"Content-Type": "application/json"}
        path = "/api/v4/releases/check"
        caller.ask("release check", "POST", path, data=json.dumps(body), headers=headers)

    return turn


def _build_ping_visitor(service: SoakService, ledger: ResponseLedger) -> Callable[[], None]:
    caller = RecordingClient(service.live.url, ledger)
    return lambda: (caller.ask("heartbeat", "POST", service.job.url), None)[1]


def build_visitors(service: SoakService, ledger: ResponseLedger) -> list[SoakVisitor]:
    """Return all visitors."""
    stranger = HostileVisitor(service, ledger)
    member = PageVisitor(service, ledger, service.owner, _list_member_pages(service))
    admin = PageVisitor(service, ledger, service.admin, _ADMINISTRATOR_PAGES)
    applications = [ApplicationVisitor(service, ledger) for _ in range(2)]
    return [
        *(SoakVisitor(name="application", every=1.5, turn=each.turn) for each in applications),
        SoakVisitor(name="device", every=8.0, turn=DeviceVisitor(service, ledger).turn),
        SoakVisitor(name="member", every=1.0, turn=member.turn),
        SoakVisitor(name="administrator", every=3.0, turn=admin.turn),
        SoakVisitor(name="developer", every=12.0, turn=GitVisitor(service, ledger).turn),
        SoakVisitor(name="operator", every=45.0, turn=CommandVisitor(service, ledger).turn),
        SoakVisitor(name="checker", every=6.0, turn=_build_check_visitor(service, ledger)),
        SoakVisitor(name="job", every=5.0, turn=_build_ping_visitor(service, ledger)),
        SoakVisitor(name="stranger", every=3.0, turn=stranger.turn),
        SoakVisitor(name="slow stranger", every=60.0, turn=stranger.trickle),
    ]
