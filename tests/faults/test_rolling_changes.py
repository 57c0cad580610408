"""Tests that changes of the secret key, release and schema on two loaded hosts fail no request."""

import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.account import KEPT, Account
from tests.faults.balancer import Balancer, Record, clients_at_work
from tests.operations.programs import execute_statements
from tests.support.accounts.people import settings_of
from tests.support.service.live import ROOT, LiveGatebell
from web.database.schema import get_newest_known_revision

OLD, NEW = (f"the {word} key of two hosts that change it" for word in ("old", "new"))
_OLD_KEY = {"SECRET_KEY": OLD}
#: Files and packages of a release.
_CODE = ("app.py", "wsgi.py", "gunicorn.conf.py")
_PACKAGES = ("blueprints", "domain", "forms", "migrations", "models", "static", "templates", "web")
_OF_TOMORROW = '''"""What a later release may add."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "9000", "{former}"
branch_labels = depends_on = None


def upgrade() -> None:
    op.create_table("of_tomorrow", sa.Column("id", sa.Integer(), primary_key=True))
    op.add_column("alerts", sa.Column("of_tomorrow", sa.Integer(), nullable=True))
    op.add_column("access_tokens", sa.Column("of_tomorrow", sa.Integer(), nullable=True))
'''


@contextmanager
def two_hosts(
    url: str,
    folder: Path,
    code: Path = ROOT,
    *,
    only: str = "",
    keys: Mapping[str, str] = _OLD_KEY,
) -> Iterator[Balancer]:
    """Run two hosts on one database; the first one migrates unless it is only a web server."""
    shared = {"database_url": url, "WEB_CONCURRENCY": "1", **keys}
    hosts = [
        LiveGatebell(instance_path=folder / name, only=program, **shared)
        for name, program in (("one", only), ("other", "web"))
    ]
    for host in hosts:
        host.code = code
    with ThreadPoolExecutor(2) as both:
        list(both.map(LiveGatebell.start, hosts))
    try:
        yield Balancer(hosts)
    finally:
        for host in hosts:
            host.stop()


def with_keys(newest: str, older: str) -> dict[str, str]:
    return {"SECRET_KEY": newest, "SECRET_KEY_FALLBACKS": older}


def rotate(balancer: Balancer, code: Path = ROOT, then: Path = ROOT) -> None:
    """Change the secret key as docs/administration.md describes and the command allows.

    Each host is started twice: with one release, and then with another.
    """
    one = balancer.hosts[0]

    def add_key(host: LiveGatebell) -> None:
        host.code = code
        host.environment.update(with_keys(OLD, NEW))

    balancer.restart_all(add_key)
    assert one.cli("secrets", "status")["next"].startswith("Every host has every key. Swap")

    def swap_keys(host: LiveGatebell) -> None:
        host.code = then
        host.environment.update(with_keys(NEW, OLD))

    balancer.restart_all(swap_keys)
    assert one.cli("secrets", "reencrypt")["reencrypted"]["integration_keys"] > 0


def release_of_tomorrow(folder: Path) -> Path:
    """Copy the code as a release with one additional migration."""
    folder.mkdir()
    for name in _PACKAGES:
        # The bytecode is copied too, and stays valid: else each program would compile everything.
        shutil.copytree(ROOT / name, folder / name)
    for name in _CODE:
        shutil.copy(ROOT / name, folder / name)
    migration = folder / "migrations" / "versions" / "9000_of_tomorrow.py"
    migration.write_text(_OF_TOMORROW.format(former=get_newest_known_revision()))
    return folder


def run_code(balancer: Balancer, code: Path) -> None:
    """Replace the release on one host after another."""
    balancer.restart_all(lambda host: setattr(host, "code", code))


def assert_nothing_failed(record: Record, balancer: Balancer) -> None:
    assert record.failures == []
    kinds = {"refresh_token", "alert", "consent", "authorization_code", "/api/v4/user"}
    assert kinds <= record.answers.keys()
    assert not any("Traceback" in host.log_text() for host in balancer.hosts)
    sent = record.answers.total()
    account = Account(
        database="Postgres",
        load=f"clients: {record.clients}, all kinds of requests",
        sent=sent,
        # Each client got the expected response, including redirects.
        answered=Counter({200: sent}),
        reset=0,
        unheard=0,
        stored=None,
        lost=0,
        doubled=0,
        longest_wait=record.slowest,
        others_wait=record.slowest,
        recovery=None,
    )
    KEPT.accounts.append(account)


@pytest.mark.long
@pytest.mark.fault("one of two hosts has a newer release and another secret key")
def test_no_request_fails_while_one_of_two_hosts_is_ahead(
    new_postgres: Callable[[], str], tmp_path: Path
) -> None:
    """Let it write with the new key and schema, and then return to the former ones."""
    tomorrow = release_of_tomorrow(tmp_path / "tomorrow")
    with two_hosts(new_postgres(), tmp_path, only="web", keys=with_keys(OLD, NEW)) as balancer:
        one, _other = balancer.hosts
        with clients_at_work(balancer, 1, pause=0.1) as record:
            record.wait_for_rounds(1)
            migrate_as(one, tomorrow)

            def go_ahead(host: LiveGatebell) -> None:
                host.code = tomorrow
                host.environment.update(with_keys(NEW, OLD))

            balancer.restart(one, change=go_ahead)
            record.wait_for_rounds(4)
            balancer.restart(one, change=lambda host: setattr(host, "code", ROOT))
            assert one.cli("secrets", "reencrypt")["reencrypted"]["integration_keys"] > 0
            record.wait_for_rounds(4)
        assert_nothing_failed(record, balancer)


def migrate_as(host: LiveGatebell, code: Path) -> None:
    """Migrate a host's database to the schema of another release while it is in use."""
    command = [sys.executable, "-m", "web.server.migrate"]
    subprocess.run(command, cwd=code, env=host.environment, check=True)


@pytest.mark.faults_full
@pytest.mark.fault("rotation of the secret key, upgrade and rollback")
def test_no_request_fails_through_a_rotation_an_upgrade_and_a_rollback(
    new_postgres: Callable[[], str], tmp_path: Path
) -> None:
    tomorrow = release_of_tomorrow(tmp_path / "tomorrow")
    with two_hosts(new_postgres(), tmp_path) as balancer:
        with clients_at_work(balancer, 2) as record:
            rotate(balancer, tomorrow, then=ROOT)
            assert "revision 9000" in balancer.hosts[0].logged_line('"event":"schema.newer"')
        assert_nothing_failed(record, balancer)


@pytest.mark.faults_full
def test_a_former_release_cannot_start_after_an_incompatible_migration(
    new_postgres: Callable[[], str], tmp_path: Path
) -> None:
    tomorrow = release_of_tomorrow(tmp_path / "tomorrow")
    with two_hosts(new_postgres(), tmp_path, tomorrow) as balancer:
        one = balancer.hosts[0]
        execute_statements(settings_of(one), "UPDATE schema_support SET oldest_revision = '9000'")
        one.stop()
        one.code = ROOT
        with pytest.raises(AssertionError, match="a newer release has migrated"):
            one.start()
        one.code = tomorrow
        one.start()
