"""Tests of `/admin/keys`: the keys that sign ID tokens, and their rotation."""

import re

import pytest
import requests

from tests.support.accounts.administration import (
    find_last_event,
    find_only_group,
    read_redirected_page,
    submit_form_by_field,
)
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

PAGE = "/admin/keys"


def published(gatebell: LiveGatebell) -> list[str]:
    answer = requests.get(f"{gatebell.url}/oauth/discovery/keys", timeout=30)
    return [key["kid"] for key in answer.json()["keys"]]


def states(page: str) -> dict[str, str]:
    """Return the state of each key on the page."""
    rows = re.findall(r'<tr role="row">\s*<th scope="row".*?</tr>', page, re.DOTALL)
    return {
        find_only_group(row, r"<code>([^<]+)</code>"): find_only_group(
            row, r"(Waiting|Signing|Retired)"
        )
        for row in rows
    }


def make_key(gatebell: LiveGatebell, handover: str) -> str:
    answer = submit_form_by_field(gatebell, PAGE, "handover", handover=handover)
    return read_redirected_page(gatebell, answer)


@pytest.mark.long
def test_a_new_key_is_published_before_it_signs(gatebell: LiveGatebell) -> None:
    before = published(gatebell)
    for handover in ("", "whenever", None):
        answer = submit_form_by_field(gatebell, PAGE, "handover", handover=handover)
        assert answer.status_code == 422, handover
    assert published(gatebell) == before
    page = make_key(gatebell, "after-notice")
    assert "PRIVATE" not in page
    assert '"d"' not in page
    after = published(gatebell)
    (new,) = set(after) - set(before)
    assert states(page)[new] == "Waiting"
    assert list(states(page).values()).count("Signing") == 1
    event = find_last_event(gatebell, new)
    assert event.kind == "signing_key.rotated"
    assert event.details == {"handover": "after-notice", "bits": 2048}


@pytest.mark.long
@pytest.mark.both_databases
def test_a_new_key_can_sign_immediately(gatebell: LiveGatebell) -> None:
    before = published(gatebell)
    page = make_key(gatebell, "at-once")
    (new,) = set(published(gatebell)) - set(before)
    assert states(page)[new] == "Signing"
    assert all(states(page)[kid] != "Signing" for kid in before)
    assert set(before) <= set(published(gatebell))


def test_after_a_leak_only_the_new_key_is_published(gatebell: LiveGatebell) -> None:
    before = published(gatebell)
    page = make_key(gatebell, "old-keys-leaked")
    (only,) = published(gatebell)
    assert only not in before
    assert states(page) == {only: "Signing"}
