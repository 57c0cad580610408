"""Writes the tables of docs/escalation-states.md.

Run `python -m domain.paging.escalations.document`.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from domain.paging.escalations.state import MOVES
from domain.paging.notifications.states import MESSAGES, PAGES

_PATH = Path("docs/escalation-states.md")
BEGIN = "<!-- states -->\n"
_HEAD = "| state | event | next state | what happens |\n|---|---|---|---|\n"


class _Move(Protocol):
    @property
    def to(self) -> str:
        """Return the next state."""

    @property
    def what(self) -> str:
        """Return the effect of the transition in sentences."""


def tables() -> str:
    """Return the state tables of escalations, pages and messages as Markdown."""
    parts = (
        ("Transitions of an escalation", _rows(MOVES)),
        ("Transitions of a page", _rows(PAGES)),
        ("Transitions of a message", _rows(MESSAGES)),
    )
    return "\n".join(f"## {title}\n\n{_HEAD}{''.join(rows)}" for title, rows in parts)


def _rows(moves: Mapping[Any, Mapping[Any, _Move]]) -> Iterator[str]:
    for state, events in moves.items():
        for event, move in events.items():
            yield f"| {_words(state)} | {event} | {_words(move.to)} | {move.what} |\n"


def _words(state: str) -> str:
    return str(state).replace("_", " ")


def with_tables(text: str) -> str:
    """Return the document with the current tables, which are its last part."""
    before, _, _ = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{tables()}"


if __name__ == "__main__":
    _PATH.write_text(with_tables(_PATH.read_text(encoding="utf-8")), encoding="utf-8")
