"""Tests that an alert that flaps for a whole night pages regularly but not every minute."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise

import pytest

from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.notifications.escalations import Escalated
from web.settings.environment import Settings

pytestmark = [pytest.mark.both_databases, pytest.mark.faults_full]


@pytest.fixture
def shop(settings: Settings) -> Iterator[Escalated]:
    with running_mail_server(Mailbox()) as port:
        made = Escalated(settings, port)
        yield made
        made.close()


def test_both_users_are_paged_repeatedly_for_six_hours(shop: Escalated) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    start = shop.now
    shop.outage(hours=6, severity=1)
    pages = shop.pages()
    gaps = [later.paged_at - earlier.paged_at for earlier, later in pairwise(pages)]
    counts = {
        name: sum(page.user_id == person.id for page in pages)
        for name, person in (("alice", shop.alice), ("bob", shop.bob))
    }
    assert max(gaps) <= timedelta(minutes=15)
    assert pages[-1].paged_at - start >= timedelta(hours=5, minutes=45)
    assert all(20 <= count <= 45 for count in counts.values())
