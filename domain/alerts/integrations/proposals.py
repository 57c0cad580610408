"""Proposes type and mapping for a payload: of a known tool, or guessed by the names of its keys."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from domain.alerts.formats.base import Format, Tool
from domain.alerts.formats.registry import FORMATS
from domain.alerts.reading.incoming import Severity
from domain.alerts.reading.mapping import UNMAPPED, AlertField, FieldMapping, values_of
from domain.alerts.reading.mapping_rules import Condition, MappingRules, Operator, as_word
from domain.alerts.reading.paths import Path, resolve
from domain.alerts.reading.severity import GENERIC_WORDS, proposed_severity
from domain.alerts.reading.text import is_blank

#: Values deeper than this are seldom meant for people.
_DEEPEST_GUESS = 3

#: Names of keys that probably mean a field, the likeliest first. Of the same key the one that is
#: less deep is taken.
_NAMES: Mapping[AlertField, str] = {
    AlertField.TITLE: "title alert_name alertname summary subject event_name name headline "
    "rule_name check_name short_message message msg",
    AlertField.DESCRIPTION: "description details long_description body message msg text reason "
    "output full_message",
    AlertField.START_TIME: "start_time started_at startsat fired_at triggered_at opened_at "
    "created_at timestamp",
    AlertField.END_TIME: "end_time ended_at endsat resolved_at recovered_at closed_at",
    AlertField.SERVICE: "service service_name app application component job system",
    AlertField.MONITORING_TOOL: "monitoring_tool tool",
    AlertField.HOSTS: "hosts host hostname host_name fqdn instance node server machine device",
    AlertField.SEVERITY: "severity prio priority level urgency criticality impact",
    AlertField.FINGERPRINT: "fingerprint dedup_key dedupe_key alert_key incident_key alert_id "
    "incident_id issue_id check_id monitor_id trigger_id",
    AlertField.ENVIRONMENT: "platform_environment_name environment env stage",
    AlertField.RUNBOOK: "runbook runbook_url playbook url link",
}
_STATES = (
    *("status", "state", "alert_state", "event_type", "action"),
    *("type", "current_state", "condition"),
)
#: What a state says that is over, and what one says that is not.
_OVER = frozenset(
    (
        *("ok", "okay", "up", "resolved", "resolve", "recovered", "recovery", "success"),
        *("closed", "close", "normal", "cleared", "healthy", "good", "passing"),
    )
)
_FIRING = frozenset(
    (
        *("firing", "fire", "down", "problem", "failure", "failed", "fail", "error", "critical"),
        *("warning", "warn", "alert", "alerting", "alarm", "triggered", "trigger", "open"),
        *("opened", "active", "unhealthy", "bad", "failing", "degraded", "new"),
    )
)

#: What is known by its format comes before what is known by a mapping.
_TOOLS: Sequence[tuple[Format, Tool]] = tuple(
    (each, tool) for each in sorted(FORMATS, key=attrgetter("has_mapping")) for tool in each.tools
)


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """What is proposed for a payload."""

    #: The tool that probably sent it; None if it is not known.
    tool: str | None
    format: Format
    mapping: FieldMapping
    #: What to set in the tool.
    hint: str = ""


def propose(payload: Mapping[str, object]) -> Proposal:
    """Return what is proposed for a payload."""
    for body_format, tool in _TOOLS:
        if tool.knows(payload):
            return Proposal(
                tool=tool.name, format=body_format, mapping=tool.mapping, hint=tool.hint
            )
    return Proposal(tool=None, format=FORMATS[0], mapping=guess(payload))


def guess(payload: Mapping[str, object]) -> FieldMapping:
    """Return a mapping by the names of a payload's keys; fields of the usual names need none."""
    candidates = tuple(_candidates(payload))
    paths: dict[AlertField, tuple[Path, ...]] = {}
    taken: set[Path] = set()
    for field, names in _NAMES.items():
        found = _best(names.split(), candidates, taken)
        if found is not None:
            taken.add(found)
            if found != (field.value,):
                paths[field] = (found,)
    rules = MappingRules(
        severity_words=_words(payload, paths.get(AlertField.SEVERITY)),
        resolved_when=tuple(_resolved_when(candidates, payload)),
    )
    return FieldMapping(paths, rules) if paths or rules != MappingRules() else UNMAPPED


def _candidates(payload: Mapping[str, object]) -> Iterator[tuple[Path, str]]:
    """Yield the paths that are not deep, each with its last key in words of small letters."""
    for value in values_of(payload):
        if len(value.path) <= _DEEPEST_GUESS and not isinstance(value.path[-1], int):
            yield value.path, _plain(str(value.path[-1]))


def _plain(key: str) -> str:
    return key.lower().replace("-", "_").replace(" ", "_")


def _best(
    names: list[str], candidates: tuple[tuple[Path, str], ...], taken: set[Path]
) -> Path | None:
    for name in names:
        found = [path for path, key in candidates if key == name and path not in taken]
        if found:
            return min(found, key=len)
    return None


def _words(payload: Mapping[str, object], paths: tuple[Path, ...] | None) -> dict[str, Severity]:
    """Return the word of the sample's severity with what it probably means, unless it is known."""
    value = resolve(payload, paths[0] if paths else (AlertField.SEVERITY.value,))
    if is_blank(value) or isinstance(value, list | dict):
        return {}
    word = as_word(value)
    return (
        {} if isinstance(value, str) and word in GENERIC_WORDS else {word: proposed_severity(word)}
    )


def _resolved_when(
    candidates: tuple[tuple[Path, str], ...], payload: Mapping[str, object]
) -> Iterator[Condition]:
    for name in _STATES:
        for path, key in candidates:
            word = as_word(resolve(payload, path))
            if key == name and word in _OVER | _FIRING:
                words = dict.fromkeys(([word] if word in _OVER else []) + ["resolved", "ok", "up"])
                yield Condition(path, Operator.IS, tuple(words))
                return
