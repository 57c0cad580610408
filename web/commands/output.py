"""Output of commands: one JSON object, or a table for users."""

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

_FORMAT_META_KEY, _OUTPUT_PARAMETER = "gatebell.output", "gatebell_output"
_OUTPUT_FORMATS = ("json", "table")
#: Unicode categories of control characters and direction marks, which can affect a terminal.
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_COLUMN_GAP = "  "

Row = Mapping[str, Any]


def add_output_option(command: click.Command) -> None:
    """Add the `--output` option to a command and all its subcommands.

    A command with two names receives the option only once.
    """
    if any(each.name == _OUTPUT_PARAMETER for each in command.params):
        return
    command.params.append(_build_output_option())
    if isinstance(command, click.Group):
        for each in command.commands.values():
            add_output_option(each)


def _build_output_option() -> click.Option:
    return click.Option(
        # The name is unique, because commands may have their own parameter named output.
        ["--output", _OUTPUT_PARAMETER],
        type=click.Choice(_OUTPUT_FORMATS),
        help="Output format. The default is json.",
        expose_value=False,
        callback=_store_format,
    )


def _store_format(context: click.Context, _option: click.Parameter, value: str | None) -> None:
    if value is not None:
        context.meta[_FORMAT_META_KEY] = value


def print_result(answer: Mapping[str, Any]) -> None:
    """Print the result of a command in the format that --output selects."""
    if click.get_current_context().meta.get(_FORMAT_META_KEY) == "table":
        click.echo("\n".join(format_table_lines(answer)))
    else:
        click.echo(json.dumps(answer, ensure_ascii=False))


def format_table_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """Format an object as lines, with lists of objects as tables after all other values."""
    tables = {name: value for name, value in answer.items() if _is_list_of_rows(value)}
    rest = [{"name": name, "value": answer[name]} for name in answer if name not in tables]
    if rest:
        yield from _align_columns([[each["name"], _format_cell(each["value"])] for each in rest])
    for name, rows in tables.items():
        if rest or len(tables) > 1:
            yield ""
            yield f"{name}:"
        yield from _format_table(rows)


def _is_list_of_rows(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _format_table(rows: Sequence[Row]) -> Iterator[str]:
    names = list(dict.fromkeys(name for row in rows for name in row))
    header = [name.upper() for name in names]
    yield from _align_columns(
        [header, *([_format_cell(row.get(name)) for name in names] for row in rows)]
    )


def _align_columns(lines: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(_measure_width, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (
            text + " " * (width - _measure_width(text))
            for text, width in zip(line, widths, strict=True)
        )
        yield _COLUMN_GAP.join(cells).rstrip()


def _format_cell(value: object) -> str:
    """Format a value on one line, without characters that affect a terminal."""
    return "".join(map(_escape_character, _format_value(value)))


def _format_value(value: object) -> str:
    if value is None or value == []:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(each, str | int) for each in value):
        return ", ".join(str(each) for each in value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def _escape_character(character: str) -> str:
    if unicodedata.category(character) not in _UNSAFE_CATEGORIES:
        return character
    return " " if character in "\n\t" else f"\\u{ord(character):04x}"


def _measure_width(text: str) -> int:
    """Return the width of the given text in columns.

    Wide characters count as 2 columns, and combining characters as 0.
    """
    return sum(
        0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF")
        for each in text
    )
