"""Which texts may become links."""

from urllib.parse import urlsplit


def is_web_address(text: str | None) -> bool:
    """Tell whether a text is an http or https address with a host, and nothing a browser runs."""
    if not text or any(character.isspace() for character in text):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)
