"""Generates docs/releases.md from the release schedule."""

import sys
from collections.abc import Iterator

from domain.releases.changes import Change
from domain.releases.schedule import SCHEDULE
from domain.releases.scheduled_changes import describe_effect, group_by_release

_INTRODUCTION = """\
# Release schedule

Generated from `domain/releases/schedule/` by `make docs`. An instance shows the same schedule at
`/help/releases`, with the dates that its administrators entered in `RELEASE_DATES`. It is also
available as `/api/v4/releases/changes` (JSON), `/help/releases.atom` (a feed) and
`/help/releases.ics` (a calendar), all without signing in.

The running release is the `RELEASE` setting. With the `Platform-Release: 17.0` header, a request
uses the formats of another release; security rules, limits and expiry still follow the running
release. Before a removal, affected responses have the `Deprecation` header, a `Link` to the page of
the change, and `Sunset` if the release has a date. On a hosted offering, removal can happen any
time in the month before the release. On your own instance, it happens when you change `RELEASE`.

The schedule contains every row of the specification's table, including changes of interfaces that
this service does not have. The row *here* describes the behavior of this service.
"""


def build_schedule_document() -> str:
    """Return the text of docs/releases.md."""
    return _INTRODUCTION + "".join(line + "\n" for line in _format_lines())


def _format_lines() -> Iterator[str]:
    hosted = sum(each.hosted for each in SCHEDULE)
    yield f"\n{len(SCHEDULE)} changes, {hosted} of them in interfaces that this service has."
    for release, changes in group_by_release(SCHEDULE):
        yield from ("", f"## {release}")
        for change in changes:
            yield from _format_section(change)


def _format_section(change: Change) -> Iterator[str]:
    yield from ("", f"### {change.title}", "")
    yield from ("| | |", "|---|---|")
    concerned = "<br>".join(_format_code_cell(str(each)) for each in change.matches)
    facts = {
        "id": _format_code_cell(change.id),
        "interface": change.interface.label,
        "announced": change.announced or "not specified",
        "end of support": change.end_of_support or "not specified",
        "takes effect": change.release,
        "affects": concerned,
        "effect": change.after,
        "use instead": change.replacement,
        "here": describe_effect(change),
    }
    for name, value in facts.items():
        yield f"| {name} | {value} |"


def _format_code_cell(text: str) -> str:
    escaped = text.replace("|", "\\|")
    return f"`{escaped}`"


if __name__ == "__main__":
    sys.stdout.write(build_schedule_document())
