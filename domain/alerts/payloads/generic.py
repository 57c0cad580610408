"""The generic JSON payload: one alert, every field optional, any other field welcome.

Which key feeds which field a maintainer can decide by a mapping; else each has its own name.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.alerts import fingerprint
from domain.alerts.incoming import IncomingAlert, ParsedBody, State
from domain.alerts.mapping import UNMAPPED, VOLATILE, FieldMapping, Target
from domain.alerts.severity import GENERIC_WORDS, read_severity
from domain.alerts.text import excerpt, first_text, is_blank, short_text, texts_within, whole_text
from domain.alerts.times import read_end, read_start

DEFAULT_TITLE = "New: Alert"

#: Senders in the field use the second spelling.
_ENVIRONMENT = ("platform_environment_name", "gitlab_environment_name")

_UNGROUPED = "none: grouping is off"


@dataclass(frozen=True, slots=True)
class _Source:
    """A payload through the eyes of a mapping."""

    payload: Mapping[str, Any]
    mapping: FieldMapping

    def value(self, target: Target) -> Any:
        return self.mapping.value(self.payload, target)

    def name(self, target: Target) -> str:
        return self.mapping.source(target)

    def text(self, target: Target, length: int) -> str | None:
        return short_text(self.value(target), length)

    def environment(self) -> str | None:
        if Target.ENVIRONMENT in self.mapping.paths:
            return self.text(Target.ENVIRONMENT, 255)
        return first_text(map(self.payload.get, _ENVIRONMENT), 255)


def _identify(
    source: _Source, *, automatic_fingerprint: bool
) -> tuple[bytes | None, str, str | None]:
    """Return the fingerprint, what it was made of, and a remark if one was sent in vain."""
    given, name = source.value(Target.FINGERPRINT), source.name(Target.FINGERPRINT)
    if fingerprint.is_fingerprint(given):
        return fingerprint.of_value(given), f"the {name} field", None
    remark = None
    if not is_blank(given):
        remark = f"{name} is no string, number or array: {excerpt(given)}, so it is not used."
    if not automatic_fingerprint:
        return None, _UNGROUPED, remark
    steady = source.mapping.steady_part(source.payload)
    left_out = ", ".join(source.name(target) for target in VOLATILE)
    return fingerprint.of_payload(steady), f"the whole payload without {left_out}", remark


def _read_alert(source: _Source, *, now: datetime, automatic_fingerprint: bool) -> IncomingAlert:
    severity, severity_reason = read_severity(source.value(Target.SEVERITY), GENERIC_WORDS)
    start = read_start(
        source.value(Target.START_TIME), name=source.name(Target.START_TIME), now=now
    )
    end = read_end(source.value(Target.END_TIME), name=source.name(Target.END_TIME))
    identity, made_of, remark = _identify(source, automatic_fingerprint=automatic_fingerprint)
    return IncomingAlert(
        title=source.text(Target.TITLE, 200) or DEFAULT_TITLE,
        description=source.text(Target.DESCRIPTION, 1000),
        severity=severity,
        state=State.FIRING if end.time is None else State.RECOVERY,
        started_at=start.time,
        ended_at=end.time,
        service=source.text(Target.SERVICE, 100),
        monitoring_tool=source.text(Target.MONITORING_TOOL, 100),
        hosts=texts_within(source.value(Target.HOSTS), 255),
        environment=source.environment(),
        fingerprint=identity,
        fingerprint_source=made_of,
        severity_reason=severity_reason,
        runbook=whole_text(source.value(Target.RUNBOOK)),
        query=None,
        markdown=None,
        y_label=None,
        generator_url=None,
        remarks=tuple(filter(None, (start.remark, end.remark, remark))),
        item_index=0,
    )


def parse(
    body: Mapping[str, Any],
    *,
    now: datetime,
    automatic_fingerprint: bool,
    mapping: FieldMapping = UNMAPPED,
) -> ParsedBody:
    """Read the one alert that a generic payload is; nothing in it can be refused.

    An end that can be read resolves, whenever it is. Without a usable fingerprint the payload
    itself identifies the alert, unless `automatic_fingerprint` is off: then nothing does.
    """
    source = _Source(body, mapping)
    alert = _read_alert(source, now=now, automatic_fingerprint=automatic_fingerprint)
    return ParsedBody(alerts=(alert,), refused=(), truncated_alerts=0, remarks=())
