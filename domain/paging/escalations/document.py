"""Writes the tables of states into docs/escalations.md.

Run `python -m domain.paging.escalations.document`.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from domain.paging.escalations.state import MOVES
from domain.paging.notifications.states import MESSAGES, PAGES

_PATH = Path("docs/escalations.md")
BEGIN = "<!-- states -->\n"
_END = "\n## Routes\n"
_HEAD = "| state | event | next state | what happens |\n|---|---|---|---|\n"


class _Move(Protocol):
    @property
    def to(self) -> str:
        """Return the next state."""

    @property
    def what(self) -> str:
        """Return what happens, as sentences."""


def tables() -> str:
    """Return the states of an escalation, a page and a message as Markdown."""
    parts = (
        ("An escalation", _rows(MOVES)),
        ("A page to one person or channel", _rows(PAGES)),
        ("A message to one contact", _rows(MESSAGES)),
    )
    return "\n".join(f"{title}:\n\n{_HEAD}{''.join(rows)}" for title, rows in parts)


def _rows(moves: Mapping[StrEnum, Mapping[StrEnum, _Move]] | Mapping) -> Iterator[str]:  # type: ignore[type-arg]
    for state, events in moves.items():
        for event, move in events.items():
            yield f"| {_words(state)} | {event} | {_words(move.to)} | {move.what} |\n"


def _words(state: str) -> str:
    return str(state).replace("_", " ")


def with_tables(text: str) -> str:
    """Return the document with the tables of today."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{tables()}{_END}{rest.partition(_END)[2]}"


if __name__ == "__main__":
    _PATH.write_text(with_tables(_PATH.read_text(encoding="utf-8")), encoding="utf-8")
