"""Formats CSV lines (RFC 4180), and escapes cells that spreadsheets would run as formulas."""

import csv
from collections.abc import Iterable
from io import StringIO

#: First characters of cells that spreadsheets run as formulas. East Asian versions also accept the
#: fullwidth forms.
_FORMULA_CHARACTERS = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
#: Characters at which some programs split a cell.
_CELL_BREAK_CHARACTERS = frozenset("\t\r\n")


def format_csv_line(values: Iterable[object]) -> str:
    """Return the values as a line of CSV, with an empty cell for None."""
    line = StringIO()
    # Every cell is quoted, since spreadsheets split lines at semicolons in some locales.
    csv.writer(line, quoting=csv.QUOTE_ALL).writerow([_escape_formula(value) for value in values])
    return line.getvalue()


def _escape_formula(value: object) -> object:
    """Return a cell, prefixed with an apostrophe if a spreadsheet would run it as a formula."""
    if isinstance(value, str) and _is_formula(value):
        return f"'{value}"
    return "" if value is None else value


def _is_formula(text: str) -> bool:
    """Return whether a spreadsheet would run a string as a formula."""
    seen = (each for each in text if each.isprintable() and not each.isspace())
    return text[:1] in _CELL_BREAK_CHARACTERS or next(seen, "") in _FORMULA_CHARACTERS
