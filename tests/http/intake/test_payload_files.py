"""Posts bodies of real senders: the responses, the stored alerts, and their pages."""

from datetime import datetime, timedelta

import pytest

from domain.alerts.formats.registry import get_format
from domain.alerts.parsing.incoming_alert import Severity
from models import Alert
from tests.support.accounts.people import alice, now, signed_in
from tests.support.alerts.expected_alerts import NAMES, expected
from tests.support.alerts.senders import Endpoint, captured, connect
from tests.support.database.stored import list_stored_alerts, list_stored_deliveries
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")

COLUMNS = ("title", "description", "service", "monitoring_tool", "environment")


@pytest.mark.spec("I1", "I3", "I11", "I12", "I13", "I14", "I15")
@pytest.mark.parametrize("name", NAMES)
def test_a_real_body_is_answered_stored_and_shown(gatebell: LiveGatebell, name: str) -> None:
    wanted = expected(name)
    endpoint = connect(gatebell, kind=wanted["type"])
    media_type = get_format(wanted["type"]).media_types[0]
    answer = endpoint.post(captured(name), Content_Type=media_type)
    assert answer.status_code == wanted["status"]
    stored = list_stored_alerts(gatebell, endpoint.project)
    if answer.status_code != 200:
        assert (answer.json()["errors"], stored) == (wanted["refused"], [])
        return
    assert answer.json() == [{"iid": alert.iid, "title": alert.title} for alert in stored]
    for alert, fields in zip(stored, wanted["alerts"], strict=True):
        check_row(alert, fields)
        check_page(gatebell, endpoint, alert, fields)
    (delivery,) = list_stored_deliveries(gatebell, endpoint.project)
    assert delivery.body == captured(name)
    assert delivery.truncated_alerts == wanted["truncated_alerts"]
    assert delivery.parse_warnings == wanted["parse_warnings"]


def check_row(alert: Alert, fields: dict[str, str | None]) -> None:
    assert {name: getattr(alert, name) for name in COLUMNS} == {
        name: fields[name] for name in COLUMNS
    }
    assert tuple(Severity)[alert.severity] == fields["severity"]
    assert alert.status == ("triggered" if fields["state"] == "firing" else "resolved")
    assert alert.hosts.split("\n") == (fields["hosts"] or [""])
    assert is_at(alert.started_at, fields["started_at"])
    assert is_at(alert.ended_at, fields["ended_at"])


def is_at(moment: datetime | None, wanted: str | None) -> bool:
    if wanted == "arrival":
        return moment is not None and now() - moment < timedelta(minutes=1)
    return (moment and moment.isoformat()) == wanted


def check_page(
    gatebell: LiveGatebell, endpoint: Endpoint, alert: Alert, fields: dict[str, str | None]
) -> None:
    address = f"{gatebell.url}/{endpoint.project}/-/alerts/{alert.iid}"
    page = signed_in(gatebell, alice(gatebell)).get(address)
    assert page.status_code == 200
    for name in ("runbook", "generator_url"):
        assert (fields[name] or "").replace("&", "&amp;") in page.text
