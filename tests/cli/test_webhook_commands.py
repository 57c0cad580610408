"""Tests of `gatebell webhooks`, which manages webhooks of projects."""

import json

import pytest

from tests.support.accounts.people import alice, make_project
from tests.support.service.live import LiveGatebell
from tests.support.service.message_receiver import running_receiver

pytestmark = pytest.mark.one_database("sqlite")


def test_a_webhook_can_be_managed_with_commands(gatebell: LiveGatebell) -> None:
    path = make_project(gatebell, alice(gatebell))
    with running_receiver() as receiver:
        events = ("--events", "alert.opened,alert.resolved", "--labels", 'team="db"')
        made = gatebell.cli("webhooks", "create", path, "--url", receiver.url, *events)
        assert made["secret"].startswith("whsec_")
        assert made["events"] == ["alert.opened", "alert.resolved"]
        number = str(made["id"])
        tested = gatebell.cli("webhooks", "test", path, number)
        assert (tested["delivered"], tested["status"]) == (True, 204)
        assert receiver.of("webhook.tested")[0].verified_by(made["secret"])
        rotated = gatebell.cli("webhooks", "rotate", path, number, "--overlap", "1h")
        assert rotated["secret"] != made["secret"]
        assert gatebell.cli("webhooks", "pause", path, number)["state"] == "paused"
        assert gatebell.cli("webhooks", "resume", path, number)["state"] == "active"
        (listed,) = gatebell.cli("webhooks", "list", path)["webhooks"]
        assert "secret" not in listed
        assert gatebell.cli("webhooks", "delete", path, number)["url"] == receiver.url
    refused = gatebell.run_cli("webhooks", "pause", path, number)
    assert refused.returncode == 1
    assert "Webhook not found" in json.loads(refused.stderr)["error"]
    wrong = gatebell.run_cli(
        "webhooks", "create", path, "--url", "https://a.example", "--events", "x"
    )
    assert "is not one of" in json.loads(wrong.stderr)["error"]
