"""Content types other than application/json that senders use for JSON."""

import pytest

from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


@pytest.mark.parametrize(
    ("media_type", "status"),
    [
        ("text/json", 200),
        ("text/json; charset=utf-8", 200),
        ("application/json, application/json", 200),
        ("application/json; charset=utf-8, application/json", 200),
        ("application/json, text/plain", 415),
        ("text/plain", 415),
        ("", 415),
    ],
)
def test_common_wrong_content_types_are_accepted(
    gatebell: LiveGatebell, media_type: str, status: int
) -> None:
    answer = connect(gatebell).post(b'{"title": "a"}', **{"Content-Type": media_type})
    assert answer.status_code == status, answer.text
