"""The command that restores a backup, and checks what it has restored."""

import shutil
from pathlib import Path
from typing import Any

import click
from sqlalchemy.engine import make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from domain.errors import ConflictError, InvalidError
from domain.keyring import Keyring
from domain.programs.hosts import list_present
from domain.repositories import upkeep
from web.commands.backups import postgres, sqlite
from web.commands.backups.backup import INSTANCE, REPOSITORIES, has_own_key
from web.commands.backups.manifest import Manifest
from web.commands.transaction import with_any_key
from web.database.schema import is_known_revision, precedes_known_revisions
from web.extensions import db
from web.instance_files import write_private_file
from web.services import git, now, services
from web.settings.reader import Settings

_KEY, _FIRST = "secret_key", "first_administrator.txt"


@click.command("restore")
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--replace", is_flag=True, help="Replace a database that is not empty.")
@click.option("--dry-run", is_flag=True, help="Check the backup and the target; change nothing.")
@click.option(
    "--pg-restore", default="pg_restore", show_default=True, help="Name or path of pg_restore."
)
@with_any_key
def restore(*, directory: Path, replace: bool, dry_run: bool, pg_restore: str) -> dict[str, Any]:
    """Restore the backup in DIRECTORY into the database that the environment names, and check it.

    Stop the service first. The command checks the hashes of all files, the secret key, the
    migration, the number of rows of each table, and the audit log.
    """
    settings = services().live_settings.environment
    manifest = Manifest.read(directory)
    keyring = _check_backup(directory, manifest, settings)
    _check_target(settings, may_replace=replace)
    if dry_run:
        return {"restored": False, **_told(manifest)}
    db.engine.dispose()
    file = directory / manifest.database_file
    if settings.uses_sqlite:
        aside = sqlite.restore(settings, file, manifest.contents, keyring)
    else:
        postgres.restore(settings, file, manifest.contents, keyring, program=pg_restore)
        aside = None
    _restore_files(directory, manifest, settings)
    repositories = _restore_repositories(directory)
    former = {"former_database": str(aside)} if aside else {}
    return {"restored": True, **_told(manifest), **former, **repositories}


def _told(manifest: Manifest) -> dict[str, Any]:
    contents = manifest.contents
    return {
        "made_at": manifest.made_at,
        "revision": contents.revision,
        "rows": sum(contents.rows.values()),
        "tables": len(contents.rows),
        "audit_head": contents.audit_head,
    }


def _check_backup(directory: Path, manifest: Manifest, settings: Settings) -> Keyring:
    """Return the keys that the backup is read with; raise InvalidError if it cannot be restored."""
    if faults := manifest.faults_of_files(directory):
        message = f"The backup is damaged. {' '.join(faults[:5])}"
        raise InvalidError(message)
    kind = make_url(settings.database_url).get_backend_name()
    if manifest.database != kind:
        message = f"This is a backup of {manifest.database}, and DATABASE_URL names {kind}."
        raise InvalidError(message)
    revision = manifest.contents.revision
    if not is_known_revision(revision):
        age = "an older" if precedes_known_revisions(revision) else "a newer"
        message = (
            f"This backup was made by {age} release (Gatebell {manifest.gatebell}, migration "
            f"{revision}): restore it with that release."
        )
        raise InvalidError(message)
    return _keyring(directory, manifest, settings)


def _keyring(directory: Path, manifest: Manifest, settings: Settings) -> Keyring:
    if _restores_key(manifest, settings):
        text = (directory / INSTANCE / _KEY).read_text(encoding="utf-8").strip()
        keyring = Keyring(text, *settings.secret_key_fallbacks)
    else:
        keyring = Keyring(settings.secret_key, *settings.secret_key_fallbacks)
    lost = set(manifest.key_fingerprints) - set(keyring.fingerprints)
    if manifest.key_fingerprints[0] in lost:
        message = (
            f"SECRET_KEY has the fingerprint {keyring.fingerprints[0]}, and the backup was written "
            f"with {manifest.key_fingerprints[0]}: set SECRET_KEY to the key at that time."
        )
        raise InvalidError(message)
    return keyring


def _restores_key(manifest: Manifest, settings: Settings) -> bool:
    """Return whether the instance takes over the key of the backup: it has one of its own."""
    return has_own_key(settings) and manifest.has(f"{INSTANCE}/{_KEY}")


def _check_target(settings: Settings, *, may_replace: bool) -> None:
    """Raise ConflictError if something would be lost, or somebody works on the database."""
    targets = sqlite if settings.uses_sqlite else postgres
    if not targets.has_tables(settings):
        return
    if not may_replace:
        message = "The database is not empty: use --replace to overwrite it."
        raise ConflictError(message)
    try:
        with Session(db.engine) as session:
            present = list_present(session=session, now=now())
    except SQLAlchemyError:
        return  # of another shape: none of our hosts works on it
    if present:
        names = ", ".join(each.name for each in present)
        message = (
            f"The service may be running: {names} reported within three minutes. Stop it on "
            "every host, and wait for three minutes if it was stopped just now."
        )
        raise ConflictError(message)


def _restore_files(directory: Path, manifest: Manifest, settings: Settings) -> None:
    wanted = {_KEY: _restores_key(manifest, settings), _FIRST: True}
    for name, is_wanted in wanted.items():
        source, target = directory / INSTANCE / name, settings.instance_path / name
        if is_wanted and manifest.has(f"{INSTANCE}/{name}"):
            if target.exists() and target.read_bytes() != source.read_bytes():
                shutil.copy2(target, target.with_name(f"{name}.before-restore"))
            write_private_file(target, source.read_text(encoding="utf-8"))


def _restore_repositories(directory: Path) -> dict[str, Any]:
    source = directory / REPOSITORIES
    if not source.is_dir():
        return {}
    own = git()
    if problem := own.problem():
        return {"repositories": f"not restored: Git is {problem}"}
    with Session(db.engine) as session:
        kept = upkeep.list_repositories(own.root, session=session)
    return {"repositories": dict(upkeep.restore(own, kept, source))}
