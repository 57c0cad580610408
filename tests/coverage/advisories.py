"""Writes docs/evidence/advisories.md: published vulnerabilities, and the tests against them.

`tests/rfc/advisories.toml` holds the advisories in sections. Each has an identifier, the product,
its vulnerability, the behavior of Gatebell, and the source. Tests name the advisories that they
cover: `@pytest.mark.advisory("CVE-2023-34246", …)`.
"""

import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.coverage.coverage_table import ROOT, marks

ADVISORIES = ROOT / "tests" / "rfc" / "advisories.toml"

_INTRODUCTION = """\
# Advisories of the field

Holes that were published in other authorization servers, clients, libraries of tokens and
receivers of alerts, and what happens here instead: {count} advisories, each with the tests that
show it. Written by `make docs` from `tests/rfc/advisories.toml`.

What it was was compared in November 2026 with what the last column names, as public copies have
it: the GitHub Advisory Database, the records of the CVE programme, osv.dev, the databases of
RubySec, of PyPA (for Python) and of Go, or what the finder published. The words are our own.

What is found in Gatebell itself is reported as [SECURITY.md](../../SECURITY.md) says.
"""


class Advisory(NamedTuple):
    """A published vulnerability of another product."""

    id: str
    section: str
    product: str
    was: str
    here: str
    #: Text that `was` was compared with.
    source: str


def advisories(file: Path = ADVISORIES) -> list[Advisory]:
    """Return the advisories in their order."""
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    return [
        Advisory(identifier, section, *said)
        for section, rows in content.items()
        for identifier, said in rows.items()
    ]


def document(known: Sequence[Advisory], shown: Mapping[str, Sequence[str]]) -> str:
    """Return the text of docs/evidence/advisories.md."""
    introduction = _INTRODUCTION.format(count=len(known))
    return introduction + "".join(f"{line}\n" for line in _rows(known, shown))


def _rows(known: Sequence[Advisory], shown: Mapping[str, Sequence[str]]) -> Iterator[str]:
    section = ""
    for each in known:
        if each.section != section:
            section = each.section
            yield from ("", f"## {section}", "")
            yield from (
                "| advisory | product | what it was | here | tests | source |",
                "|---" * 6 + "|",
            )
        # Only the file, because files are renamed less often than tests.
        files = dict.fromkeys(test.partition("::")[0] for test in shown.get(each.id, ()))
        tests = "<br>".join(f"`{file}`" for file in files)
        yield f"| {each.id} | {each.product} | {each.was} | {each.here} | {tests} | {each.source} |"


def main() -> None:
    """Print the document."""
    sys.stdout.write(document(advisories(), marks("advisory")))


if __name__ == "__main__":
    main()
