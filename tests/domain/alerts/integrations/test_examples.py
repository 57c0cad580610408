"""Example messages of the known tools: each opens an alert, which its recovery resolves."""

import json
from datetime import UTC, datetime

import pytest

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.registry import FORMATS
from domain.alerts.recognition.known_tools import find_known_tool, get_known_tool, search_tools
from domain.alerts.tools.examples import build_example

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
READING = ParserSettings(nesting_limit=100, automatic_fingerprint=True)
SLUGS = [tool.slug for _, tools in search_tools("") for tool in tools]


def test_every_tool_has_a_name_of_its_own_in_urls() -> None:
    assert len(set(SLUGS)) == len(SLUGS) == sum(len(each.list_tools()) for each in FORMATS)


@pytest.mark.parametrize("slug", SLUGS)
def test_the_example_of_a_tool_is_recognized_and_read_without_warnings(slug: str) -> None:
    body_format, tool = get_known_tool(slug)
    if not (tool.example or tool.mapping.reads_fields):
        return
    example = json.loads(json.dumps(build_example(tool)))
    assert find_known_tool(example) == (body_format, tool)
    body, mapping = body_format.build_sample_body(example), tool.mapping

    (alert,) = body_format.parse(body, now=NOW, reading=READING, mapping=mapping).alerts
    assert alert.ended_at is None
    assert alert.started_at == NOW
    assert alert.title != "New: Alert"
    assert alert.parse_warnings == ()

    recovery = body_format.build_recovery(body, mapping, now=NOW)
    if recovery is not None:
        parsed = body_format.parse(recovery, now=NOW, reading=READING, mapping=mapping)
        if parsed.event is None:  # An event of PagerDuty changes the alert itself.
            (over,) = parsed.alerts
            assert over.ended_at is not None
            assert over.fingerprint == alert.fingerprint
    may_end = mapping.rules.resolved_when or "end_time" in mapping.paths
    assert (recovery is not None) == bool(may_end or not mapping.reads_fields)
