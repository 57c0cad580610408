"""Rules for the names of users, groups and projects."""

import re
import unicodedata

#: Maximum lengths of a full path and of a display name, in characters.
MAX_PATH_LENGTH, MAX_DISPLAY_NAME_LENGTH = 255, 100
#: Maximum length of a username or a part of a path, in characters.
MAX_PATH_SEGMENT_LENGTH = 100
_SEGMENT_PATTERN = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_.-]{{0,{MAX_PATH_SEGMENT_LENGTH - 1}}}")
_FORBIDDEN_ENDINGS = (".", ".git", ".atom", ".json")


def _check_segment(segment: str, what: str) -> None:
    if not _SEGMENT_PATTERN.fullmatch(segment):
        raise ValueError(
            f"{what} can have up to {MAX_PATH_SEGMENT_LENGTH} letters a to z, digits, dots, "
            "dashes and "
            "underscores, and must start with a letter, a digit or an underscore."
        )
    if segment.lower().endswith(_FORBIDDEN_ENDINGS):
        raise ValueError(f"{what} must not end with a dot, .git, .atom or .json.")


def check_username(username: str) -> None:
    """Check that a username is valid.

    Raise ValueError with an explanation if the name is not valid.
    """
    _check_segment(username, "A username")


def check_display_name(name: str) -> None:
    """Check that a display name is valid.

    Raise ValueError with an explanation if the name is not valid.
    """
    if len(name) > MAX_DISPLAY_NAME_LENGTH:
        raise ValueError(f"A name can have at most {MAX_DISPLAY_NAME_LENGTH} characters.")
    if any(unicodedata.category(each) == "Cc" for each in name):
        raise ValueError("A name must be a single line without control characters.")


def check_path(path: str, *, reserved: frozenset[str]) -> None:
    """Check that the full path of a group or project is valid.

    `reserved` contains the first segments of the service's own routes, in lowercase. Raise
    ValueError with an explanation if the path is not valid.
    """
    if len(path) > MAX_PATH_LENGTH:
        raise ValueError(f"A path can have at most {MAX_PATH_LENGTH} characters.")
    segments = path.split("/")
    for segment in segments:
        _check_segment(segment, "Each part of a path")
    if segments[0].lower() in reserved:
        message = f'"{segments[0]}" is reserved for the service itself. Choose another name.'
        raise ValueError(message)


def is_valid_path(path: str) -> bool:
    """Return whether a full path is valid for a group or project.

    For example, `acme/logo.json` is not valid.
    """
    try:
        check_path(path, reserved=frozenset())
    except ValueError:
        return False
    return True


def slugify_name(name: str) -> str:
    """Return a path segment derived from a display name.

    Return an empty string if the name contains no characters that are allowed in a path.
    """
    return re.sub(r"[^a-z0-9_.]+", "-", name.lower()).strip("-._")[:100]
