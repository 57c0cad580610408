"""Composes the title and the description of an incident from an alert, as GitLab does.

What a sender reported as plain text stays plain text: it is escaped for Markdown. The annotation
platform_incident_markdown is Markdown, and is appended as it is.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from domain.alerts.handling.reports import AlertReport
from domain.alerts.reading.text import cut
from domain.incidents.fields import LONGEST_DESCRIPTION

#: The title of alerts whose sender gave none.
_NO_TITLE = "New: Alert"
#: What begins emphasis, code, links, HTML and escapes; an underscore does only at the edge of a
#: word.
_ACTIVE = re.compile(
    r"[`*\[]|\\(?=[!-/:-@\[-`{-~]|$)|<(?=[A-Za-z/!?])|&(?=#?\w+;)|~(?=~)|(?<!\w)_|_(?!\w)",
    re.MULTILINE,
)
#: What begins a heading, quotation, list or line at the beginning of a line.
_LEADING = re.compile(r"^(\s*)(\d+(?=[.)])|[#>+=-])", re.MULTILINE)
_BACKTICKS = re.compile("`+")
_LINE_BREAK = "  \n"
_RULE = "\n\n---\n\n"


def composed_title(report: AlertReport, iid: int) -> str:
    """Return the title of the incident with this number."""
    return f"New: Incident {iid}" if report.title == _NO_TITLE else report.title


def composed_description(report: AlertReport, alert_url: str) -> str:
    """Return the description: the alert in a few lines, then the Markdown of its sender."""
    summary = _LINE_BREAK.join(_lines(report, alert_url))
    if not report.markdown:
        return summary
    room = LONGEST_DESCRIPTION - len(summary) - len(_RULE)
    return f"{summary}{_RULE}{cut(report.markdown, room)}"


def _lines(report: AlertReport, alert_url: str) -> Iterator[str]:
    yield f"**Start time:** {_time(report.started_at)}"
    yield f"**Severity:** {report.severity.value}"
    if report.query:
        yield f"**full_query:** {_code(report.query)}"
    for name, value in (
        ("Service", report.service),
        ("Monitoring tool", report.monitoring_tool),
        ("Hosts", " ".join(report.hosts)),
        ("Description", report.description),
    ):
        if value:
            yield f"**{name}:** {_escaped(value)}"
    yield f"**Gatebell alert:** <{alert_url}>"


def _time(moment: datetime) -> str:
    """Return a time as GitLab writes it: `12 September 2019, 6:00AM (UTC)`."""
    utc = moment.astimezone(UTC)
    return f"{utc.day} {utc:%B} {utc.year}, {utc.hour % 12 or 12}:{utc:%M%p} (UTC)"


def _escaped(text: str) -> str:
    """Return plain text so that it is shown as it is."""
    text = _ACTIVE.sub(r"\\\g<0>", text.strip())
    text = _LEADING.sub(_escape_first, text)
    # A line break of the text stays one; a blank line would end the list of facts.
    lines = (line.strip() for line in text.splitlines())
    return _LINE_BREAK.join(line for line in lines if line)


def _escape_first(found: re.Match[str]) -> str:
    mark = found[2]
    return f"{found[1]}{mark}\\" if mark.isdigit() else f"{found[1]}\\{mark}"


def _code(text: str) -> str:
    """Return a code span, whose fence is longer than any in the text (CommonMark section 6.1)."""
    inner = " ".join(text.split())
    fence = "`" * (max((len(found) for found in _BACKTICKS.findall(inner)), default=0) + 1)
    padding = " " if inner.startswith("`") or inner.endswith("`") else ""
    return f"{fence}{padding}{inner}{padding}{fence}"
