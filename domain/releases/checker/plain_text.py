"""Finds addresses and names in a text of no kind that is known, such as notes or a document."""

import re
from collections.abc import Iterator

from domain.releases.checker.findings import Found
from domain.releases.checker.lines import numbered_lines
from domain.releases.checker.names import names_in_text
from domain.releases.checker.requests import Request, judge

_ADDRESS = re.compile(r"(?:https?://[^\s/\"'<>`]{1,300})?/(?:api/v4/|-/jwks)[^\s\"'<>`)]*")
#: Lines are read up to so many characters.
_LONGEST = 64 * 1024


def check_plain_text(text: str) -> Iterator[Found]:
    """Yield what changes for addresses, taken as those of GET requests, and for names."""
    for number, line in numbered_lines(text):
        for found in _ADDRESS.finditer(line[:_LONGEST]):
            url = found[0].rstrip(".,;:")
            yield from judge(Request(method="GET", url=url, line=number, has_body=False))
        yield from names_in_text(line[:_LONGEST], number, is_client=False)
