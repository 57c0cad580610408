"""Avatars: the initial of a user's name on a colour derived from the user's id.

The URL holds all that the avatar shows, so that it reveals nothing about which users exist.
"""

import unicodedata
from typing import Protocol
from urllib.parse import quote

_HUES = 360
#: For a name without a letter or digit, such as one of signs: head and shoulders.
_UNKNOWN = "-"
_SOMEBODY = (
    '<g fill="#fff"><circle cx="32" cy="24" r="10"/><path d="M12 54a20 18 0 0 1 40 0z"/></g>'
)
#: The golden angle in degrees: neighbours get colours that are far apart.
_STEP = 137
_AVATAR = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="256" height="256">'
    '<rect width="64" height="64" fill="hsl({hue} 45% 38%)"/>{shown}</svg>'
)
_LETTER = (
    '<text x="32" y="43" text-anchor="middle" font-family="sans-serif" font-size="32" '
    'fill="#fff">{letter}</text>'
)


def avatar_path(name: str, user_id: int) -> str:
    """Return the URL path of a user's avatar."""
    return f"/-/pictures/{quote(_initial(name))}-{user_id * _STEP % _HUES}.svg"


class _Pictured(Protocol):
    """Somebody who has an avatar."""

    @property
    def id(self) -> int: ...
    @property
    def username(self) -> str: ...
    @property
    def name(self) -> str: ...


def avatar_url(person: _Pictured, base_url: str) -> str:
    """Return the URL of a user's avatar."""
    return f"{base_url}{avatar_path(person.name or person.username, person.id)}"


def _initial(name: str) -> str:
    """Return the first letter or digit of a name, in upper case."""
    first = next((each for each in unicodedata.normalize("NFKC", name) if each.isalnum()), _UNKNOWN)
    capital = unicodedata.normalize("NFC", first.upper())
    return capital if len(capital) == 1 else first


def draw_avatar(letter: str, hue: int) -> str:
    """Return the avatar as SVG; `hue` is in degrees."""
    is_letter = letter.isalnum() and len(letter) == 1
    shown = _LETTER.format(letter=letter) if is_letter else _SOMEBODY
    return _AVATAR.format(shown=shown, hue=hue % _HUES)
