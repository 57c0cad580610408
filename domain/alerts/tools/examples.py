"""Builds the example message for a known tool from its declaration."""

from collections.abc import Iterator

from domain.alerts.parsing.mapping import AlertField
from domain.alerts.parsing.mapping_rules import MappingRules, Operator
from domain.alerts.parsing.payload_paths import PayloadPath, has_path, parse_dotted_path, set_value
from domain.alerts.tools.base import MonitoringTool

#: Values of the fields. If several fields are read from one path, the value of the first field is
#: used.
_VALUES = {
    AlertField.HOSTS: "web-1",
    AlertField.SERVICE: "web",
    AlertField.TITLE: "Disk almost full",
    AlertField.DESCRIPTION: "/var has 2% left and will be full in about 40 minutes.",
    AlertField.FINGERPRINT: "disk-web-1-var",
    AlertField.ENVIRONMENT: "production",
    AlertField.RUNBOOK: "https://wiki.example.com/disk",
    AlertField.SOURCE_URL: "https://monitoring.example.com/alerts/42",
}
_TIMES = (AlertField.START_TIME, AlertField.END_TIME)
#: Words for problem states, by the corresponding recovery word.
_PROBLEMS = {"0": "1", "1": "0", "false": "true", "true": "false", "up": "down", "closed": "open"}


def build_example(tool: MonitoringTool) -> dict[str, object]:
    """Return an example message about a problem, which the tool's mapping can read.

    The message contains no times, so that a test alert starts when it is sent.
    """
    message = dict(tool.example)
    for path, value in _list_values(tool):
        if not has_path(message, path):
            message = set_value(message, path, value)
    return message


def _list_values(tool: MonitoringTool) -> Iterator[tuple[PayloadPath, str]]:
    """Yield the paths in the message with their values. The first value for a path is used."""
    mapping, rules = tool.mapping, tool.mapping.rules
    words, severity = rules.severity_words, mapping.paths.get(AlertField.SEVERITY, ())
    if tool.beginning:
        yield parse_dotted_path(tool.beginning[0]), tool.beginning[1]
    yield from (
        (each.path, each.words[0]) for each in rules.conditions if each.operator == "is_not"
    )
    for path in severity[:1]:
        yield path, min(words, key=lambda word: words[word].rank, default="critical")
    for field, value in _VALUES.items():
        yield from ((path, value) for path in mapping.paths.get(field, ())[:1])
    yield from ((path, "42") for join in rules.joins.values() for path in join.paths)
    yield from _list_states(rules)
    times = [path for field in _TIMES for path in mapping.paths.get(field, ())]
    for mark in map(parse_dotted_path, tool.marks.split()):
        yield mark, "" if mark in times else "example"


def _list_states(rules: MappingRules) -> Iterator[tuple[PayloadPath, str]]:
    """Yield paths with example values that do not make a rule resolve or drop the alert."""
    for each in rules.resolved_when:
        if each.operator is Operator.IS:
            yield each.path, _PROBLEMS.get(each.words[0].casefold(), "problem")
    for each in rules.conditions:
        if each.operator is Operator.IS_MISSING and "yes" in each.words:
            yield each.path, "example"
