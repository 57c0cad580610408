"""Files that an installation keeps for itself in its instance directory."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile


def make_instance_directory(path: Path) -> None:
    """Make the directory, readable by its owner only when it is new."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def read_or_write_once(path: Path, make_text: Callable[[], str]) -> str:
    """Return the text of a file that only its owner reads, made by whoever comes first.

    The whole text is written aside and linked into place: of several processes that start at
    once, one makes the file, and no other ever reads half of it.
    """
    if not path.exists():
        _write_once(path, make_text())
    return path.read_text(encoding="utf-8").strip()


def _write_once(path: Path, text: str) -> None:
    make_instance_directory(path.parent)
    with NamedTemporaryFile("w", dir=path.parent, encoding="utf-8", delete=False) as aside:
        aside.write(text + "\n")
        aside.flush()
        os.fsync(aside.fileno())
    try:
        os.link(aside.name, path)
    except FileExistsError:
        pass  # somebody else was first, and theirs counts
    finally:
        Path(aside.name).unlink()


def make_private_file(path: Path) -> None:
    """Make an empty file that only its owner can read, whatever the umask; one there stays."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def write_private_file(path: Path, text: str) -> None:
    """Write a file that only its owner can read, in place of what was there."""
    make_instance_directory(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, 0o600)
        file.write(text)
