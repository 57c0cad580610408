"""Follows the guide "Set up paging" word for word, with a receiver instead of a phone."""

import json
import re

import pytest

from tests.support.accounts.people import make_project, make_user
from tests.support.accounts.personal_tokens import make_token
from tests.support.alerts.monitoring import wait_until
from tests.support.documents.guides import guide_for_project
from tests.support.service.live import LiveGatebell
from tests.support.service.message_receiver import Receiver, running_telephone

pytestmark = pytest.mark.one_database("postgres")


def test_a_new_user_is_paged_after_following_the_guide(gatebell: LiveGatebell) -> None:
    person = make_user(gatebell)
    project = make_project(gatebell, person)
    guide = guide_for_project("set-up-paging", gatebell, project)
    token = make_token(gatebell, person).clear
    with running_telephone() as telephone:

        def follow(block: str, **more: str) -> dict[str, object]:
            done: dict[str, object] = json.loads(
                guide.run_shell(block, TOKEN=token, ME=person.username, **more)
            )
            return done

        contact = follow("contact", ADDRESS=telephone.contact_url)
        code = told(telephone, r"\b\d{6}\b")
        assert follow("confirm", CONTACT=str(contact["id"]), CODE=code)["state"] == "ready"
        follow("schedule")
        follow("policy")
        made = follow("integration")
        guide.run_shell("alert", KEY=str(made["key"]), URL=str(made["url"]))
        assert told(telephone, "Is anybody there\\?")


def told(telephone: Receiver, pattern: str) -> str:
    """Wait for a message that matches a pattern, and return the match."""

    def found() -> str | None:
        bodies = (each.body.decode() for each in telephone.received)
        return next((hit[0] for body in bodies if (hit := re.search(pattern, body))), None)

    wait_until(lambda: found() is not None, "the message is there")
    return found() or ""
