"""QR codes as a path for an SVG, so that pages need no picture from elsewhere and no style."""

from dataclasses import dataclass
from itertools import groupby

import segno

#: Four light squares around it, as the standard wants.
_MARGIN = 4


@dataclass(frozen=True, kw_only=True)
class QrCode:
    """The dark squares, in units of one of them."""

    size: int
    path: str


def qr_code(text: str) -> QrCode:
    """Draw a text."""
    rows = [list(row) for row in segno.make(text, micro=False).matrix_iter(border=_MARGIN)]
    path = "".join(_row(number, row) for number, row in enumerate(rows))
    return QrCode(size=len(rows), path=path)


def _row(number: int, row: list[int]) -> str:
    """Draw each run of dark squares as one rectangle."""
    drawn, column = [], 0
    for is_dark, squares in groupby(row, key=bool):
        length = len(list(squares))
        if is_dark:
            drawn.append(f"M{column} {number}h{length}v1h-{length}z")
        column += length
    return "".join(drawn)
