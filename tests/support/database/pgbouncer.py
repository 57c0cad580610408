"""PgBouncer with the configuration of deploy/, in front of a test's database."""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy.engine import make_url

from tests.support.service.live import ROOT
from tests.support.service.ports import free_port
from tests.support.service.proxies import await_port

FILE = ROOT / "deploy/pgbouncer/pgbouncer.ini"
_UNPACKED = ROOT / ".pooler"
_PASSWORD = "only-for-tests"
_PATIENCE_SECONDS = 30


@dataclass(frozen=True, kw_only=True)
class PgBouncer:
    """A running pooler."""

    #: URL of the database through the pooler.
    url: str

    def asked(self, command: str) -> list[dict[str, Any]]:
        """Return the rows that its console returns for a command."""
        console = make_url(self.url).set(database="pgbouncer")
        address = console.render_as_string(hide_password=False)
        with psycopg.connect(address, autocommit=True) as connection:
            cursor = psycopg.ClientCursor(connection, row_factory=psycopg.rows.dict_row)
            cursor.execute(command.encode())
            return cursor.fetchall() if cursor.description else []


def is_installed() -> bool:
    """Return whether PgBouncer is installed, by scripts/ensure-pooler or by the system."""
    return _program() is not None


def _program() -> str | None:
    ours = _UNPACKED / "usr/sbin/pgbouncer"
    return str(ours) if ours.exists() else shutil.which("pgbouncer")


@contextmanager
def running_pgbouncer(
    database_url: str, *, pool_size: int = 3, **changes: str
) -> Iterator[PgBouncer]:
    """Run PgBouncer with the configuration of deploy/.

    Only addresses, files, the size of the pool and the given settings differ. It does not run as
    root, so it runs as the user of Postgres.
    """
    with psycopg.connect(database_url) as connection:
        found = connection.info
        host, port, user, name = found.host, found.port, found.user, found.dbname
    port_here, owner = free_port(), _owner_of(host)
    with tempfile.TemporaryDirectory(prefix="gatebell-pgbouncer-") as directory:
        folder = Path(directory)
        folder.chmod(0o755)
        (folder / "userlist.txt").write_text(f'"{user}" "{_PASSWORD}"\n', encoding="utf-8")
        settings = {
            r"(?<=gatebell = ).*": f"host={host} port={port} dbname={name}",
            r"(?<=listen_port = ).*": str(port_here),
            r"(?<=unix_socket_dir = ).*": "",
            r"(?<=auth_file = ).*": str(folder / "userlist.txt"),
            r"(?<=default_pool_size = ).*": str(pool_size),
            **{rf"(?<=\n{key} = ).*": value for key, value in changes.items()},
        }
        text = FILE.read_text(encoding="utf-8")
        for pattern, value in settings.items():
            text, count = re.subn(pattern, value, text)
            assert count == 1, pattern
        file = folder / "pgbouncer.ini"
        file.write_text(f"{text}admin_users = {user}\n", encoding="utf-8")
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [_for_anybody(folder), str(file)],
                env={"LD_LIBRARY_PATH": ":".join(map(str, folder.glob("usr/lib/*-linux-gnu")))},
                stdout=log,
                stderr=log,
                **owner,
            )
        try:
            await_port(port_here, folder / "log")
            here = make_url(database_url).set(
                host="127.0.0.1",
                port=port_here,
                database="gatebell",
                username=user,
                password=_PASSWORD,
                query={},
            )
            yield PgBouncer(url=here.render_as_string(hide_password=False))
        finally:
            process.kill()
            process.wait(_PATIENCE_SECONDS)


def _owner_of(host: str) -> dict[str, Any]:
    """Return the user and group that can open the socket, if they differ from the current ones."""
    directory = Path(host)
    if not directory.is_absolute() or directory.stat().st_uid == Path("/proc/self").stat().st_uid:
        return {}
    there = directory.stat()
    return {"user": there.st_uid, "group": there.st_gid, "extra_groups": ()}


def _for_anybody(folder: Path) -> str:
    """Return a copy of the program in a folder that other users can read."""
    program = _program()
    assert program is not None
    if not program.startswith(str(_UNPACKED)):
        return program
    shutil.copytree(_UNPACKED / "usr", folder / "usr", symlinks=True)
    return str(folder / "usr/sbin/pgbouncer")
