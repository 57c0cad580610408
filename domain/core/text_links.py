"""Finds URLs and alert numbers in text."""

import re
from collections.abc import Collection, Iterator
from urllib.parse import urlsplit

_URL = re.compile(r"https?://[^\s<>\"“”]+", re.IGNORECASE)
_ALERT_NUMBER = re.compile(r"#([0-9]{1,10})\b")
#: Punctuation that ends a sentence rather than a URL.
_TRAILING_PUNCTUATION = ".,;:!?'\N{RIGHT SINGLE QUOTATION MARK})]}*_"


def is_web_url(text: str | None) -> bool:
    """Return whether a string is an http or https URL with a host."""
    if not text or any(character.isspace() for character in text):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)


def split_at_urls(text: str) -> Iterator[tuple[str, bool]]:
    """Split a string at its URLs. Yield each part, and whether the part is a URL."""
    end = 0
    for found in _URL.finditer(text):
        url = found[0].rstrip(_TRAILING_PUNCTUATION)
        if not is_web_url(url):
            continue
        yield text[end : found.start()], False
        yield url, True
        end = found.start() + len(url)
    yield text[end:], False


def split_at_alert_numbers(text: str, numbers: Collection[int]) -> Iterator[tuple[str, int | None]]:
    """Split a string at its alert numbers. Yield each part with its alert number, or None.

    An alert number is written as `#12`. Only the given numbers are recognized, since a title may
    contain other numbers.
    """
    end = 0
    for found in _ALERT_NUMBER.finditer(text):
        if int(found[1]) in numbers:
            yield text[end : found.start()], None
            yield found[0], int(found[1])
            end = found.end()
    yield text[end:], None
