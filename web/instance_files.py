"""Creates the instance directory and private files."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

#: Paths of the files that `read_or_create_file` has created in this process.
created_files: set[Path] = set()


def make_instance_directory(path: Path) -> None:
    """Create the directory with access only for its owner, unless it exists."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)


def read_or_create_file(path: Path, make_text: Callable[[], str]) -> str:
    """Return the text of a private file, which the first caller creates.

    The text is written to a temporary file that is then linked to the path. If several processes
    run concurrently, only one process creates the file, and no process reads a partial file.
    """
    if not path.exists():
        _write_new_file(path, make_text())
    return path.read_text(encoding="utf-8").strip()


def _write_new_file(path: Path, text: str) -> None:
    make_instance_directory(path.parent)
    with NamedTemporaryFile("w", dir=path.parent, encoding="utf-8", delete=False) as aside:
        aside.write(text + "\n")
        aside.flush()
        os.fsync(aside.fileno())
    try:
        os.link(aside.name, path)
        created_files.add(path)
    except FileExistsError:
        pass  # another process has created the file
    finally:
        Path(aside.name).unlink()


def make_private_file(path: Path) -> None:
    """Create an empty file with mode 600, unless it exists."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def write_private_file(path: Path, text: str) -> None:
    """Write a private file, replacing an existing file."""
    make_instance_directory(path.parent)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, 0o600)
        file.write(text)
