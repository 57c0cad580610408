"""The generic JSON payload: one alert, every field optional, any other field welcome."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from domain.alerts import fingerprint
from domain.alerts.incoming import IncomingAlert, ParsedBody, State
from domain.alerts.severity import GENERIC_WORDS, read_severity
from domain.alerts.text import excerpt, first_text, is_blank, short_text, texts_within, whole_text
from domain.alerts.times import read_end, read_start

DEFAULT_TITLE = "New: Alert"

#: Senders in the field use the second spelling.
_ENVIRONMENT = ("platform_environment_name", "gitlab_environment_name")

_BY_FIELD = "the fingerprint field"
_BY_PAYLOAD = f"the whole payload without {', '.join(fingerprint.VOLATILE)}"
_UNGROUPED = "none: grouping is off"


def _identify(
    body: Mapping[str, Any], *, automatic_fingerprint: bool
) -> tuple[bytes | None, str, str | None]:
    """Return the fingerprint, what it was made of, and a remark if one was sent in vain."""
    given = body.get("fingerprint")
    if fingerprint.is_fingerprint(given):
        return fingerprint.of_value(given), _BY_FIELD, None
    remark = None
    if not is_blank(given):
        remark = f"fingerprint is no string, number or array: {excerpt(given)}, so it is not used."
    if automatic_fingerprint:
        return fingerprint.of_payload(body), _BY_PAYLOAD, remark
    return None, _UNGROUPED, remark


def _read_alert(
    body: Mapping[str, Any], *, now: datetime, automatic_fingerprint: bool
) -> IncomingAlert:
    severity, severity_reason = read_severity(body.get("severity"), GENERIC_WORDS)
    start = read_start(body.get("start_time"), name="start_time", now=now)
    end = read_end(body.get("end_time"), name="end_time")
    identity, source, remark = _identify(body, automatic_fingerprint=automatic_fingerprint)
    return IncomingAlert(
        title=short_text(body.get("title"), 200) or DEFAULT_TITLE,
        description=short_text(body.get("description"), 1000),
        severity=severity,
        state=State.FIRING if end.time is None else State.RECOVERY,
        started_at=start.time,
        ended_at=end.time,
        service=short_text(body.get("service"), 100),
        monitoring_tool=short_text(body.get("monitoring_tool"), 100),
        hosts=texts_within(body.get("hosts"), 255),
        environment=first_text((body.get(name) for name in _ENVIRONMENT), 255),
        fingerprint=identity,
        fingerprint_source=source,
        severity_reason=severity_reason,
        runbook=whole_text(body.get("runbook")),
        query=None,
        markdown=None,
        y_label=None,
        generator_url=None,
        remarks=tuple(said for said in (start.remark, end.remark, remark) if said),
        item_index=0,
    )


def parse(body: Mapping[str, Any], *, now: datetime, automatic_fingerprint: bool) -> ParsedBody:
    """Read the one alert that a generic payload is; nothing in it can be refused.

    An end that can be read resolves, whenever it is. Without a usable fingerprint the payload
    itself identifies the alert, unless `automatic_fingerprint` is off: then nothing does.
    """
    alert = _read_alert(body, now=now, automatic_fingerprint=automatic_fingerprint)
    return ParsedBody(alerts=(alert,), refused=(), truncated_alerts=0, remarks=())
