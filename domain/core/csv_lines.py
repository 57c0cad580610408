"""Lines of CSV (RFC 4180) that no spreadsheet runs as formulas."""

import csv
from collections.abc import Iterable
from io import StringIO

#: Spreadsheets run a cell that begins with one of these as a formula; East Asian ones accept the
#: fullwidth forms as well.
_FORMULA = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
#: Some programs split a cell at these characters.
_BREAKS = frozenset("\t\r\n")


def csv_line(values: Iterable[object]) -> str:
    """Return a line; None is an empty cell."""
    line = StringIO()
    # Quote every cell: with some locales a spreadsheet splits at semicolons.
    csv.writer(line, quoting=csv.QUOTE_ALL).writerow([_harmless(value) for value in values])
    return line.getvalue()


def _harmless(value: object) -> object:
    """Return a cell, with an apostrophe in front if a spreadsheet would run it."""
    if isinstance(value, str) and _is_formula(value):
        return f"'{value}"
    return "" if value is None else value


def _is_formula(text: str) -> bool:
    """Return whether the first visible character begins a formula."""
    seen = (each for each in text if each.isprintable() and not each.isspace())
    return text[:1] in _BREAKS or next(seen, "") in _FORMULA
