"""Tests that the timeline of an alert shows the outcome of each page at each contact."""

from typing import Any

import pytest

from domain.incidents.timelines.actions import list_alert_timeline
from domain.incidents.timelines.types import ItemKind, TimelineItem, TimelineQuery
from domain.paging.notifications.contact_types.apprise import APPRISE
from domain.paging.notifications.contact_types.base import ContactAddress
from domain.paging.notifications.contacts import ContactOwner
from models import Alert
from tests.support.notifications.escalations import Escalated
from tests.support.service.message_receiver import running_telephone

pytestmark = pytest.mark.both_databases


def alert_timeline(shop: Escalated, alert_id: int) -> list[TimelineItem]:
    with shop.session() as session:
        iid = session.get_one(Alert, alert_id).iid
        work, project = shop.work(session), shop.project_view(session)
        return [*list_alert_timeline(work, project, iid, TimelineQuery(sort="asc")).items]


def pages(shop: Escalated, alert_id: int) -> list[tuple[str, str | None, list[Any]]]:
    """Return the paged users, with the outcomes of the page and of its messages."""
    found = (each.page for each in alert_timeline(shop, alert_id) if each.page)
    return [
        (
            page.name,
            page.state,
            [(each.name, each.state, each.failures, bool(each.reason)) for each in page.contacts],
        )
        for page in found
    ]


@pytest.mark.long
def test_a_page_that_a_contact_rejects_is_shown_as_failed(shop: Escalated) -> None:
    dave = shop.person("dave", has_contact=False)
    shop.policy("0s user:dave", "20m user:bob")
    with running_telephone() as telephone:
        address = ContactAddress(
            type=APPRISE, clear=telephone.contact_url, shown="ntfy://…", lane="ntfy here"
        )
        shop.contact(ContactOwner(user_id=dave.id), address, label="Roof")
        telephone.answer = lambda _request: (503, {})
        alert = shop.alert()
        shop.follow()
        assert pages(shop, alert) == [("@dave", "waiting", [])]
        shop.pass_time(seconds=1)
        ((name, state, contacts), *_) = pages(shop, alert)
        assert (name, contacts[0]) == ("@dave", ("Roof", "waiting", 1, True))
        # Meanwhile, the account's address gets the page.
        assert (state, contacts[1][:2]) == ("accepted", ("email", "sent"))
        telephone.answer = lambda _request: (200, {})
        shop.pass_time(minutes=1)
        ((_, _, contacts), *_) = pages(shop, alert)
        assert contacts[0] == ("Roof", "sent", 1, False)
    (paged,) = [each for each in alert_timeline(shop, alert) if each.page]
    assert paged.page is not None
    assert paged.page.contacts[0].at is not None
    assert paged.page.contacts[0].at > paged.at


def test_the_timeline_explains_held_pages(shop: Escalated) -> None:
    shop.policy("0s user:alice")
    shop.silence('title=~"Disk.*"', hours=1)
    alert = shop.alert()
    shop.pass_time(seconds=1)
    shop.pass_time(minutes=61)
    lines = [(each.kind, each.text) for each in alert_timeline(shop, alert)]
    held = "Paging is held back until 2026-03-01 21:00 UTC: silence “deploy”."
    continued = "Paging continues. It was held back: silence “deploy”."
    assert lines[:2] == [(ItemKind.ESCALATION, held), (ItemKind.ESCALATION, continued)]
    assert ItemKind.PAGE in {kind for kind, _ in lines[2:]}
