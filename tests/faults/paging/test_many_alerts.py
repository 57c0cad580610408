"""Tests of 300,000 alerts without statistics: pages are fast, and intake continues."""

import sys
from time import monotonic

import pytest
import requests
from sqlalchemy import text

from models import Alert, Project
from tests.faults.conftest import Start
from tests.faults.load import assert_nothing_was_lost, load_on
from tests.support.accounts.people import alice, database_of, make_project, sign_in
from tests.support.alerts.senders import connect
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.faults_full

MANY = 300_000
_AT_ONCE = 20_000
_FILL = text(
    """
WITH RECURSIVE numbers (n) AS (
  SELECT :first UNION ALL SELECT n + 1 FROM numbers WHERE n + 1 < :first + :count
)
INSERT INTO alerts (project_id, iid, item_index, fingerprint, status, severity, title, description,
  service, monitoring_tool, hosts, environment, events, started_at, last_event_at, created_at)
SELECT projects.id, n, 0, CAST('f' || n AS BLOB),
  CASE WHEN n % 10 = 0 THEN 'triggered' WHEN n % 100 = 1 THEN 'acknowledged'
    WHEN n % 50 = 2 THEN 'ignored' ELSE 'resolved' END,
  n % 6, 'Disk full on web-' || (n % 5000), 'Free space is low. Rack r' || (n % 300),
  'service-' || (n % 40), 'Nagios', 'web-' || (n % 5000),
  CASE WHEN n % 3 = 0 THEN 'production' WHEN n % 9973 = 1 THEN 'rare' END,
  1 + n % 97, moment, moment, moment
FROM numbers, projects,
  (SELECT strftime('%Y-%m-%d %H:%M:%f000', 'now') AS moment)
WHERE projects.path = :path
"""
)
_COUNT_ON = text(
    "UPDATE alert_counters SET last_iid = :count"
    " WHERE project_id = (SELECT id FROM projects WHERE path = :path)"
)
PAGES = (
    "",
    "?status=all",
    "?status=all&sort=severity",
    "?status=all&sort=events",
    "?status=all&severity=low",
    "?status=all&environment=rare",
    "?status=all&service=service-7",
    "?status=all&search=disk",
    "?search=disk+full",
    "?status=all&search=4711",
    "?status=all&search=rack+r17",
    "?status=all&search=zebra",
    "?status=all&search=d",
    "?status=all&search=disk+%E2%80%94+full",
    "/77",
)


def fill(live: LiveGatebell, path: str) -> None:
    for first in range(1, MANY + 1, _AT_ONCE):
        with database_of(live) as session:
            session.execute(_FILL, {"path": path, "first": first, "count": _AT_ONCE})
    with database_of(live) as session:
        session.execute(_COUNT_ON, {"path": path, "count": MANY})
        assert session.query(Alert).join(Project, Project.id == Alert.project_id).count() == MANY


@pytest.mark.fault("a user opens the pages of a list of 300,000 alerts")
def test_every_page_is_fast_and_alerts_are_accepted_meanwhile(start: Start) -> None:
    live = start("sqlite", only="web")
    person = alice(live)
    path = make_project(live, person)
    endpoint = connect(live, path)
    fill(live, path)
    browser, waits = sign_in(live, person), {}
    with load_on(endpoint) as answers:
        for page in PAGES:
            began = monotonic()
            answer = browser.get(f"{live.url}/{path}/-/alerts{page}", timeout=60)
            waits[page] = monotonic() - began
            assert answer.status_code == requests.codes.ok, page
    for page, wait in waits.items():
        sys.stdout.write(f"\n{wait:6.2f} s {page or 'the list'}")
    account = assert_nothing_was_lost(live, endpoint, answers)
    assert set(account.answered) == {200}
    assert max(waits.values()) < 10
