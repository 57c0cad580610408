"""Builds the HTML part of an email from its text, so that both parts contain the same facts."""

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from pathlib import Path
from string import Template
from typing import NamedTuple

from domain.core.text_links import is_web_url, split_links

_FRAME = Template(Path(__file__).with_name("frame.html").read_text(encoding="utf-8"))
_SIGNATURE_MARK = "\n-- \n"
#: Line with the name of a fact and its value.
_FACT = re.compile(r"([A-Z][\w ]{0,29}): (\S.*)")
#: Line that ends with a URL, optionally after words about it.
_LINK_LINE = re.compile(r"(?:[^\n]*[:\s] ?)?(https?://\S+)")
#: Labels of the button for a URL of this service, by a part of the URL.
_LABELS = (
    ("/-/acknowledge/", "Acknowledge"),
    ("/-/invitations/", "Show invitation"),
    ("/users/password/", "Set a new password"),
    ("/users/sign_up/", "Finish sign-up"),
    ("/-/email_confirmations/", "Confirm email address"),
    ("/-/alerts", "Open alerts"),
    ("/-/incidents", "Open incidents"),
)
_P = '<p style="margin:0 0 16px;">'
_BUTTON = (
    "display:inline-block; margin:0 8px 12px 0; padding:11px 20px; border:1px solid #1d56b3; "
    "border-radius:6px; font-weight:bold; text-decoration:none; "
)
_MAIN_COLORS = "background:#1d56b3; color:#ffffff;"
_OTHER_COLORS = "color:#1d56b3;"


class EmailButton(NamedTuple):
    """A button in the HTML part of an email, for a URL that is also in its text."""

    label: str
    url: str


def build_html_part(subject: str, text: str, buttons: Sequence[EmailButton] = ()) -> str:
    """Return the HTML part of an email.

    Without given buttons, a text with a single link gets a button in place of the link.
    """
    body, _, signature = text.replace("\r\n", "\n").partition(_SIGNATURE_MARK)
    blocks = [each for each in re.split(r"\n\s*\n", body.strip("\n")) if each]
    if blocks and blocks[0] in subject:
        blocks = blocks[1:]
    own = buttons or _find_only_link(body, signature)
    urls = {each.url for each in own}
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


def _find_only_link(body: str, signature: str) -> Sequence[EmailButton]:
    """Return the button for the only URL of a text, if it ends a line and leads to this service."""
    own = next((part for part, is_link in split_links(signature) if is_link), None)
    urls = [part for part, is_link in split_links(body) if is_link]
    lines = filter(None, map(_LINK_LINE.fullmatch, body.split("\n")))
    if own is None or len(urls) != 1 or not urls[0].startswith(f"{own}/"):
        return ()
    if urls[0] not in {each[1] for each in lines}:
        return ()
    label = next((label for part, label in _LABELS if part in urls[0]), "Open page")
    return (EmailButton(label, urls[0]),)


def _format_buttons(buttons: Sequence[EmailButton]) -> str:
    if not buttons:
        return ""
    links = (
        f'<a class="{"main" if place == 0 else "button"}" href="{escape(each.url)}" '
        f'style="{_BUTTON}{_OTHER_COLORS if place else _MAIN_COLORS}">{escape(each.label)}</a>'
        for place, each in enumerate(buttons)
        if is_web_url(each.url)
    )
    return f'<div style="margin:0 0 4px;">{"".join(links)}</div>'


def _format_block(block: str, button_urls: set[str]) -> str:
    """Return the HTML of lines without a blank line between them."""
    lines = [each for line in block.split("\n") if (each := _remove_url(line, button_urls))]
    parts = []
    for is_fact, some in groupby(lines, key=lambda line: bool(_FACT.fullmatch(line))):
        group = [*some]
        if is_fact and len(group) > 1:
            parts.append(_format_facts(group))
        else:
            parts.append(f"{_P}{'<br>'.join(map(_format_line, group))}</p>")
    return "\n".join(parts)


def _remove_url(line: str, button_urls: set[str]) -> str:
    """Return a line without the URL of a button at its end, or an empty text if little remains."""
    found = _LINK_LINE.fullmatch(line)
    if found is None or found[1] not in button_urls:
        return line
    words = line.removesuffix(found[1]).strip()
    return words if words.count(" ") > 3 else ""  # noqa: PLR2004 - fewer words only name the link


def _format_facts(lines: Sequence[str]) -> str:
    rows = "".join(_format_fact_rows(lines))
    return (
        '<table role="presentation" cellspacing="0" cellpadding="0" style="margin:0 0 16px; '
        f'border-collapse:collapse; font-size:15px;">{rows}</table>'
    )


def _format_fact_rows(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        name, _, value = line.partition(": ")
        yield (
            '<tr><th scope="row" style="padding:3px 16px 3px 0; text-align:left; '
            'vertical-align:top; font-weight:normal; color:#5d6068; white-space:nowrap;">'
            f'{escape(name)}</th><td style="padding:3px 0; vertical-align:top; '
            f'overflow-wrap:anywhere;">{_format_line(value)}</td></tr>'
        )


def _format_line(line: str) -> str:
    """Return a line as HTML, in which URLs are links that show their whole URL."""
    return "".join(
        f'<a href="{escape(part)}">{escape(part)}</a>' if is_link else escape(part)
        for part, is_link in split_links(line)
    )
