"""The command that makes a backup while the service runs."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from sqlalchemy.engine import make_url

from domain.clock import written
from domain.errors import InvalidError
from domain.keyring import Keyring
from domain.repositories import upkeep
from web.commands.backups import postgres_dumps, sqlite_copies
from web.commands.backups.contents import read_contents
from web.commands.backups.manifest import Contents, Manifest, listed
from web.commands.transaction import one_transaction
from web.commands.version import version
from web.extensions import db
from web.instance_files import make_private_file
from web.services import git, now, services
from web.settings.reader import Settings

#: Files of the instance that cannot be made anew.
KEPT_FILES = ("secret_key", "first_administrator.txt")
INSTANCE, REPOSITORIES = "instance", "repositories"


def has_own_key(settings: Settings) -> bool:
    """Return whether the secret key is the one that this instance has made for itself."""
    file = settings.instance_path / "secret_key"
    return file.exists() and file.read_text(encoding="utf-8").strip() == settings.secret_key


@click.command("backup")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--without-repositories", is_flag=True, help="Leave out Git repositories.")
@click.option("--without-key", is_flag=True, help="Leave out the secret key of the instance.")
@click.option("--pg-dump", default="pg_dump", show_default=True, help="Name or path of pg_dump.")
@one_transaction
def backup(
    *, directory: Path, without_repositories: bool, without_key: bool, pg_dump: str
) -> dict[str, Any]:
    """Write a backup to DIRECTORY, which must be empty or missing, while the service runs.

    It contains a consistent copy of the database, Git repositories, the secret key if this instance
    has generated its own, and a manifest with counts and hashes for `gatebell restore`.
    """
    settings = services().live_settings.environment
    db.session.rollback()
    _make_empty(directory)
    file, contents = _copy_database(settings, directory, pg_dump)
    left_out = [*_copy_files(settings, directory, without_key=without_key)]
    left_out += _copy_repositories(directory, is_wanted=not without_repositories)
    manifest = Manifest(
        made_at=written(now()),
        gatebell=version(),
        database=make_url(settings.database_url).get_backend_name(),
        database_file=file,
        contents=contents,
        key_fingerprints=list(services().keyring.fingerprints),
        files=list(listed(directory)),
        left_out=left_out,
    )
    manifest.write(directory)
    return {
        "directory": str(directory.absolute()),
        "database": manifest.database,
        "revision": contents.revision,
        "rows": sum(contents.rows.values()),
        "files": len(manifest.files),
        "bytes": sum(each.bytes for each in manifest.files),
        "left_out": left_out,
    }


def _make_empty(directory: Path) -> None:
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if next(directory.iterdir(), None) is not None:
        message = f"{directory} is not empty: use a new directory for each backup."
        raise InvalidError(message)


def _copy_database(settings: Settings, directory: Path, pg_dump: str) -> tuple[str, Contents]:
    keyring = Keyring(settings.secret_key, *settings.secret_key_fallbacks)
    if settings.uses_sqlite:
        target = directory / sqlite_copies.FILE
        source = Path(str(make_url(settings.database_url).database))
        sqlite_copies.copy_database(source, target)
        with sqlite_copies.opened(target) as connection:
            if faults := sqlite_copies.faults_of_pages(connection):
                message = f"The database is damaged. {faults[0]}"
                raise InvalidError(message)
            return target.name, read_contents(connection, keyring)
    target = directory / postgres_dumps.FILE
    make_private_file(target)
    with postgres_dumps.snapshot(settings) as (connection, name):
        contents = read_contents(connection, keyring)
        postgres_dumps.dump(settings, target, snapshot_name=name, program=pg_dump)
    return target.name, contents


def _copy_files(settings: Settings, directory: Path, *, without_key: bool) -> Iterator[str]:
    """Copy the files of the instance, and yield a sentence about each thing that is left out."""
    is_own_key = has_own_key(settings)
    for name in KEPT_FILES:
        source = settings.instance_path / name
        is_wanted = name != "secret_key" or (is_own_key and not without_key)
        if is_wanted and source.exists():
            target = directory / INSTANCE / name
            target.parent.mkdir(mode=0o700, exist_ok=True)
            make_private_file(target)
            shutil.copyfile(source, target)
    if without_key or not is_own_key:
        yield "SECRET_KEY is not in the backup: keep it elsewhere. Nothing can be read without it."
    yield "The environment of the service (its settings) is not in the backup: keep it elsewhere."


def _copy_repositories(directory: Path, *, is_wanted: bool) -> Iterator[str]:
    own = git()
    kept = [
        each for each in upkeep.list_repositories(own.root, session=db.session()) if each.exists
    ]
    db.session.rollback()
    if not kept:
        return
    if not is_wanted:
        yield f"{len(kept)} Git repositories are not in the backup."
    elif problem := own.problem():
        yield f"{len(kept)} Git repositories are not in the backup: Git is {problem}."
    else:
        upkeep.back_up(own, kept, directory / REPOSITORIES)
