"""Writes build/docs/standards.md: the tests of each requirement of each standard.

The requirements are data: a file in tests/rfc/requirements/ holds the requirements of a document,
one on each line. The file `rfc7636.toml`, for example:

    document = "RFC 7636"
    title = "Proof Key for Code Exchange"

    ["4.6 Server verifies the verifier"]
    a = ["MUST", "A verifier that does not match the challenge is rejected with invalid_grant."]
    b = ["MAY", "The method plain is offered.", "not supported: it protects nobody."]

has the requirements `rfc7636-4.6-a` and `rfc7636-4.6-b`: name of the file, number of the section,
letter. The text paraphrases the standard. A third text exists only if the service does not
implement the requirement. It begins with "not supported: " or "not applicable: " and gives the
reason.

Tests name the requirements that they cover with `@pytest.mark.rfc("rfc7636-4.6-a", …)`, on a
function, a class or, as `pytestmark`, a file. They are read, not run. The build fails if a test
names an id that no file has, or if a requirement has neither a test nor a reason.
"""

import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from tests.coverage.coverage_table import ROOT, marks

REQUIREMENTS = ROOT / "tests" / "rfc" / "requirements"
LEVELS = frozenset({"MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY"})
REASONS = ("not supported: ", "not applicable: ")

_INTRODUCTION = """\
# Tests of each requirement of the standards

`make docs` generates this page from `tests/rfc/requirements/` and the `rfc` marks of the tests. The
page lists the requirements of the standards for authorization servers, OpenID providers and
resource servers, in our own words. A requirement is *tested* if a test examines it in requests and
responses. If the service does not implement a requirement, the table shows the reason.
"""


class Result(StrEnum):
    """Result for a requirement."""

    SHOWN = "tested"
    NOT_SUPPORTED = "not supported"
    NOT_APPLICABLE = "not applicable"
    NOT_SHOWN = "not tested"


class Requirement(NamedTuple):
    """A single requirement of a standard."""

    id: str
    #: Number and name of the section, such as "4.6 Server verifies the verifier".
    section: str
    level: str
    text: str
    #: Reason why the service does not implement it, with its prefix; otherwise empty.
    reason: str


class Standard(NamedTuple):
    """A document with its requirements."""

    name: str
    title: str
    requirements: tuple[Requirement, ...]


def standards(folder: Path = REQUIREMENTS) -> list[Standard]:
    """Return the documents in the order of their files' names."""
    return [_read(file) for file in sorted(folder.glob("*.toml"))]


def _read(file: Path) -> Standard:
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    name, title = content.pop("document"), content.pop("title")
    return Standard(name, title, tuple(_requirements(file.stem, content)))


def _requirements(
    prefix: str, content: Mapping[str, Mapping[str, Sequence[str]]]
) -> Iterator[Requirement]:
    for section, lines in content.items():
        for letter, (level, text, *reason) in lines.items():
            number = section.partition(" ")[0]
            identifier = f"{prefix}-{number}-{letter}"
            yield Requirement(identifier, section, level, text, "".join(reason))


def result_of(requirement: Requirement, shown: Mapping[str, Sequence[str]]) -> Result:
    """Return the result of a requirement according to the tests and the file."""
    if requirement.reason:
        return Result(requirement.reason.partition(":")[0])
    return Result.SHOWN if requirement.id in shown else Result.NOT_SHOWN


def document(known: Sequence[Standard], shown: Mapping[str, Sequence[str]]) -> str:
    """Return the table of requirements with the names of their tests."""
    lines = [*summary(known, shown)]
    for standard in known:
        lines += _standard(standard, shown)
    return _INTRODUCTION + "".join(f"{line}\n" for line in lines)


def summary(known: Sequence[Standard], shown: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield the lines of the table that counts the results for each document."""
    yield from ("", f"| document | {' | '.join(Result)} |", "|---" * (len(Result) + 1) + "|")
    for standard in known:
        results = [result_of(each, shown) for each in standard.requirements]
        counts = " | ".join(str(results.count(result)) for result in Result)
        yield f"| {standard.name}, {standard.title} | {counts} |"


def _standard(standard: Standard, shown: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield from ("", f"## {standard.name}: {standard.title}")
    section = ""
    for each in standard.requirements:
        if each.section != section:
            section = each.section
            yield from (
                "",
                f"### {section}",
                "",
                "| id | level | requirement | result |",
                "|---|---|---|---|",
            )
        yield f"| {each.id} | {each.level} | {each.text} | {_cell(each, shown)} |"


def _cell(requirement: Requirement, shown: Mapping[str, Sequence[str]]) -> str:
    said = requirement.reason or result_of(requirement, shown)
    return "<br>".join([said, *(f"`{test}`" for test in shown.get(requirement.id, ()))])


def main() -> None:
    """Print the document, or, with --missing, the requirements without a test."""
    known, shown = standards(), marks("rfc")
    if "--missing" not in sys.argv:
        sys.stdout.write(document(known, shown))
        return
    for standard in known:
        for each in standard.requirements:
            if result_of(each, shown) is Result.NOT_SHOWN:
                sys.stdout.write(f"{each.id:24} {each.text}\n")


if __name__ == "__main__":
    main()
