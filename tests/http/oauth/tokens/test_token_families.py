"""Families of rotated access tokens: reuse of a rotated token revokes the newest token."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from models import AuditEvent
from tests.support.accounts.people import database_of, make_user
from tests.support.accounts.personal_tokens import Api, make_token
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


def rotated(script: Api) -> Api:
    answer = script.send_token_request("POST", "/self/rotate")
    assert answer.status_code == 200, answer.text
    return Api(script.gatebell, answer.json()["token"])


def is_live(script: Api) -> bool:
    return script.send_request("GET", "/user").status_code == 200


@pytest.mark.both_databases
@pytest.mark.spec("G4")
@pytest.mark.parametrize("path", ["self", "id"])
def test_rotating_with_a_rotated_token_revokes_the_newest_one(
    gatebell: LiveGatebell, path: str
) -> None:
    alice = make_user(gatebell)
    made = make_token(gatebell, alice, name="nightly")
    first, other = Api(gatebell, made.clear), Api(gatebell, make_token(gatebell, alice).clear)
    newest = rotated(rotated(first))
    assert is_live(newest)

    answer = first.send_token_request("POST", f"/{made.id if path == 'id' else path}/rotate")

    assert answer.status_code == 401
    assert answer.json()["error"] == "invalid_token"
    assert "token" not in answer.json()
    assert not is_live(newest)
    assert is_live(other)
    with database_of(gatebell) as session:
        events = session.scalars(
            select(AuditEvent.details).where(
                AuditEvent.user_id == made.user_id, AuditEvent.kind == "token.revoked"
            )
        ).all()
    assert any("rotated" in details.get("reason", "") for details in events)


@pytest.mark.spec("G4")
def test_other_uses_of_a_rotated_token_revoke_nothing(gatebell: LiveGatebell) -> None:
    first = Api(gatebell, make_token(gatebell, make_user(gatebell)).clear)
    second = rotated(first)

    assert not is_live(first)
    assert first.send_token_request("DELETE", "/self").status_code == 401
    assert is_live(second)


@pytest.mark.spec("G4")
def test_rotating_with_a_revoked_token_revokes_nothing(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    made = make_token(gatebell, alice)
    script = Api(gatebell, make_token(gatebell, alice).clear)
    assert script.send_token_request("DELETE", f"/{made.id}").status_code == 204

    assert Api(gatebell, made.clear).send_token_request("POST", "/self/rotate").status_code == 401
    assert is_live(script)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("G4")
def test_a_concurrent_rotation_does_not_survive_the_revocation(gatebell: LiveGatebell) -> None:
    for _ in range(3):
        stolen = Api(gatebell, make_token(gatebell, make_user(gatebell)).clear)
        honest = rotated(stolen)
        with ThreadPoolExecutor(8) as pool:
            thefts = [
                pool.submit(stolen.send_token_request, "POST", "/self/rotate") for _ in range(4)
            ]
            renewals = [
                pool.submit(honest.send_token_request, "POST", "/self/rotate") for _ in range(4)
            ]
        assert {theft.result().status_code for theft in thefts} == {401}
        answers = [renewal.result() for renewal in renewals]
        assert {answer.status_code for answer in answers} <= {200, 400, 401}
        won = [answer.json()["token"] for answer in answers if answer.status_code == 200]
        # After all answers, no token of the family is live, in any order of the requests.
        assert stolen.send_token_request("POST", "/self/rotate").status_code == 401
        assert not any(is_live(Api(gatebell, token)) for token in won)
        assert not is_live(honest)


@pytest.mark.spec("G4")
def test_a_rotation_keeps_the_description(gatebell: LiveGatebell) -> None:
    root = Api(gatebell, make_token(gatebell, make_user(gatebell, admin=True)).clear)
    alice = make_token(gatebell, make_user(gatebell))
    address = f"/users/{alice.user_id}/personal_access_tokens"
    body = {"name": "ci", "scopes": ["api"], "description": " Runs on büro-7 "}

    made = root.send_request("POST", address, json=body).json()
    assert made["description"] == "Runs on büro-7"
    again = Api(gatebell, made["token"]).send_token_request("POST", "/self/rotate").json()
    assert again["description"] == "Runs on büro-7"

    for wrong in (5, "x" * 256, "a\nb"):
        refused = root.send_request("POST", address, json={**body, "description": wrong})
        assert refused.status_code == 400
        assert refused.json()["errors"][0]["field"] == "description"
