"""Finds fields of responses that jq reads: `curl … | jq '.assets.links[].external'`."""

import re
from collections.abc import Iterator, Sequence

from domain.releases.checker.command_lines import Word
from domain.releases.checker.findings import Found
from domain.releases.checker.requests import Request
from domain.releases.checker.routes import api_path, concerns_of

FILTERS = frozenset({"jq", "gojq", "jaq"})
#: `.name`, `."name"`, `["name"]`, and `{name}`.
_READ = re.compile(r"""[.\[{,]\s*"?([A-Za-z_]\w*+)""")
#: Longer filters are read up to here.
_LONGEST = 64 * 1024


def fields_read(words: Sequence[Word], sent: Sequence[Request]) -> Iterator[Found]:
    """Yield the fields that a filter reads of the responses to requests."""
    changing = {
        field.rpartition(".")[2]: concern.change
        for request in sent
        for concern in concerns_of(api_path(request.parts.path) or "")
        if not concern.call.methods or request.method in concern.call.methods
        for field in concern.call.fields
    }
    for word in words:
        for found in _READ.finditer(word.text[:_LONGEST]) if changing else ():
            change = changing.get(found[1])
            if change is not None:
                line = word.line + word.text.count("\n", 0, found.start())
                yield Found(change, line, f"The field {found[1]} of a response")
