"""Tests of commands for personal access tokens."""

from datetime import timedelta

import pytest

from tests.support.accounts.people import make_user, now, unique
from tests.support.accounts.personal_tokens import Api, change, make_token
from tests.support.database.audit_log import list_events_with_subject
from tests.support.service.live import LiveGatebell

DAY = timedelta(days=1)


@pytest.mark.one_database("postgres")
@pytest.mark.spec("G4")
def test_operators_can_list_a_user_s_tokens_and_revoke_one(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    kept, lost = make_token(gatebell, alice), make_token(gatebell, alice, name="lost")
    assert Api(gatebell, lost.clear).send_request("GET", "/user").status_code == 200

    listed = gatebell.cli("tokens", "list", alice.username)["tokens"]
    revoked = gatebell.cli("tokens", "revoke", str(lost.id))

    assert [each["id"] for each in listed] == [lost.id, kept.id]
    assert "token" not in listed[0]
    assert (revoked["name"], revoked["revoked"]) == ("lost", True)
    assert Api(gatebell, lost.clear).send_request("GET", "/user").status_code == 401
    assert Api(gatebell, kept.clear).send_request("GET", "/user").status_code == 200


def test_revoking_a_revoked_token_causes_no_event(gatebell: LiveGatebell) -> None:
    name = unique("lost")
    lost = make_token(gatebell, make_user(gatebell), name=name)
    for _ in range(2):
        assert gatebell.cli("tokens", "revoke", str(lost.id))["revoked"] is True
    assert [event.kind for event in list_events_with_subject(gatebell, name)] == ["token.revoked"]


def test_a_token_cannot_exceed_the_maximum_lifetime(
    gatebell: LiveGatebell,
) -> None:
    create = ("tokens", "create", make_user(gatebell).username, "--name", "x", "--scopes", "api")
    refused = gatebell.run_cli(*create, "--days", "3000")
    assert refused.returncode == 1
    assert "The expiry date must be from" in refused.stderr
    assert (
        gatebell.cli(*create, "--days", "3")["expires_at"] == (now() + 3 * DAY).date().isoformat()
    )


def test_tokens_that_were_invalid_for_a_year_are_pruned(gatebell: LiveGatebell) -> None:
    alice = make_user(gatebell)
    revoked, expired, recent, ended = (make_token(gatebell, alice) for _ in range(4))
    change(gatebell, revoked.id, revoked_at=now() - 366 * DAY)
    change(gatebell, expired.id, expires_at=now() - 366 * DAY)
    change(gatebell, recent.id, revoked_at=now() - 300 * DAY)
    change(gatebell, ended.id, expires_at=now() - 300 * DAY)
    live = make_token(gatebell, alice)

    removed = gatebell.cli("prune")

    assert removed["personal_access_tokens"] == 2
    assert Api(gatebell, live.clear).list_token_ids() == [live.id, ended.id, recent.id]
