"""Which names people, groups and projects may bear."""

import re

_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_FORBIDDEN_ENDINGS = (".", ".git", ".atom", ".json")


def _check_segment(segment: str, what: str) -> None:
    if not _SEGMENT.fullmatch(segment):
        message = (
            f"{what} may have up to 100 letters a to z, digits, dots, dashes and underscores, "
            "and starts with a letter, a digit or an underscore."
        )
        raise ValueError(message)
    if segment.lower().endswith(_FORBIDDEN_ENDINGS):
        message = f"{what} may not end in a dot, .git, .atom or .json."
        raise ValueError(message)


def check_username(username: str) -> None:
    """Raise ValueError, with a sentence, if a user may not be called so."""
    _check_segment(username, "A user name")


def check_path(path: str, *, reserved: frozenset[str]) -> None:
    """Raise ValueError if a group or project may not live at this full path.

    `reserved` are first parts that routes of the service begin with, in lower case.
    """
    segments = path.split("/")
    for segment in segments:
        _check_segment(segment, "Each part of a path")
    if segments[0].lower() in reserved:
        message = f"“{segments[0]}” is reserved for the service itself; choose another name."
        raise ValueError(message)


def as_segment(name: str) -> str:
    """Return a path segment that looks like a display name, or an empty string."""
    return re.sub(r"[^a-z0-9_.]+", "-", name.lower()).strip("-._")[:100]
