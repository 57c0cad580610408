"""Which names people, groups and projects may bear."""

import re
import unicodedata

#: A full path, and the name that people read; in characters.
LONGEST_PATH, LONGEST_NAME = 255, 100
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


def check_display_name(name: str) -> None:
    """Raise ValueError, with a sentence, if people cannot be shown such a name."""
    if len(name) > LONGEST_NAME:
        message = f"A name may have at most {LONGEST_NAME} characters."
        raise ValueError(message)
    if any(unicodedata.category(each) == "Cc" for each in name):
        message = "A name is one line, without control characters."
        raise ValueError(message)


def check_path(path: str, *, reserved: frozenset[str]) -> None:
    """Raise ValueError if a group or project may not live at this full path.

    `reserved` are first parts that routes of the service begin with, in lower case.
    """
    if len(path) > LONGEST_PATH:
        message = f"A path may have at most {LONGEST_PATH} characters."
        raise ValueError(message)
    segments = path.split("/")
    for segment in segments:
        _check_segment(segment, "Each part of a path")
    if segments[0].lower() in reserved:
        message = f"“{segments[0]}” is reserved for the service itself; choose another name."
        raise ValueError(message)


def can_be_path(path: str) -> bool:
    """Tell whether a group or project may live at a full path: `acme/logo.json` is no such."""
    try:
        check_path(path, reserved=frozenset())
    except ValueError:
        return False
    return True


def as_segment(name: str) -> str:
    """Return a path segment that looks like a display name, or an empty string."""
    return re.sub(r"[^a-z0-9_.]+", "-", name.lower()).strip("-._")[:100]
