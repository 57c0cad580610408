"""The mark of an alert's page follows its escalation, and not the time."""

import pytest

from domain.paging.page_digests.alerts import find_alert_digest
from models import Alert
from tests.support.notifications.escalations import Escalated

pytestmark = pytest.mark.both_databases


def mark(shop: Escalated, alert_id: int) -> str:
    with shop.session() as session:
        iid = session.get_one(Alert, alert_id).iid
        return find_alert_digest(shop.work(session), shop.project_view(session), iid).value


def test_the_mark_changes_with_each_step_and_each_result(shop: Escalated) -> None:
    shop.policy("0s user:alice", "5m user:bob")
    alert = shop.alert()
    marks = [mark(shop, alert)]
    for minutes in (0, 6):
        shop.pass_time(minutes=minutes)
        marks.append(mark(shop, alert))
    assert [name for name, *_ in shop.paged(alert)] == ["alice", "bob"]
    shop.silence("title=~.+", hours=1)
    marks.append(mark(shop, alert))
    shop.act(alert, "acknowledged", by=shop.bob)
    marks.append(mark(shop, alert))
    assert len(set(marks)) == len(marks)

    shop.pass_time(minutes=1)
    settled = mark(shop, alert)
    shop.pass_time(minutes=2)
    assert mark(shop, alert) == settled
