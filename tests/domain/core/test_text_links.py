"""Detection of URLs in texts, which become links."""

import pytest

from domain.core.text_links import is_web_url, split_at_urls

#: Texts that no browser resolves to a website.
NO_ADDRESSES = (
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,<script>alert(1)</script>",
    "//evil.example/x",
    "vbscript:x",
    "https:evil",
    " https://evil.example",
    "https://evil.example/a b",
    "http://[",
    "http://",
    "",
)


@pytest.mark.spec("J5")
@pytest.mark.parametrize("text", NO_ADDRESSES)
def test_other_texts_are_no_web_urls(text: str) -> None:
    assert not is_web_url(text)


def test_a_web_url_has_a_web_scheme_and_a_host() -> None:
    assert is_web_url("https://runbooks.example/disk?a=b#c")
    assert is_web_url("HTTP://runbooks.example")
    assert not is_web_url(None)


def test_urls_become_links_without_punctuation() -> None:
    text = 'see (https://b.example), https://a.example/"onclick="x http://[ javascript:alert(1).'
    parts = list(split_at_urls(text))
    assert [part for part, is_link in parts if is_link] == [
        "https://b.example",
        "https://a.example/",
    ]
    assert "".join(part for part, _ in parts) == text
