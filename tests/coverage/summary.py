"""Writes docs/evidence/coverage.md: the number of statements and requirements with a test.

The tables that name every test are long and change whenever a test is renamed, so they are not kept
in the repository: `make docs` writes them to build/docs/.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from tests.coverage.coverage_table import Statement, marks, statements
from tests.coverage.rfc_coverage import Standard, standards, summary

_INTRODUCTION = """\
# Test coverage

`make docs` generates this page from the marks of the tests. It also writes tables with the names of
the tests to `build/docs/statements.md` and `build/docs/standards.md`.

## Statements of the specification

{shown} of {all} [statements](statements.md) have a test.
"""

_STANDARDS = """\

## Requirements of the standards

The table counts the requirements of each standard for authorization servers, OpenID providers and
resource servers, from `tests/rfc/requirements/`. Each requirement has a test that examines requests
and responses, or a reason why it is not implemented.
"""


def document(
    known: Sequence[Statement],
    shown: Mapping[str, Sequence[str]],
    requirements: Sequence[Standard],
    requirements_shown: Mapping[str, Sequence[str]],
) -> str:
    """Return the text of docs/evidence/coverage.md."""
    count = sum(each.id in shown for each in known)
    lines = [*_sections(known, shown), *_missing(known, shown)]
    return "".join(
        (
            _INTRODUCTION.format(shown=count, all=len(known)),
            *(f"{line}\n" for line in lines),
            _STANDARDS,
            *(f"{line}\n" for line in summary(requirements, requirements_shown)),
        )
    )


def _sections(known: Sequence[Statement], shown: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield from ("", "| section | statements | tested |", "|---|---|---|")
    for section, group in groupby(known, key=lambda each: each.section):
        ids = [each.id for each in group]
        yield f"| {section} | {len(ids)} | {sum(each in shown for each in ids)} |"


def _missing(known: Sequence[Statement], shown: Mapping[str, Sequence[str]]) -> Iterator[str]:
    missing = [each for each in known if each.id not in shown]
    if missing:
        yield from ("", "Statements without a test:", "")
        yield from (f"- {each.id}: {each.text}" for each in missing)


def main() -> None:
    """Print the document."""
    sys.stdout.write(document(statements(), marks(), standards(), marks("rfc")))


if __name__ == "__main__":
    main()
