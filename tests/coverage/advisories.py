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
# Advisories

This page lists {count} published vulnerabilities of other authorization servers, clients, token
libraries and alert receivers. For each vulnerability, it shows the behavior of Gatebell and the
tests of it. `make docs` generates the page from `tests/rfc/advisories.toml`.

The descriptions are in our own words. In November 2026, they were compared with public copies of
the sources in the last column. These are the GitHub Advisory Database, the CVE records, osv.dev,
the databases of RubySec, PyPA (Python) and Go, and publications of the finders.

[SECURITY.md](../../SECURITY.md) describes how to report vulnerabilities of Gatebell.
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
                "| advisory | product | vulnerability | Gatebell | tests | source |",
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
