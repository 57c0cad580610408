"""Commands that create a backup while the service runs, and restore and verify a backup."""

import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from signal import SIGTERM, signal
from stat import S_IWGRP, S_IWOTH
from typing import Any, NoReturn

import click
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.core.clock import format_api_time
from domain.core.errors import ConflictError, InvalidError
from domain.core.hosts import list_running_hosts
from domain.core.job_results import record_backup, record_failed_backup
from domain.core.keyring import Keyring
from domain.git import maintenance
from web.commands.backups import postgres, sqlite
from web.commands.backups.manifest import (
    DatabaseContents,
    Manifest,
    list_backup_files,
    read_database_contents,
)
from web.commands.execution import describe_known_error, run_in_transaction, run_without_key_check
from web.database.schema import is_before_known_revisions, is_known_revision
from web.extensions import db
from web.instance_files import created_files, make_private_file, write_private_file
from web.services import get_current_time, get_git, get_services
from web.settings.environment import Settings
from web.version import get_running_build

#: Secret files of the instance, which are part of a backup that includes the key. Each of them
#: gives access to the service. All other files can be created again.
SECRET_FILES = ("secret_key", "first_administrator.txt")
INSTANCE_FOLDER, REPOSITORIES_FOLDER = "instance", "repositories"


def has_generated_key(settings: Settings) -> bool:
    """Return whether this instance uses a secret key that it generated."""
    file = settings.instance_path / "secret_key"
    return file.exists() and file.read_text(encoding="utf-8").strip() == settings.secret_key


@click.command("backup")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@click.option("--without-repositories", is_flag=True, help="Exclude Git repositories.")
@click.option("--without-key", is_flag=True, help="Exclude the secret key of the instance.")
@click.option("--pg-dump", default="pg_dump", show_default=True, help="Name or path of pg_dump.")
@click.option(
    "--keep",
    type=click.IntRange(1),
    metavar="N",
    help="Keep the newest N backups of this installation next to DIRECTORY, and delete the others.",
)
@run_in_transaction
def backup(
    *,
    directory: Path,
    without_repositories: bool,
    without_key: bool,
    pg_dump: str,
    keep: int | None,
) -> dict[str, Any]:
    """Create a backup in DIRECTORY while the service is running.

    DIRECTORY must be empty or missing. The backup contains a consistent copy of the database, the
    Git repositories, and the secret key if this instance generated it. A manifest contains counts
    and hashes for `gatebell restore`. If the backup fails, DIRECTORY is emptied again.
    """
    db.session.rollback()
    with _record_failure_on_error(), _empty_directory_on_failure(directory):
        manifest = _write_backup(
            directory,
            without_repositories=without_repositories,
            without_key=without_key,
            pg_dump=pg_dump,
        )
    size = sum(each.bytes for each in manifest.files)
    return {
        "directory": str(directory.absolute()),
        "database": manifest.database,
        "revision": manifest.contents.revision,
        "rows": sum(manifest.contents.rows.values()),
        "files": len(manifest.files),
        "bytes": size,
        "recorded": _store_backup_result(partial(record_backup, size)),
        "left_out": manifest.left_out,
        "deleted": [] if keep is None else _delete_older_backups(directory, keep=keep),
    }


def _write_backup(
    directory: Path, *, without_repositories: bool, without_key: bool, pg_dump: str
) -> Manifest:
    settings = get_services().live_settings.environment_settings
    file, contents = _copy_database(settings, directory, pg_dump)
    left_out = [*_copy_files(settings, directory, without_key=without_key)]
    left_out += _copy_repositories(directory, is_wanted=not without_repositories)
    manifest = Manifest(
        made_at=format_api_time(get_current_time()),
        gatebell=str(get_running_build()),
        database=make_url(settings.database_url).get_backend_name(),
        database_file=file,
        contents=contents,
        key_fingerprints=list(get_services().keyring.fingerprints),
        files=list(list_backup_files(directory)),
        left_out=left_out,
    )
    manifest.write_file(directory)
    return manifest


@contextmanager
def _record_failure_on_error() -> Iterator[None]:
    """Record in the database that a backup failed, with the reason."""
    try:
        yield
    except BaseException as error:
        reason = describe_known_error(error) if isinstance(error, Exception) else None
        _store_backup_result(partial(record_failed_backup, reason or type(error).__name__))
        raise


def _store_backup_result(record: Callable[..., None]) -> bool:
    """Store the result of a backup for `/metrics`, and return False if the database rejects it."""
    try:
        with Session(db.engine) as session, session.begin():
            record(session=session, now=get_current_time())
    except SQLAlchemyError:
        return False
    return True


@contextmanager
def _empty_directory_on_failure(directory: Path) -> Iterator[None]:
    """Create an empty directory, and empty it if the backup fails, so that a retry can use it.

    SIGTERM counts as a failure, because systemd sends it to stop a backup.
    """
    _create_private_directory(directory)
    before = signal(SIGTERM, _exit_on_signal)
    try:
        yield
    except BaseException:
        for path in directory.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        raise
    finally:
        signal(SIGTERM, before)


def _create_private_directory(directory: Path) -> None:
    """Create a directory to which no other user can write.

    Raise InvalidError if the directory is not empty or others can write to it.
    """
    for missing in reversed(directory.parents):
        missing.mkdir(mode=0o755, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)
    if next(directory.iterdir(), None) is not None:
        raise InvalidError(f"{directory} is not empty. Use a new directory for each backup.")
    if directory.stat().st_mode & (S_IWGRP | S_IWOTH):
        # Other users could create links there that redirect the secret key.
        message = (
            f"Other users can write to {directory}. Use a new directory, or one with mode 700."
        )
        raise InvalidError(message)


def _exit_on_signal(number: int, _frame: Any) -> NoReturn:
    sys.exit(128 + number)


def _delete_older_backups(directory: Path, *, keep: int) -> list[str]:
    """Delete all but the newest `keep` backups next to a directory, and return the deleted paths.

    Incomplete backups, backups with other keys, and other directories are never deleted.
    """
    ours = set(get_services().keyring.fingerprints)
    found: list[tuple[str, Path]] = []
    for path in directory.absolute().parent.iterdir():
        with suppress(InvalidError):
            manifest = Manifest.read_file(path)
            if not path.is_symlink() and ours & set(manifest.key_fingerprints):
                found.append((manifest.made_at, path))
    older = [path for _, path in sorted(found)[:-keep]]
    for path in older:
        shutil.rmtree(path)
    return [str(path) for path in older]


def _copy_database(
    settings: Settings, directory: Path, pg_dump: str
) -> tuple[str, DatabaseContents]:
    keyring = Keyring(settings.secret_key, *settings.secret_key_fallbacks)
    if settings.uses_sqlite:
        target = directory / sqlite.DATABASE_FILE
        source = Path(str(make_url(settings.database_url).database))
        sqlite.copy_database(source, target)
        with sqlite.open_database_copy(target) as connection:
            if faults := sqlite.find_integrity_faults(connection):
                raise InvalidError(f"The database is damaged. {faults[0]}")
            return target.name, read_database_contents(connection, keyring)
    target = directory / postgres.DUMP_FILE
    make_private_file(target)
    with postgres.open_snapshot(settings) as (connection, name):
        contents = read_database_contents(connection, keyring)
        postgres.write_dump(settings, target, snapshot_name=name, program=pg_dump)
    return target.name, contents


def _copy_files(settings: Settings, directory: Path, *, without_key: bool) -> Iterator[str]:
    """Copy the files of the instance, and yield a message for each omission."""
    if has_generated_key(settings) and not without_key:
        for name in SECRET_FILES:
            source = settings.instance_path / name
            if source.exists():
                target = directory / INSTANCE_FOLDER / name
                target.parent.mkdir(mode=0o700, exist_ok=True)
                make_private_file(target)
                shutil.copyfile(source, target)
    else:
        yield (
            "SECRET_KEY is not in the backup. Store it separately, because encrypted data cannot "
            "be read without it."
        )
        if (settings.instance_path / _FIRST_ADMINISTRATOR_FILE).exists():
            yield (
                f"{_FIRST_ADMINISTRATOR_FILE} is not in the backup, because it contains a "
                "password. Reset the "
                "password after a restore with `gatebell users reset-password`."
            )
    yield "The settings in the environment are not in the backup. Store them separately."


def _copy_repositories(directory: Path, *, is_wanted: bool) -> Iterator[str]:
    own = get_git()
    kept = [
        each
        for each in maintenance.list_repositories(own.root, session=db.session())
        if each.exists
    ]
    db.session.rollback()
    if not kept:
        return
    if not is_wanted:
        yield f"The backup does not contain the Git repositories ({len(kept)})."
    elif problem := own.find_problem():
        yield (
            f"The backup does not contain the Git repositories ({len(kept)}), because Git is "
            f"{problem}."
        )
    else:
        maintenance.back_up_repositories(own, kept, directory / REPOSITORIES_FOLDER)


_SECRET_KEY_FILE, _FIRST_ADMINISTRATOR_FILE = "secret_key", "first_administrator.txt"


@click.command("restore")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Replace a database that is not empty.")
@click.option(
    "--dry-run", is_flag=True, help="Check the backup and the target without changing anything."
)
@click.option(
    "--pg-restore", default="pg_restore", show_default=True, help="Name or path of pg_restore."
)
@run_without_key_check
def restore(*, directory: Path, replace: bool, dry_run: bool, pg_restore: str) -> dict[str, Any]:
    """Restore the backup in DIRECTORY into the configured database and verify it.

    Stop the service first. The command checks the hashes of all files and the secret key. It then
    compares the migration, the number of rows in each table, and the audit log. Existing instance
    files that differ from the backup are kept under other names.
    """
    settings = get_services().live_settings.environment_settings
    with _delete_unused_key(settings):
        manifest = Manifest.read_file(directory)
        keyring = _check_backup(directory, manifest, settings)
        _check_restore_target(settings, may_replace=replace)
        if not dry_run:
            return _restore_backup(directory, manifest, keyring, settings, pg_restore)
    return {"restored": False, **_describe_manifest(manifest)}


@contextmanager
def _delete_unused_key(settings: Settings) -> Iterator[None]:
    """Delete the secret key that this command generated, unless the restored data uses it."""
    path = settings.instance_path / _SECRET_KEY_FILE
    try:
        yield
    finally:
        if path in created_files:
            path.unlink(missing_ok=True)


def _restore_backup(
    directory: Path, manifest: Manifest, keyring: Keyring, settings: Settings, pg_restore: str
) -> dict[str, Any]:
    db.engine.dispose()
    file = directory / manifest.database_file
    if settings.uses_sqlite:
        aside = sqlite.restore_sqlite_copy(settings, file, manifest.contents, keyring)
    else:
        postgres.restore_postgres_dump(
            settings, file, manifest.contents, keyring, program=pg_restore
        )
        aside = None
    former: dict[str, Any] = {"former_database": str(aside)} if aside else {}
    if kept := list(_restore_files(directory, manifest, settings)):
        former["former_files"] = kept
    repositories = _restore_repositories(directory)
    return {"restored": True, **_describe_manifest(manifest), **former, **repositories}


def _describe_manifest(manifest: Manifest) -> dict[str, Any]:
    contents = manifest.contents
    return {
        "made_at": manifest.made_at,
        "revision": contents.revision,
        "rows": sum(contents.rows.values()),
        "tables": len(contents.rows),
        "audit_head": contents.audit_head,
    }


def _check_backup(directory: Path, manifest: Manifest, settings: Settings) -> Keyring:
    """Check that a backup can be restored, and return its keys.

    Raise InvalidError if the backup cannot be restored.
    """
    if faults := manifest.find_file_faults(directory):
        raise InvalidError(f"The backup is damaged. {' '.join(faults[:5])}")
    kind = make_url(settings.database_url).get_backend_name()
    if manifest.database != kind:
        message = f"This is a backup of {manifest.database}, but DATABASE_URL points to {kind}."
        raise InvalidError(message)
    revision = manifest.contents.revision
    if not is_known_revision(revision):
        age = "an older" if is_before_known_revisions(revision) else "a newer"
        raise InvalidError(
            f"This backup was made by {age} release (Gatebell {manifest.gatebell}, migration "
            f"{revision}). Restore it with that release."
        )
    return _get_backup_keyring(directory, manifest, settings)


def _get_backup_keyring(directory: Path, manifest: Manifest, settings: Settings) -> Keyring:
    if _is_key_restored(manifest, settings):
        text = (directory / INSTANCE_FOLDER / _SECRET_KEY_FILE).read_text(encoding="utf-8").strip()
        keyring = Keyring(text, *settings.secret_key_fallbacks)
    else:
        keyring = Keyring(settings.secret_key, *settings.secret_key_fallbacks)
    lost = set(manifest.key_fingerprints) - set(keyring.fingerprints)
    if manifest.key_fingerprints[0] in lost:
        raise InvalidError(
            f"SECRET_KEY has the fingerprint {keyring.fingerprints[0]}, but the backup was written "
            f"with {manifest.key_fingerprints[0]}. Set SECRET_KEY to the key that was used then."
        )
    return keyring


def _is_key_restored(manifest: Manifest, settings: Settings) -> bool:
    """Return whether the key of the backup replaces the key that this instance generated."""
    return has_generated_key(settings) and manifest.contains_file(
        f"{INSTANCE_FOLDER}/{_SECRET_KEY_FILE}"
    )


def _check_restore_target(settings: Settings, *, may_replace: bool) -> None:
    """Check that the restore overwrites no data, and that the service is not running.

    Raise ConflictError if the database is not empty or the service may be running. With
    `may_replace`, the restore may overwrite data.
    """
    targets = sqlite if settings.uses_sqlite else postgres
    if not targets.has_tables(settings):
        return
    if not may_replace:
        raise ConflictError("The database is not empty. Use `--replace` to overwrite it.")
    try:
        with Session(db.engine) as session:
            present = list_running_hosts(session=session, now=get_current_time())
    except SQLAlchemyError:
        return  # the schema is not from this release, so no host of this release is running
    if present:
        names = ", ".join(each.name for each in present)
        raise ConflictError(
            f"The service may be running: {names} reported within the last three minutes. Stop it "
            "on every host. If it was stopped just now, wait three minutes."
        )


def _restore_files(directory: Path, manifest: Manifest, settings: Settings) -> Iterator[str]:
    """Restore the secret files, and yield the new paths of the files that they replace."""
    wanted = {
        _SECRET_KEY_FILE: _is_key_restored(manifest, settings),
        _FIRST_ADMINISTRATOR_FILE: True,
    }
    for name, is_wanted in wanted.items():
        source, target = directory / INSTANCE_FOLDER / name, settings.instance_path / name
        if is_wanted and manifest.contains_file(f"{INSTANCE_FOLDER}/{name}"):
            is_replaced = target.exists() and target.read_bytes() != source.read_bytes()
            if is_replaced and target not in created_files:
                former = sqlite.build_replaced_file_path(target)
                shutil.copy2(target, former)
                yield str(former)
            write_private_file(target, source.read_text(encoding="utf-8"))
            created_files.discard(target)


def _restore_repositories(directory: Path) -> dict[str, Any]:
    source = directory / REPOSITORIES_FOLDER
    if not source.is_dir():
        return {}
    own = get_git()
    if problem := own.find_problem():
        return {"repositories": f"not restored: Git is {problem}"}
    with Session(db.engine) as session:
        kept = maintenance.list_repositories(own.root, session=session)
    return {"repositories": dict(maintenance.restore_repositories(own, kept, source))}
