"""Visible text of pages."""

import re
from html import unescape

import requests


def words(page: requests.Response) -> str:
    """Return the text of the main part of a page, on one line."""
    main = re.sub(r"(?s).*<main.*?>|</main>.*", "", page.text)
    return " ".join(unescape(re.sub(r"<[^>]*>", "", main)).split())


def shown_words(page: requests.Response) -> str:
    """Return the text of a successful page."""
    assert page.status_code == 200, page.text
    return words(page)
