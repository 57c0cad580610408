"""A picture for everybody: the initial of the name on a colour of one's own.

The address says all that the picture shows, so that it tells nobody who else is here.
"""

import unicodedata

_HUES = 360
_UNKNOWN = "-"
#: The golden angle in degrees: neighbours get colours that are far apart.
_STEP = 137
_PICTURE = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="256" height="256">'
    '<rect width="64" height="64" fill="hsl({hue} 45% 38%)"/>'
    '<text x="32" y="43" text-anchor="middle" font-family="sans-serif" font-size="32" '
    'fill="#fff">{letter}</text></svg>'
)


def picture_path(name: str, user_id: int) -> str:
    """Return where the picture of somebody lies, from the first slash on."""
    return f"/-/pictures/{_initial(name)}-{user_id * _STEP % _HUES}.svg"


def _initial(name: str) -> str:
    """Return the first letter or digit in ASCII, as far as there is one."""
    plain = unicodedata.normalize("NFKD", name).upper()
    return next((each for each in plain if each.isascii() and each.isalnum()), _UNKNOWN)


def draw_picture(letter: str, hue: int) -> str:
    """Return the picture as SVG; `hue` is in degrees."""
    shown = letter if letter.isascii() and letter.isalnum() and len(letter) == 1 else ""
    return _PICTURE.format(letter=shown, hue=hue % _HUES)
