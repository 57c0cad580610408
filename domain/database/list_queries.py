"""Parses the query parameters of lists; unknown ones are refused.

Who fetches a list and then works on all of it would work on everything for one mistyped word.
"""

from collections.abc import Iterable, Mapping, Sequence

from domain.database.paging import Slice, parse_id, read_cursor
from domain.errors import QueryError

LONGEST_SEARCH = 200
#: So much of an unknown name is said again.
_LONGEST_ECHO = 50


def check_known(
    given: Iterable[tuple[str, Sequence[str]]], known: Sequence[str], unsaid: Sequence[str] = ()
) -> None:
    """Raise QueryError for an unknown or a repeated parameter.

    What is `unsaid` is known as well, and is not named among what the list takes.
    """
    for name, values in given:
        if name not in known and name not in unsaid:
            raise QueryError(
                f"{_shown(name)} is not a known parameter; {_takes(known)}.", field=name
            )
        if len(values) > 1:
            raise QueryError(f"{name} can be given only once.", field=name)


def _shown(name: str) -> str:
    if not name:
        return "A value without a name"
    return f"{name[:_LONGEST_ECHO]}…" if len(name) > _LONGEST_ECHO else name


def _takes(known: Sequence[str]) -> str:
    return f"known parameters: {', '.join(known)}" if known else "this list has no parameters"


def one_of(given: Mapping[str, str], name: str, choices: Iterable[str], usual: str) -> str:
    """Return the chosen value, or the default without one; raise QueryError for others."""
    value = given.get(name) or usual
    if value != usual and value not in choices:
        raise QueryError(f"{name} must be one of {', '.join(choices)}.", field=name)
    return value


def words(given: Mapping[str, str], name: str, *, most: int = LONGEST_SEARCH) -> str:
    """Return a text, which may be empty; raise QueryError if it is too long."""
    value = given.get(name, "")
    if len(value) > most:  # a truncated text would match more
        raise QueryError(f"{name} can have at most {most} characters.", field=name)
    return value


def row_id(given: Mapping[str, str], name: str) -> int | None:
    """Return a row id, or raise QueryError."""
    text = given.get(name, "")
    number = parse_id(text)
    if text and number is None:
        raise QueryError(f"{name} must be a whole number.", field=name)
    return number


def slice_of(given: Mapping[str, str], *, size: int) -> Slice:
    """Return the slice that `before` or `after` begins."""
    before, after = read_cursor(given.get("before")), read_cursor(given.get("after"))
    return Slice(size=size, before=before, after=after)
