"""Formats reports as text, as JSON, and as SARIF for code hosts and editors."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from domain.releases.changes import Certainty, Change
from domain.releases.checker.findings import Finding, Report

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
#: Function that returns the URL of the page of a change.
PageOf = Callable[[Change], str]


class Checked(NamedTuple):
    """A file with its report."""

    #: Name as given by the caller.
    name: str
    report: Report


def as_text(checked: Sequence[Checked]) -> str:
    """Return one line per finding in the format of compilers, with the level error or warning."""
    return "".join(
        f"{each.name}:{found.line}: {_level(found)}: {found.change.message}\n"
        for each in checked
        for found in each.report.findings
    )


def as_json(checked: Sequence[Checked], page_of: PageOf) -> dict[str, Any]:
    """Return the findings of all files in the format of the API, with the names of the files."""
    return {
        "findings": [
            {"file": each.name, **_finding(found, page_of)}
            for each in checked
            for found in each.report.findings
        ]
    }


def _finding(found: Finding, page_of: PageOf) -> dict[str, Any]:
    change = found.change
    return {
        "change": change.id,
        "title": change.title,
        "release": change.release,
        "interface": change.interface.value,
        "line": found.line,
        "certainty": found.certainty.value,
        "reason": found.reason,
        "replacement": change.replacement,
        "url": page_of(change),
    }


def as_sarif(checked: Sequence[Checked], page_of: PageOf) -> dict[str, Any]:
    """Return a SARIF 2.1.0 log with a rule for each change and a result for each finding."""
    changes = {found.change.id: found.change for each in checked for found in each.report.findings}
    places = {name: at for at, name in enumerate(changes)}
    driver = {
        "name": "gatebell-releases",
        "rules": [_rule(change, page_of) for change in changes.values()],
    }
    results = [
        _result(each.name, found, places[found.change.id])
        for each in checked
        for found in each.report.findings
    ]
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(change: Change, page_of: PageOf) -> dict[str, Any]:
    return {
        "id": change.id,
        "shortDescription": {"text": change.title},
        "fullDescription": {"text": change.after},
        "help": {"text": change.replacement},
        "helpUri": page_of(change),
        "properties": {"release": change.release, "interface": change.interface.value},
    }


def _result(name: str, found: Finding, rule: int) -> dict[str, Any]:
    change = found.change
    place = {
        "artifactLocation": {"uri": _uri(name)},
        "region": {"startLine": found.line},
    }
    return {
        "ruleId": change.id,
        "ruleIndex": rule,
        "level": _level(found),
        "message": {"text": found.change.message},
        "locations": [{"physicalLocation": place}],
    }


def _level(found: Finding) -> str:
    return "error" if found.certainty is Certainty.SURE else "warning"


def _uri(name: str) -> str:
    """Return a relative reference or a file URL (SARIF 2.1.0 section 3.4.3)."""
    path = quote(name.replace("\\", "/"))
    return f"file://{path}" if path.startswith("/") else path.removeprefix("./")
