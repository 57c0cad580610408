"""The header `Platform-Release`, which accepts only known releases."""

import pytest

from tests.support.accounts.people import alice
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


@pytest.mark.spec("M2")
def test_an_unknown_release_is_rejected(gatebell: LiveGatebell) -> None:
    script = Api(gatebell, make_token(gatebell, alice(gatebell)).clear)
    for path, release in (
        *(("/users", "99.0"), ("/users", "18.1"), ("/user", "19.0")),
        *(("/version", "18.1"), ("/nothing", "18.1")),
    ):
        refused = script.send_request("GET", path, headers={"Platform-Release": release})
        assert refused.status_code == 400
        assert "Platform-Release can be at most 18.0" in refused.json()["message"]
    for release in ("1.0", "15.11", "16.7", "18.0"):
        asked = script.send_request("GET", "/users", headers={"Platform-Release": release})
        assert asked.status_code == 200, release
