"""Tests of commands for destinations of signed messages: `webhooks` and `audit-streams`."""

import pytest

from tests.support.accounts.people import alice, make_project
from tests.support.service.live import LiveGatebell
from tests.support.service.message_receiver import running_receiver

pytestmark = pytest.mark.one_database("sqlite")


@pytest.mark.spec("K1")
@pytest.mark.parametrize(
    ("group", "test_event", "options"),
    [
        ("audit-streams", "audit_stream.tested", ()),
        ("webhooks", "webhook.tested", ("--events", "alert.opened,alert.resolved")),
    ],
)
def test_destinations_can_be_tested_paused_and_given_new_secrets(
    gatebell: LiveGatebell, group: str, test_event: str, options: tuple[str, ...]
) -> None:
    owner = (make_project(gatebell, alice(gatebell)),) if group == "webhooks" else ()
    with running_receiver() as receiver:
        made = gatebell.cli(group, "create", *owner, "--url", receiver.url, *options)
        assert (made["state"], made["secret"][:6]) == ("active", "whsec_")
        assert made.get("events", []) == [
            each for names in options[1:] for each in names.split(",")
        ]
        one = (*owner, str(made["id"]))
        tested = gatebell.cli(group, "test", *one)
        assert (tested["delivered"], tested["status"]) == (True, 204)
        (event,) = receiver.of(test_event)
        assert event.verified_by(made["secret"])
    rotated = gatebell.cli(group, "rotate", *one, "--overlap", "1h")
    assert rotated["secret"][:6] == "whsec_"
    assert rotated["secret"] != made["secret"]
    assert gatebell.cli(group, "pause", *one)["state"] == "paused"
    assert gatebell.cli(group, "resume", *one)["state"] == "active"
    assert "secret" not in gatebell.cli(group, "show", *one)
    deleted = gatebell.cli(group, "delete", *one)
    assert (deleted["id"], deleted["deleted"]) == (made["id"], True)
