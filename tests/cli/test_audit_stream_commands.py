"""Tests of `gatebell audit-streams`, which manages destinations of the audit log."""

import json

import pytest

from tests.support.service.live import LiveGatebell
from tests.support.service.message_receiver import running_receiver

pytestmark = pytest.mark.one_database("sqlite")


@pytest.mark.spec("K1")
def test_a_destination_can_be_managed_with_commands(gatebell: LiveGatebell) -> None:
    with running_receiver() as receiver:
        made = gatebell.cli("audit-streams", "create", "--url", receiver.url)
        assert (made["state"], made["secret"][:6]) == ("active", "whsec_")
        number = str(made["id"])
        assert gatebell.cli("audit-streams", "pause", number)["state"] == "paused"
        tested = gatebell.cli("audit-streams", "test", number)
        assert (tested["delivered"], tested["status"]) == (True, 204)
        (event,) = receiver.of("audit_stream.tested")
        assert event.verified_by(made["secret"])
        rotated = gatebell.cli("audit-streams", "rotate", number, "--overlap", "1h")
        assert rotated["secret"] != made["secret"]
        assert gatebell.cli("audit-streams", "resume", number)["state"] == "active"
        listed = gatebell.cli("audit-streams", "list")["audit_streams"]
        assert [each["url"] for each in listed if each["id"] == made["id"]] == [receiver.url]
        assert "secret" not in listed[0]
        removed = gatebell.cli("audit-streams", "delete", number)
    assert removed["id"] == made["id"]
    for command in ("pause", "rotate", "test", "delete"):
        refused = gatebell.run_cli("audit-streams", command, number)
        assert refused.returncode == 1
        assert "Destination not found" in json.loads(refused.stderr)["error"]
