"""Tests that the former release and this one can share a database, which is migrated under load."""

import json
import subprocess
import sys
import venv
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from models import Alert, EscalationPage, Page, PageMessage
from tests.faults.account import assert_each_was_sent
from tests.faults.balancer import Balancer, Client, Record, clients_at_work
from tests.faults.processes import wait_until
from tests.faults.test_rolling_changes import assert_nothing_failed, migrate_as
from tests.support.accounts.people import CALLBACK, ClientCredentials, Person, database_of, sign_in
from tests.support.alerts.senders import Endpoint
from tests.support.database.postgres import Postgres
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.service.live import ROOT, LiveGatebell

#: The last commit of version 0.1.0, if the history is available.
_FORMER = "f23a7d6a"
_INSTALLED = ROOT / ".former"
_INSTALL_SECONDS = 600
_PAGES_SECONDS = 180
#: Runs commands in one process, which is several seconds faster for each of them, and prints a line
#: for each.
_COMMANDS = """
import json, sys
from app import create_app

app = create_app()
for words, answer in json.load(sys.stdin):
    done = app.test_cli_runner().invoke(args=words, input=answer)
    if done.exit_code:
        sys.exit(f"gatebell {words}: {done.output}")
    print(json.dumps(json.loads(done.stdout)))
"""
_PASSWORD = "a password of the release before"
_numbers = count(1)


@pytest.fixture
def former(tmp_path: Path) -> Path:
    """Extract the code of the former release."""
    folder = tmp_path / "former"
    folder.mkdir()
    told = subprocess.run(
        ["git", "archive", "--format=tar", _FORMER],  # noqa: S607 - whichever git there is
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if told.returncode:
        pytest.skip("the history of this checkout does not go back so far")
    subprocess.run(["tar", "-x"], cwd=folder, input=told.stdout, check=True)  # noqa: S607 - any tar
    return folder


@pytest.fixture
def python_of_former(former: Path) -> str:
    """Return a Python with the packages of the former release, which are installed once."""
    python, stamp = _INSTALLED / "bin" / "python", _INSTALLED / "installed.txt"
    wanted = (former / "requirements.txt").read_text(encoding="utf-8")
    key = f"{sys.version}\n{wanted}"
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != key:
        venv.create(_INSTALLED, with_pip=True, clear=True)
        install = ("--disable-pip-version-check", "install", "--quiet", "--require-hashes")
        told = subprocess.run(
            [python, "-m", "pip", *install, "-r", former / "requirements.txt"],
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=False,
        )
        if told.returncode:
            pytest.skip(f"what the release before needs cannot be installed: {told.stderr[-300:]}")
        stamp.write_text(key, encoding="utf-8")
    # Else each process of both hosts would compile everything when they start.
    compiling = (python, "-m", "compileall", "-q", str(former))
    subprocess.run(compiling, stdout=subprocess.DEVNULL, check=False)
    return str(python)


def run_commands(host: LiveGatebell, *commands: tuple[str, ...]) -> list[dict[str, Any]]:
    """Run commands of the release on a host, and return what each of them prints."""
    done = subprocess.run(
        [host.python, "-c", _COMMANDS],
        cwd=host.code,
        env=host.environment,
        input=json.dumps([(words, f"{_PASSWORD}\n") for words in commands]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@contextmanager
def two_former_hosts(
    url: str, folder: Path, code: Path, python: str, mail_port: int
) -> Iterator[Balancer]:
    """Run two hosts of the former release on one database, each with a worker."""
    settings = {"WEB_CONCURRENCY": "1", "MAIL_URL": f"smtp://127.0.0.1:{mail_port}"}
    hosts = [
        LiveGatebell(instance_path=folder / name, database_url=url, **settings)
        for name in ("one", "other")
    ]
    for host in hosts:
        host.code, host.python = code, python
    with ThreadPoolExecutor(2) as both:
        list(both.map(LiveGatebell.start, hosts))
    try:
        yield Balancer(hosts)
    finally:
        for host in hosts:
            host.stop()


def client_by_commands(balancer: Balancer, record: Record) -> Client:
    """Create a client with the commands of the running release; its alerts page its user."""
    host, number = balancer.hosts[0], next(_numbers)
    name, group = f"person-{number}", f"acme-{number}"
    project, scopes = f"{group}/shop", "read_user offline_access"
    email = f"{name}@people.example"
    *_, hook, own, token = run_commands(
        host,
        ("users", "create", name, "--email", email, "--password-stdin"),
        ("groups", "create", group, "--owner", name),
        ("projects", "create", project, "--owner", name),
        ("escalations", "create", project, "--name", "all", "--step", f"0s user:{name}"),
        ("alert-routes", "create", project, "--name", "all", "--policy", "all"),
        ("integrations", "create", project, "--type", "http", "--name", "Hook"),
        (
            *("applications", "create", "Board", "--owner", name, "--redirect-uri", CALLBACK),
            *("--scopes", scopes),
        ),
        ("tokens", "create", name, "--name", "x", "--scopes", "api"),
    )
    person = Person(username=name, email=email, password=_PASSWORD)
    return Client(
        balancer=balancer,
        record=record,
        person=person,
        application=ClientCredentials(
            id=own["id"],
            client_id=own["application_id"],
            secret=own["secret"],
            redirect_uri=CALLBACK,
            scopes=scopes,
        ),
        endpoint=Endpoint(hook["id"], project, hook["url"], hook["key"], host.url),
        script_token=token["token"],
        browser=sign_in(host, person),
    )


def take_over(host: LiveGatebell) -> None:
    """Configure a host to run this release."""
    host.code, host.python = ROOT, sys.executable


def pages_waiting(host: LiveGatebell) -> int:
    """Return the number of alerts without a page, and of unsent pages and messages."""
    paged = select(EscalationPage.alert_id)
    waiting = (
        select(func.count()).select_from(Alert).where(Alert.id.not_in(paged)),
        select(func.count()).select_from(Page).where(Page.batch_id.is_(None)),
        select(func.count()).select_from(PageMessage).where(PageMessage.ended_at.is_(None)),
    )
    with database_of(host) as session:
        return sum(session.scalar(each) or 0 for each in waiting)


@pytest.mark.long
@pytest.mark.one_database("postgres")
@pytest.mark.fault("upgrade from 0.1.0 under load, host by host")
def test_nothing_fails_or_is_lost_while_the_former_release_is_replaced(
    postgres: Postgres, tmp_path: Path, former: Path, python_of_former: str
) -> None:
    mailbox = Mailbox()
    with (
        running_mail_server(mailbox) as port,
        two_former_hosts(
            postgres.new_database(), tmp_path, former, python_of_former, port
        ) as balancer,
    ):
        one, other = balancer.hosts
        with clients_at_work(balancer, 1, pause=0.1, make=client_by_commands) as record:
            record.wait_for_rounds(6)
            # The first host of this release migrates when it starts; both hosts still run 0.1.0.
            migrate_as(other, ROOT)
            record.wait_for_rounds(10)
            balancer.restart(other, change=take_over)
            # Both releases run: each of them answers requests, and pages for the other one.
            record.wait_for_rounds(20)
            balancer.restart(one, change=take_over)
            record.wait_for_rounds(10)
        wait_until(lambda: not pages_waiting(one), seconds=_PAGES_SECONDS)
        assert_nothing_failed(record, balancer)
        with database_of(one) as session:
            stored = session.execute(
                select(Alert.title, func.sum(Alert.events)).group_by(Alert.title)
            )
            assert {title: int(events) for title, events in stored} == dict(record.accepted)
            alerts = session.scalar(select(func.count()).select_from(Alert)) or 0
            pages = session.scalar(select(func.count()).select_from(EscalationPage))
        assert pages == alerts
        assert_each_was_sent(mailbox, alerts, kills=0)
