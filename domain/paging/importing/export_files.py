"""Reads the JSON documents in an export, and validates their entities against lenient schemas."""

import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, TypeVar
from zlib import error as ZlibError  # noqa: N812 - an exception, whose name ends like one

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from domain.alerts.parsing.incoming_alert import UnreadableBodyError
from domain.alerts.parsing.json_body import parse_json
from domain.alerts.parsing.text_conversion import replace_unstorable_characters
from domain.core.errors import InvalidError
from domain.paging.importing.import_plan import SkippedEntity

#: Maximum uncompressed sizes of a file and of an export, in bytes.
MAX_FILE_BYTES, MAX_EXPORT_BYTES = 20_000_000, 100_000_000
MAX_EXPORT_FILES = 20_000
_MAX_NESTING = 50
_SUFFIX = ".json"
_MAX_TEXT_LENGTH = 10_000
_MAX_SHOWN_NAME_LENGTH = 100


@dataclass(frozen=True)
class ExportDocument:
    """The path and the parsed content of a JSON file in an export."""

    #: Path inside the export.
    name: str
    value: object

    @property
    def folder(self) -> str:
        """Name of the folder that contains the document, or an empty string."""
        return PurePosixPath(self.name).parent.name

    @property
    def stem(self) -> str:
        """The file name without its suffix."""
        return PurePosixPath(self.name).stem


def read_documents(path: Path) -> list[ExportDocument]:
    """Read the JSON documents in a file, folder or zip archive, ordered by name.

    Raise InvalidError if a file cannot be read, or if there are no JSON files.
    """
    try:
        found = [
            ExportDocument(name, _parse_json(name, content))
            for name, content in _read_contents(path)
        ]
    except OSError as error:
        message = f"{path} cannot be read: {error.strerror or type(error).__name__}."
        raise InvalidError(message) from error
    if not found:
        raise InvalidError(f"{path} contains no JSON files.")
    return sorted(found, key=lambda each: each.name)


def _read_contents(path: Path) -> Iterator[tuple[str, bytes]]:
    left = MAX_EXPORT_BYTES
    for number, (name, content) in enumerate(_read_files(path), 1):
        left -= len(content)
        if number > MAX_EXPORT_FILES:
            raise InvalidError(f"An export can have at most {MAX_EXPORT_FILES:,} files.")
        if left < 0:
            raise InvalidError(f"An export can have at most {MAX_EXPORT_BYTES:,} bytes.")
        yield name, content


def _read_files(path: Path) -> Iterator[tuple[str, bytes]]:
    if path.is_dir():
        yield from _read_folder(path)
    elif zipfile.is_zipfile(path):
        yield from _read_archive(path)
    else:
        with path.open("rb") as file:
            yield path.name, _check_size(path.name, file.read(MAX_FILE_BYTES + 1))


def _check_size(name: str, content: bytes) -> bytes:
    if len(content) > MAX_FILE_BYTES:
        raise InvalidError(
            f"{name} is too large. A file can have at most {MAX_FILE_BYTES:,} bytes."
        )
    return content


def _read_folder(root: Path) -> Iterator[tuple[str, bytes]]:
    for folder, _, names in os.walk(root):
        for name in names:
            file = Path(folder) / name
            if file.suffix.lower() != _SUFFIX or file.is_symlink() or not file.is_file():
                continue
            shown = file.relative_to(root).as_posix()
            with file.open("rb") as opened:
                yield shown, _check_size(shown, opened.read(MAX_FILE_BYTES + 1))


def _read_archive(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive without extracting them to disk.

    Raise InvalidError if the archive is unreadable or a file is too large.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if entry.is_dir() or not entry.filename.lower().endswith(_SUFFIX):
                    continue
                # Limit the number of bytes to read, since sizes stated in the archive may be wrong.
                with archive.open(entry) as opened:
                    content = opened.read(MAX_FILE_BYTES + 1)
                yield entry.filename, _check_size(entry.filename, content)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, ZlibError) as error:
        raise InvalidError(f"{path} is not a readable zip archive: {error}.") from error


def _parse_json(name: str, content: bytes) -> object:
    try:
        return parse_json(content.removeprefix(b"\xef\xbb\xbf"), nesting_limit=_MAX_NESTING)
    except UnreadableBodyError as error:
        raise InvalidError(f"{name}: {str(error).replace('The body', 'The file')}") from error


def _clean_text(value: Any) -> Any:
    """Convert a value to a string that can be stored.

    Null becomes an empty string, and integers become digits. Other types are returned unchanged.
    """
    if value is None:
        return ""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return (
        replace_unstorable_characters(value)[:_MAX_TEXT_LENGTH].strip()
        if isinstance(value, str)
        else value
    )


def _replace_null_list(value: Any) -> Any:
    return () if value is None else value


ExportText = Annotated[str, BeforeValidator(_clean_text)]
ExportTexts = Annotated[tuple[ExportText, ...], BeforeValidator(_replace_null_list)]


class ExportEntity(BaseModel):
    """Base class for the schemas of exported entities. Unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore", frozen=True)


AnyEntity = TypeVar("AnyEntity", bound=ExportEntity)


class EntityValidator:
    """Validates entities, and collects the reasons why entities are skipped."""

    def __init__(self) -> None:
        """Initialize an empty list of skipped entities."""
        self.skipped: list[SkippedEntity] = []

    def skip_entity(self, kind: str, name: str, reason: str) -> None:
        """Record an entity that is not imported."""
        self.skipped.append(SkippedEntity(kind=kind, name=name, reason=reason))

    def validate_entities(
        self, schema: type[AnyEntity], values: Iterable[object], kind: str
    ) -> list[AnyEntity]:
        """Return the entities that match a schema, and record the other entities as skipped."""
        found = []
        for value in values:
            try:
                found.append(schema.model_validate(value))
            except ValidationError as error:
                self.skip_entity(kind, find_entity_name(value), _format_validation_error(error))
        return found


def _format_validation_error(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"The export has an unexpected format: {where + ': ' if where else ''}{first['msg']}."


def find_entity_name(value: object) -> str:
    """Return the name of an entity, or an empty string."""
    if not isinstance(value, Mapping):
        return ""
    for key in ("name", "username", "id"):
        if isinstance(value.get(key), str):
            return replace_unstorable_characters(value[key])[:_MAX_SHOWN_NAME_LENGTH]
    nested = [each for each in value.values() if isinstance(each, Mapping)]
    return find_entity_name(nested[0]) if nested else ""


def list_items(value: object) -> Sequence[object]:
    """Return the items of a list, or of an API response such as `{"results": […]}`."""
    if isinstance(value, Mapping):
        for key in ("results", "data"):
            if isinstance(value.get(key), list):
                items: list[object] = value[key]
                return items
        return ()
    return value if isinstance(value, list) else ()
