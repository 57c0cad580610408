"""Commands for the release schedule, which show the effects of a release."""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import click
from flask.cli import AppGroup, with_appcontext

from domain.releases.changes import Change
from domain.releases.checker.findings import UnreadableContentError
from domain.releases.checker.report_formats import (
    CheckedFile,
    format_as_json,
    format_as_sarif,
    format_as_text,
)
from domain.releases.checker.text_checks import (
    KNOWN_EXTENSIONS,
    KNOWN_FILE_NAMES,
    NEWEST_RELEASE,
    check_file,
)
from domain.releases.version import Release, parse_release
from web.admin.settings import get_settings_in_transaction
from web.api.schemas.releases import ReleaseRehearsal
from web.extensions import db
from web.releases import rehearsal
from web.services import get_current_time, get_services

releases = AppGroup("releases", help="Check which API calls a release breaks.")
_BREAKS_STATUS, _UNREADABLE_STATUS = 1, 2
_MAX_FILE_BYTES = 64 * 1024 * 1024
_STDIN = "-"
#: Names of directories that contain third-party code or no source code.
_SKIPPED_FOLDERS = frozenset({"node_modules", "vendor", "__pycache__", "venv"})


def _format_json_text(document: object) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


_REPORT_FORMATS: Mapping[str, Callable[[Sequence[CheckedFile]], str]] = {
    "text": format_as_text,
    "json": lambda checked: _format_json_text(format_as_json(checked, _build_page_url)),
    "sarif": lambda checked: _format_json_text(format_as_sarif(checked, _build_page_url)),
}


def _parse_release_argument(
    _context: click.Context, _option: click.Parameter, text: str
) -> Release:
    try:
        return parse_release(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command("check")
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option(
    "--release",
    default=str(NEWEST_RELEASE),
    show_default=True,
    callback=_parse_release_argument,
    help="Newest release to check.",
)
@click.option(
    "--format", "form", type=click.Choice([*_REPORT_FORMATS]), default="text", help="Output format."
)
@with_appcontext
def check_command(files: tuple[str, ...], release: Release, form: str) -> None:
    """Check traffic, documents and source code for API calls that a release breaks.

    Directories are read recursively. Use - for standard input. The exit status is 0 if nothing
    breaks, 1 if a call breaks, and 2 if a file cannot be read. In a directory, files whose content
    does not match their names are skipped with a warning.
    """
    checked, is_unreadable = [], False
    for name, is_named in _list_files(files):
        try:
            checked.append(
                CheckedFile(
                    name, check_file(_get_name_for_detection(name), _read_content(name), release)
                )
            )
        except (OSError, UnreadableContentError) as error:
            click.echo(f"{name}: {_format_error(error)}", err=True)
            is_unreadable = is_unreadable or is_named or isinstance(error, OSError)
    click.echo(_REPORT_FORMATS[form](checked), nl=False)
    breaks = sum(len(each.report.findings) for each in checked)
    if checked:
        click.echo(_format_summary(len(checked), breaks, release), err=True)
    sys.exit(_UNREADABLE_STATUS if is_unreadable else _BREAKS_STATUS if breaks else 0)


def _format_summary(files: int, breaks: int, release: Release) -> str:
    """Return a line with the number of files read and the number of findings.

    If nothing breaks, the command prints only this line.
    """
    read = f"{files} file{'' if files == 1 else 's'} read"
    found = f"{breaks} finding{'' if breaks == 1 else 's'}" if breaks else "nothing breaks"
    return f"{read}: {found} up to release {release}."


def _list_files(names: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield each file name, and whether the caller named the file directly."""
    for name in names:
        if name == _STDIN or not Path(name).is_dir():
            yield name, True
        else:
            yield from ((found, False) for found in _list_folder_files(name))


def _list_folder_files(folder: str) -> Iterator[str]:
    for path, folders, names in os.walk(folder):
        folders[:] = sorted(
            each for each in folders if each not in _SKIPPED_FOLDERS and each[0] != "."
        )
        for name in sorted(names):
            file = Path(path, name)
            if _is_known_file(name.lower()) and not file.is_symlink():
                yield str(file)


def _is_known_file(name: str) -> bool:
    return name in KNOWN_FILE_NAMES or name.rpartition(".")[2] in KNOWN_EXTENSIONS


def _get_name_for_detection(name: str) -> str:
    """Return the name that determines a file's type, or an empty string for standard input."""
    return "" if name == _STDIN else name


def _read_content(name: str) -> bytes:
    """Return the content of a file.

    Raise OSError if the file cannot be read, and UnreadableContentError if it is too large.
    """
    if name == _STDIN:
        content = sys.stdin.buffer.read(_MAX_FILE_BYTES + 1)
    else:
        with Path(name).open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    if len(content) > _MAX_FILE_BYTES:
        raise UnreadableContentError(f"The file is larger than {_MAX_FILE_BYTES} bytes")
    return content


def _format_error(error: Exception) -> str:
    return (error.strerror or "Cannot be read") if isinstance(error, OSError) else str(error)


def _build_page_url(change: Change) -> str:
    base_url = get_services().live_settings.environment_settings.base_url
    return f"{base_url}/help/releases/{change.id}"


releases.add_command(check_command)


@releases.command("rehearse")
@click.argument("release", callback=_parse_release_argument)
@click.option(
    "--format",
    "output",
    type=click.Choice(["json", "text"]),
    default="json",
    show_default=True,
    help="Output format.",
)
@with_appcontext
def rehearse_command(*, release: Release, output: str) -> None:
    """List the recorded API calls that RELEASE breaks, with their consumers.

    The exit status is 0 if nothing breaks, 1 if a call breaks, and 2 for an invalid argument.
    """
    session = db.session()
    found = rehearsal.rehearse_release(
        release,
        get_settings_in_transaction(session=session),
        session=session,
        now=get_current_time(),
    )
    session.rollback()
    if output == "text":
        click.echo("\n".join(rehearsal.format_rehearsal(found)))
    else:
        made = ReleaseRehearsal.from_rehearsal(found, maximum=None).model_dump(mode="json")
        click.echo(json.dumps(made, ensure_ascii=False))
    sys.exit(1 if found.breaking_usages else 0)
