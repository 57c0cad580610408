"""QR codes as SVG paths, which need neither an external image nor an inline style."""

from dataclasses import dataclass
from itertools import groupby

import segno

#: Width of the quiet zone that the standard requires, in modules.
_QUIET_ZONE_MODULES = 4


@dataclass(frozen=True, kw_only=True)
class QrCode:
    """A QR code, with lengths in modules."""

    size: int
    path: str


def build_qr_code(text: str) -> QrCode | None:
    """Return the QR code for the given text, or None if the text is too long."""
    try:
        code = segno.make(text, micro=False)
    except segno.DataOverflowError:
        return None
    rows = [list(row) for row in code.matrix_iter(border=_QUIET_ZONE_MODULES)]
    path = "".join(_build_row_path(number, row) for number, row in enumerate(rows))
    return QrCode(size=len(rows), path=path)


def _build_row_path(number: int, row: list[int]) -> str:
    """Return the path of a row, with a rectangle for each run of dark modules."""
    drawn, column = [], 0
    for is_dark, squares in groupby(row, key=bool):
        length = len(list(squares))
        if is_dark:
            drawn.append(f"M{column} {number}h{length}v1h-{length}z")
        column += length
    return "".join(drawn)
