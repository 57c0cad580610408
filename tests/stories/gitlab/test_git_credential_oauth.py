"""git-credential-oauth gets tokens for Git in the browser, and refreshes them."""

import re
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from time import monotonic, sleep

import pytest
from sqlalchemy import update

from models import AccessToken
from tests.support.accounts.people import (
    ClientCredentials,
    Person,
    bob,
    database_of,
    make_application,
    make_project,
    make_user,
    now,
    open_browser,
)
from tests.support.git.client import GitClient
from tests.support.git.credential_oauth import HELPER, NEWER_GIT, Machine, is_installed
from tests.support.oauth.device_wire import approve as approve_device
from tests.support.oauth.oauth_wire import token_info
from tests.support.service.certificates import make_certificate
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.wire.html_forms import form_to, submit

pytestmark = [
    pytest.mark.skipif(
        not is_installed(), reason="scripts/ensure-git-clients could not fetch them"
    ),
    pytest.mark.spec("G2"),
]

FILES = {"README.md": b"# Shop\n"}
AUTHORIZED = "/-/user_settings/authorized_applications"
SECONDS = 60
NewMachine = Callable[..., Machine]


@pytest.fixture(scope="module")
def service(
    new_service: NewService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveGatebell]:
    """A service with TLS and short polling intervals for devices."""
    certificate = str(make_certificate(tmp_path_factory.mktemp("certificate")))
    made = new_service(
        "sqlite",
        only="web",
        TLS_CERTIFICATE=certificate,
        TLS_KEY=certificate,
        DEVICE_POLL_INTERVAL_SECONDS="1",
        # Commands that start together may run far apart on a busy machine.
        REFRESH_REPLAY_SECONDS="60",
    )
    with running(made) as live:
        yield live


@pytest.fixture(scope="module")
def application(service: LiveGatebell) -> ClientCredentials:
    """The application for Git clients of all users."""
    return make_application(
        service,
        bob(service),
        name="Git",
        redirect_uris=("http://127.0.0.1",),
        scopes="read_repository write_repository",
        confidential=False,
    )


@pytest.fixture
def owner(service: LiveGatebell) -> Person:
    return make_user(service)


@pytest.fixture
def project(service: LiveGatebell, owner: Person) -> str:
    return make_project(service, owner)


@pytest.fixture
def new_machine(
    service: LiveGatebell, application: ClientCredentials, owner: Person, tmp_path: Path
) -> Iterator[NewMachine]:
    """Creates machines of the owner, set up according to the documentation."""
    made: list[Machine] = []

    def make(*, git: Path | None = NEWER_GIT) -> Machine:
        home = tmp_path / f"home-{len(made)}"
        certificate = service.environment["TLS_CERTIFICATE"]
        client = GitClient(
            gatebell=service,
            home=home,
            programs=(home / "bin", *((git,) if git else ()), HELPER),
            variables={"GIT_SSL_CAINFO": certificate, "SSL_CERT_FILE": certificate},
        )
        machine = Machine(git=client, browser=open_browser(service, owner))
        machine.set_up(application.client_id)
        made.append(machine)
        return machine

    yield make
    for machine in made:
        machine.leave()


def clone(machine: Machine, project: str, into: str = "clone") -> None:
    """Clone a project, which opens a browser."""
    told = machine.run("clone", machine.git.url(project), into)
    assert (told.status, told.has_opened) == (0, True), told.said


def let_expire(machine: Machine) -> None:
    """Let the token expire, for the cache and for the service."""
    before = now() - timedelta(hours=1)
    with database_of(machine.git.gatebell) as session:
        session.execute(update(AccessToken).values(expires_at=before))
    machine.keep(password_expiry_utc=str(int(before.timestamp())))


def revoke(machine: Machine) -> None:
    """Revoke the application's access on its page."""
    page = machine.browser.get(machine.git.gatebell.url + AUTHORIZED)
    assert submit(machine.browser, page, form_to(page, "/revoke")).status_code == 302


@pytest.mark.parametrize("git", [NEWER_GIT, None], ids=["newer", "own"])
def test_the_browser_is_opened_once_for_clone_push_and_fetch(
    new_machine: NewMachine, application: ClientCredentials, project: str, git: Path | None
) -> None:
    machine = new_machine(git=git)
    clone(machine, project)
    kept = machine.kept()
    assert kept["username"] == "oauth2"
    info = token_info(machine.git.gatebell, kept["password"]).json()
    assert info["application"] == {"uid": application.client_id}
    assert info["scope"] == ["read_repository", "write_repository"]
    work = machine.git.home / "clone"
    machine.git.commit(work, FILES, message="Begin")
    for command in (("push", "origin", "HEAD:main"), ("fetch",)):
        told = machine.run("-C", str(work), *command)
        assert (told.status, told.has_opened) == (0, False), told.said


@pytest.mark.long
def test_expired_tokens_are_refreshed_without_a_browser(
    new_machine: NewMachine, project: str
) -> None:
    machine = new_machine()
    clone(machine, project)
    seen = [machine.kept()]
    for _ in range(2):
        let_expire(machine)
        told = machine.run("-C", "clone", "fetch")
        assert (told.status, told.has_opened) == (0, False), told.said
        seen.append(machine.kept())
    for name in ("password", "oauth_refresh_token"):
        assert len({kept[name] for kept in seen}) == len(seen)


@pytest.mark.long
def test_concurrent_commands_refresh_the_same_token(new_machine: NewMachine, project: str) -> None:
    machine = new_machine()
    clone(machine, project)
    let_expire(machine)
    # Submodules are fetched in parallel, and each fetch calls the helper.
    url = machine.git.url(project)
    fetches = [machine.git.start("ls-remote", url) for _ in range(4)]
    assert [each.wait(SECONDS) for each in fetches] == [0] * 4
    assert not (machine.git.home / "opened").exists()
    told = machine.run("ls-remote", url)
    assert (told.status, told.has_opened) == (0, False), told.said


@pytest.mark.long
def test_revoked_access_is_requested_again(new_machine: NewMachine, project: str) -> None:
    machine = new_machine()
    clone(machine, project)
    revoke(machine)
    # Git deletes the rejected token …
    told = machine.run("-C", "clone", "fetch")
    assert (told.status, told.has_opened) == (128, False)
    assert "Authentication failed" in told.said
    # … and requests a new one for the next command.
    told = machine.run("-C", "clone", "fetch")
    assert (told.status, told.has_opened) == (0, True), told.said
    # With a revoked refresh token, the helper requests a new authorization.
    revoke(machine)
    let_expire(machine)
    told = machine.run("-C", "clone", "fetch")
    assert "invalid_grant" in told.said
    assert (told.status, told.has_opened) == (0, True), told.said


@pytest.mark.long
def test_a_denied_request_stores_no_token(new_machine: NewMachine, project: str) -> None:
    machine = new_machine()
    url = machine.git.url(project)
    told = machine.run("ls-remote", url, visit=machine.deny)
    assert (told.status, told.has_opened) == (128, True)
    # The helper ignores the error that the browser returns.
    assert "invalid_request" in told.said
    assert machine.kept() == {}


@pytest.mark.long
def test_read_scopes_cannot_push(new_machine: NewMachine, project: str) -> None:
    machine = new_machine()
    machine.configure("oauthScopes", "read_repository")
    clone(machine, project)
    work = machine.git.home / "clone"
    machine.git.commit(work, FILES, message="Begin")
    told = machine.run("-C", str(work), "push", "origin", "HEAD:main")
    assert told.status == 128
    assert "The access token must have one of these scopes: api, write_repository." in told.said


@pytest.mark.long
def test_a_machine_without_a_browser_shows_a_code(
    service: LiveGatebell, new_machine: NewMachine, project: str
) -> None:
    machine = new_machine()
    git = machine.git
    git.do("config", "--global", "--replace-all", "credential.helper", "oauth -device", "^oauth$")
    machine.configure("oauthScopes", "read_repository write_repository offline_access")
    said = git.home / "said"
    with said.open("wb") as output:
        cloning = git.start("clone", git.url(project), "clone", stderr=output)
    approve_device(machine.browser, service, code_in(said, cloning))
    assert cloning.wait(SECONDS) == 0, said.read_text()
    let_expire(machine)
    told = machine.run("-C", "clone", "fetch")
    assert (told.status, "enter code" in told.said) == (0, False), told.said


def code_in(said: Path, running: subprocess.Popen[bytes]) -> str:
    """Return the code that the helper prints."""
    deadline = monotonic() + SECONDS
    while not (found := re.search(r"enter code (\S+) at", said.read_text())):
        assert running.poll() is None, said.read_text()
        assert monotonic() < deadline, said.read_text()
        sleep(0.05)
    return found[1]
