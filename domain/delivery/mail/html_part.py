"""Builds the HTML part of an email from its text, so that both parts contain the same facts."""

import re
from collections.abc import Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from string import Template

from domain.core.text_links import split_at_urls

_FRAME = Template(Path(__file__).with_name("frame.html").read_text(encoding="utf-8"))
#: Line that consists of a label and a value.
_FACT = re.compile(r"([A-Z][\w ]{0,29}): (\S.*)")
#: Line that ends with a URL. Words can precede the URL.
_LINK_LINE = re.compile(r"(?:[^\n]*[:\s] ?)?(https?://\S+)")
#: Labels of buttons, by a part of the URL that the button opens.
_LABELS = (
    ("/-/invitations/", "Show invitation"),
    ("/users/password/", "Set a new password"),
    ("/users/sign_up/", "Finish sign-up"),
    ("/-/email_confirmations/", "Confirm email address"),
    ("/-/alerts", "Open alerts"),
)


def build_html_part(subject: str, text: str, buttons: Sequence[tuple[str, str]] = ()) -> str:
    """Return the HTML part of an email.

    `buttons` are labels and URLs, which the text also contains. If there are none and the text has
    a single link to this service, a button replaces the link.
    """
    body, signature = split_signature(text.replace("\r\n", "\n"))
    blocks = [each for each in re.split(r"\n\s*\n", body.strip("\n")) if each]
    if blocks and blocks[0] in subject:
        blocks = blocks[1:]
    own = buttons or _find_only_link(body, signature)
    urls = {url for _, url in own}
    parts = [_format_buttons(buttons)]
    for each in blocks:
        parts.append(_format_block(each, urls))
        if not buttons and any(url in each for url in urls):
            parts.append(_format_buttons(own))
    return _FRAME.substitute(
        title=escape(subject),
        body="\n".join(filter(None, parts)),
        signature="<br>".join(map(_format_line, signature.strip().split("\n"))),
    )


def split_signature(text: str) -> tuple[str, str]:
    """Split the text of an email into its body and its signature, which can be empty.

    The body can contain the signature separator, for example in the description of an alert.
    """
    body, mark, signature = text.rpartition("\n-- \n")
    return (body, signature) if mark else (text, "")


def _find_only_link(body: str, signature: str) -> Sequence[tuple[str, str]]:
    """Return a button for the only URL in an email if it ends a line and leads to this service."""
    own = next((part for part, is_link in split_at_urls(signature) if is_link), None)
    urls = [part for part, is_link in split_at_urls(body) if is_link]
    lines = filter(None, map(_LINK_LINE.fullmatch, body.split("\n")))
    if own is None or len(urls) != 1 or not urls[0].startswith(f"{own}/"):
        return ()
    if urls[0] not in {each[1] for each in lines}:
        return ()
    label = next((label for part, label in _LABELS if part in urls[0]), "Open page")
    return ((label, urls[0]),)


def _format_buttons(buttons: Sequence[tuple[str, str]]) -> str:
    links = (
        f'<a class="button{"" if place else " main"}" href="{escape(url)}">{escape(label)}</a>'
        for place, (label, url) in enumerate(buttons)
    )
    return f"<div>{' '.join(links)}</div>" if buttons else ""


def _format_block(block: str, button_urls: set[str]) -> str:
    """Return the HTML for a block of lines that contains no blank line."""
    lines = [each for line in block.split("\n") if (each := _remove_url(line, button_urls))]
    parts = []
    for is_fact, some in groupby(lines, key=lambda line: bool(_FACT.fullmatch(line))):
        group = [*some]
        if is_fact and len(group) > 1:
            rows = "".join(map(_format_table_row, group))
            parts.append(f'<table role="presentation" class="facts">{rows}</table>')
        else:
            parts.append(f"<p>{'<br>'.join(map(_format_line, group))}</p>")
    return "\n".join(parts)


def _remove_url(line: str, button_urls: set[str]) -> str:
    """Remove a button's URL from the end of a line, along with words that only name the link."""
    found = _LINK_LINE.fullmatch(line)
    if found is None or found[1] not in button_urls:
        return line
    words = line.removesuffix(found[1]).strip()
    return words if words.count(" ") > 3 else ""  # noqa: PLR2004 - fewer words only name the link


def _format_table_row(line: str) -> str:
    name, _, value = line.partition(": ")
    return f'<tr><th scope="row">{escape(name)}</th><td>{_format_line(value)}</td></tr>'


def _format_line(line: str) -> str:
    """Return a line as HTML. URLs become links whose text is the complete URL."""
    return "".join(
        f'<a href="{escape(part)}">{escape(part)}</a>' if is_link else escape(part)
        for part, is_link in split_at_urls(line)
    )
