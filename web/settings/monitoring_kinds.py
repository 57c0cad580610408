"""Kinds of settings of the self-monitor."""

from dataclasses import replace

from domain.errors import InvalidError
from domain.outgoing_urls import parse_outgoing_url
from web.settings.kinds import Kind, line_of_text


def line_of_text_or_nothing(most: int) -> Kind[str]:
    """Allow any printable text on one line, or none."""
    known = line_of_text(most)
    return replace(known, allowed=f"empty, or {known.allowed}", may_be_empty=True)


def outgoing_url() -> Kind[str]:
    """Allow an empty text or a URL that requests can be sent to."""

    def read(text: str) -> str:
        try:
            parse_outgoing_url(text)
        except InvalidError as error:
            raise ValueError(text) from error
        return text

    return Kind(read, "an http or https URL without user name and fragment")
