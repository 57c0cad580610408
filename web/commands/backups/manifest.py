"""The manifest of a backup: what is in it, with counts and hashes to check it by."""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

from domain.errors import InvalidError
from web.instance_files import write_private_file

NAME = "manifest.json"
_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class BackedUpFile:
    """A file of a backup."""

    #: Its path in the backup.
    name: str
    bytes: int
    sha256: str

    @classmethod
    def of(cls, directory: Path, name: str) -> "BackedUpFile":
        """Read a file."""
        path = directory / name
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        return cls(name=name, bytes=path.stat().st_size, sha256=digest)


@dataclass(frozen=True, kw_only=True)
class Contents:
    """What a database holds, to compare a restored one with."""

    #: The newest migration.
    revision: str
    #: The number of rows of each table.
    rows: dict[str, int]
    #: The newest seal of the audit log, as NUMBER:HASH; None without one.
    audit_head: str | None


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What is in a backup."""

    made_at: str
    gatebell: str
    #: `sqlite` or `postgresql`.
    database: str
    #: The file of the database.
    database_file: str
    contents: Contents
    #: Fingerprints of SECRET_KEY and its fallbacks, the first of the one that is written with.
    key_fingerprints: list[str]
    files: list[BackedUpFile]
    #: What has to be kept elsewhere, a sentence each.
    left_out: list[str]
    format: int = _FORMAT

    def write(self, directory: Path) -> None:
        """Write it: the last file of a backup, which is worth nothing without."""
        for each in self.files:
            _sync(directory / each.name)
        aside = directory / f"{NAME}.new"
        write_private_file(aside, json.dumps(asdict(self), indent=1) + "\n")
        _sync(aside)
        aside.rename(directory / NAME)

    @classmethod
    def read(cls, directory: Path) -> "Manifest":
        """Read that of a backup, or raise InvalidError."""
        try:
            said = json.loads((directory / NAME).read_text(encoding="utf-8"))
            return cls._of(said)
        except FileNotFoundError:
            message = f"{directory} has no {NAME}: it is not a backup, or was not completed."
            raise InvalidError(message) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            message = f"{directory / NAME} cannot be read."
            raise InvalidError(message) from error

    @classmethod
    def _of(cls, said: dict[str, Any]) -> "Manifest":
        if said["format"] != _FORMAT:
            message = f"This backup has the format {said['format']}; this release reads {_FORMAT}."
            raise InvalidError(message)
        if not isinstance(said["made_at"], str):
            raise TypeError
        files = [BackedUpFile(**each) for each in said["files"]]
        return cls(**{**said, "contents": Contents(**said["contents"]), "files": files})

    def faults_of_files(self, directory: Path) -> list[str]:
        """Compare the files with their hashes; return a sentence for each that differs."""
        return [said for each in self.files if (said := _fault_of(directory, each))]

    def has(self, name: str) -> bool:
        """Return whether a file of this name is in the backup."""
        return any(each.name == name for each in self.files)


def _fault_of(directory: Path, expected: BackedUpFile) -> str | None:
    try:
        found = BackedUpFile.of(directory, expected.name)
    except OSError as error:
        return f"{expected.name} cannot be read: {error.strerror}."
    return None if found == expected else f"{expected.name} was changed since it was written."


def listed(directory: Path) -> Iterable[BackedUpFile]:
    """Return all files below a directory, in the order of their names."""
    for path in sorted(directory.rglob("*")):
        if path.is_file() and path.name not in {NAME, f"{NAME}.new"}:
            yield BackedUpFile.of(directory, path.relative_to(directory).as_posix())


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
