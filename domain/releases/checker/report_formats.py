"""Formats reports as text, as JSON, or as SARIF for code hosts and editors."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from domain.releases.changes import Certainty, Change
from domain.releases.checker.findings import CheckReport, Finding

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
#: Function that returns the URL of the web page for a change.
PageUrlFunction = Callable[[Change], str]


class CheckedFile(NamedTuple):
    """The name of a checked file, and its report."""

    #: Name of the file, as given by the caller.
    name: str
    report: CheckReport


def format_as_text(checked_files: Sequence[CheckedFile]) -> str:
    """Return a line in compiler style for each finding, marked as an error or a warning."""
    return "".join(
        f"{each.name}:{found.line}: {_get_sarif_level(found)}: {_format_request_prefix(found)}"
        f"{found.change.message}\n"
        for each in checked_files
        for found in each.report.findings
    )


def format_as_json(
    checked_files: Sequence[CheckedFile], page_of: PageUrlFunction
) -> dict[str, Any]:
    """Return the findings in all files in the format of the API, with the names of the files."""
    return {
        "findings": [
            {"file": each.name, **_format_finding(found, page_of)}
            for each in checked_files
            for found in each.report.findings
        ]
    }


def _format_request_prefix(finding: Finding) -> str:
    """Return a prefix with the number of the request, since a HAR file can be one line.

    Return an empty string for findings in other files.
    """
    return f"request {finding.request}: " if finding.request else ""


def _format_finding(finding: Finding, page_of: PageUrlFunction) -> dict[str, Any]:
    change = finding.change
    return {
        "change": change.id,
        "title": change.title,
        "release": change.release,
        "interface": change.interface.value,
        "line": finding.line,
        "request": finding.request,
        "certainty": finding.certainty.value,
        "reason": finding.reason,
        "replacement": change.replacement,
        "url": page_of(change),
    }


def format_as_sarif(
    checked_files: Sequence[CheckedFile], page_of: PageUrlFunction
) -> dict[str, Any]:
    """Return a SARIF 2.1.0 log with a rule for each change and a result for each finding."""
    changes = {
        found.change.id: found.change for each in checked_files for found in each.report.findings
    }
    places = {name: at for at, name in enumerate(changes)}
    driver = {
        "name": "gatebell-releases",
        "rules": [_format_rule(change, page_of) for change in changes.values()],
    }
    results = [
        _format_result(each.name, found, places[found.change.id])
        for each in checked_files
        for found in each.report.findings
    ]
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "unicodeCodePoints"}
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _format_rule(change: Change, page_of: PageUrlFunction) -> dict[str, Any]:
    return {
        "id": change.id,
        "shortDescription": {"text": change.title},
        "fullDescription": {"text": change.after},
        "help": {"text": change.replacement},
        "helpUri": page_of(change),
        "properties": {"release": change.release, "interface": change.interface.value},
    }


def _format_result(name: str, finding: Finding, rule: int) -> dict[str, Any]:
    change = finding.change
    place = {
        "artifactLocation": {"uri": _format_uri(name)},
        "region": {"startLine": finding.line},
    }
    return {
        "ruleId": change.id,
        "ruleIndex": rule,
        "level": _get_sarif_level(finding),
        "message": {"text": finding.change.message},
        "locations": [{"physicalLocation": place}],
    }


def _get_sarif_level(finding: Finding) -> str:
    return "error" if finding.certainty is Certainty.SURE else "warning"


def _format_uri(name: str) -> str:
    """Return a relative reference or a file URL (SARIF 2.1.0 section 3.4.3)."""
    path = quote(name.replace("\\", "/"))
    return f"file://{path}" if path.startswith("/") else path.removeprefix("./")
