"""Limits of request bodies: a body must be smaller than the limit."""

import pytest
import requests

from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
#: Path, media type, the beginning and end of a body, and the limit.
LIMITS = [
    ("/oauth/token", JSON, (b'{"grant_type": "', b'"}'), 65_536),
    ("/oauth/par", FORM, (b"client_id=", b""), 32_768),
    ("/jwt/auth", FORM, (b"grant_type=", b""), 16_384),
]


@pytest.mark.parametrize(
    ("path", "media", "ends", "limit"), LIMITS, ids=[each[0] for each in LIMITS]
)
def test_a_body_of_exactly_the_limit_is_too_large(
    gatebell: LiveGatebell, path: str, media: str, ends: tuple[bytes, bytes], limit: int
) -> None:
    statuses = []
    for size in (limit - 1, limit):
        body = ends[0] + b"x" * (size - len(ends[0] + ends[1])) + ends[1]
        headers = {"Content-Type": media}
        answer = requests.post(gatebell.url + path, data=body, headers=headers, timeout=30)
        statuses.append(answer.status_code)
    assert statuses[1] == 413
    assert statuses[0] not in {413, 500}
