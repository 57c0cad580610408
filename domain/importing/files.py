"""Reads the JSON documents of an export: one file, a folder of them, or a zip archive.

Files come from elsewhere, so their number, sizes and depth are limited, and links are not followed.
"""

import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from zlib import error as ZlibError  # noqa: N812 - an exception, whose name ends like one

from domain.alerts.reading.body import read_json
from domain.alerts.reading.incoming import UnreadableBody
from domain.errors import InvalidError

#: In bytes, unpacked.
LARGEST_FILE, LARGEST_EXPORT = 20_000_000, 100_000_000
MOST_FILES = 20_000
_DEEPEST = 50
_SUFFIX = ".json"


@dataclass(frozen=True)
class Document:
    """A JSON document of an export."""

    #: The path inside of the export.
    name: str
    value: object

    @property
    def folder(self) -> str:
        """Return the name of the folder that it is in, or an empty text."""
        return PurePosixPath(self.name).parent.name

    @property
    def stem(self) -> str:
        """Return its file name without suffix."""
        return PurePosixPath(self.name).stem


def read_documents(path: Path) -> list[Document]:
    """Return the JSON documents at a path by name, or raise InvalidError."""
    try:
        found = [Document(name, _parsed(name, content)) for name, content in _contents(path)]
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or type(error).__name__}."
        raise InvalidError(message) from error
    if not found:
        message = f"{path} has no JSON files."
        raise InvalidError(message)
    return sorted(found, key=lambda each: each.name)


def _contents(path: Path) -> Iterator[tuple[str, bytes]]:
    left = LARGEST_EXPORT
    for number, (name, content) in enumerate(_files(path), 1):
        left -= len(content)
        if number > MOST_FILES:
            message = f"An export can have at most {MOST_FILES:,} files."
            raise InvalidError(message)
        if left < 0:
            message = f"An export can have at most {LARGEST_EXPORT:,} bytes."
            raise InvalidError(message)
        yield name, content


def _files(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        yield from _of_folder(path)
    elif zipfile.is_zipfile(path):
        yield from _of_archive(path)
    else:
        with path.open("rb") as file:
            yield path.name, _limited(path.name, file.read(LARGEST_FILE + 1))


def _limited(name: str, content: bytes) -> bytes:
    if len(content) > LARGEST_FILE:
        message = f"{name}: a file can have at most {LARGEST_FILE:,} bytes."
        raise InvalidError(message)
    return content


def _of_folder(root: Path) -> Iterator[tuple[str, bytes]]:
    for folder, _, names in os.walk(root):
        for name in names:
            file = Path(folder) / name
            if file.suffix.lower() != _SUFFIX or file.is_symlink() or not file.is_file():
                continue
            shown = file.relative_to(root).as_posix()
            with file.open("rb") as opened:
                yield shown, _limited(shown, opened.read(LARGEST_FILE + 1))


def _of_archive(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive; nothing is unpacked to the disk."""
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if entry.is_dir() or not entry.filename.lower().endswith(_SUFFIX):
                    continue
                # No more than that, whatever sizes the archive says.
                with archive.open(entry) as opened:
                    content = opened.read(LARGEST_FILE + 1)
                yield entry.filename, _limited(entry.filename, content)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ZlibError) as error:
        message = f"{path} is not a zip archive that can be read: {error}."
        raise InvalidError(message) from error


def _parsed(name: str, content: bytes) -> object:
    try:
        return read_json(content.removeprefix(b"\xef\xbb\xbf"), nesting_limit=_DEEPEST)
    except UnreadableBody as error:
        message = f"{name}: {str(error).replace('The body', 'The file')}"
        raise InvalidError(message) from error
