"""The header `Platform-Release` names a release of which something is known."""

import pytest

from tests.support.accounts.people import alice
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


@pytest.mark.spec("M2")
@pytest.mark.parametrize("release", ["99.0", "18.1", "19.0"])
@pytest.mark.parametrize("path", ["/users", "/user", "/version", "/nothing"])
def test_a_release_that_nothing_is_known_of_is_refused(
    gatebell: LiveGatebell, release: str, path: str
) -> None:
    script = Api(gatebell, make_token(gatebell, alice(gatebell)).clear)
    refused = script.send("GET", path, headers={"Platform-Release": release})
    assert refused.status_code == 400
    assert "Platform-Release can be at most 18.0" in refused.json()["message"]


@pytest.mark.parametrize("release", ["1.0", "15.11", "16.7", "18.0"])
def test_every_release_up_to_the_last_known_one_can_be_asked_for(
    gatebell: LiveGatebell, release: str
) -> None:
    script = Api(gatebell, make_token(gatebell, alice(gatebell)).clear)
    asked = script.send("GET", "/users", headers={"Platform-Release": release})
    assert asked.status_code == 200
