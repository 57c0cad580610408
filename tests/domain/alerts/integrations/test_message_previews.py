"""Previews of messages: whether they resolve and join the alert of the first message."""

from datetime import UTC, datetime

import pytest

from domain.alerts.formats.base import ParserSettings
from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.integrations.mapping_preview import MessageParser
from domain.alerts.parsing.mapping import AlertField, FieldMapping
from domain.alerts.recognition.messages import Messages

_ENDS = FieldMapping({AlertField.TITLE: (("what",),), AlertField.END_TIME: (("over_at",),)})
_OVER = {"what": "Disk full", "over_at": "2026-11-29T12:00:00Z"}


def _parser(*, groups: bool) -> MessageParser:
    reading = ParserSettings(nesting_limit=100, automatic_fingerprint=groups)
    now = datetime(2026, 11, 29, 13, 0, tzinfo=UTC)
    return MessageParser(format=HTTP, mapping=_ENDS, now=now, reading=reading)


@pytest.mark.parametrize(
    ("sample", "is_told"), [({"what": "Disk full"}, True), ({**_OVER, "over_at": None}, False)]
)
def test_an_end_time_that_the_sample_does_not_contain_is_told(
    sample: dict[str, object], *, is_told: bool
) -> None:
    found = _parser(groups=True).preview(Messages(firing=sample)).never_resolves
    assert ("The sample has no over_at." in (found or "")) == is_told


def test_an_end_time_of_a_recovery_that_resolves_is_not_told() -> None:
    messages = Messages(firing={"what": "Disk full"}, recovery=_OVER)
    found = _parser(groups=True).preview(messages)
    assert found.recovery is not None
    assert (found.recovery.resolves, found.never_resolves) == (True, None)


def test_messages_without_a_fingerprint_belong_to_different_alerts() -> None:
    sample = {"what": "Disk full", "over_at": None}
    found = _parser(groups=False).preview(Messages(firing=sample, repeat=sample, recovery=_OVER))
    assert found.repeat is not None
    assert found.recovery is not None
    assert (found.repeat.joins, found.recovery.resolves) == (False, False)
    assert "because no value identifies the alert" in found.repeat.sentence
