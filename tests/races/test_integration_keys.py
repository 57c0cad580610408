"""Keys reset and integrations turned on at the same moment by several maintainers."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from threading import Barrier

import pytest

from domain.alerts.integrations.integrations import IntegrationEdit, change_integration
from domain.alerts.integrations.keys import keys_of, reset_key
from domain.errors import ConflictError, InvalidError
from domain.grace_period import GracePeriod
from domain.keyring import Keyring
from models import Integration
from tests.support.accounts.people import database_of, now, settings_of
from tests.support.alerts.senders import connect
from tests.support.database.stored import integrations_of
from tests.support.service.live import LiveGatebell

CROWD = 8


def at_once(works: Sequence[Callable[[], str]]) -> list[str]:
    start = Barrier(len(works))

    def run(work: Callable[[], str]) -> str:
        start.wait(30)
        return work()

    with ThreadPoolExecutor(len(works)) as crowd:
        return list(crowd.map(run, works))


@pytest.mark.spec("H5")
def test_of_many_resets_of_one_key_one_wins_and_its_overlap_counts(gatebell: LiveGatebell) -> None:
    endpoint = connect(gatebell)
    keyring = Keyring(settings_of(gatebell).secret_key)
    with database_of(gatebell) as session:
        seen = keys_of(endpoint.id, session=session, keyring=keyring, now=now()).key_id

    def reset() -> str:
        try:
            with database_of(gatebell) as session:
                reset_key(
                    endpoint.id,
                    seen=seen,
                    previous_until=GracePeriod.DAY.until(now()),
                    session=session,
                    keyring=keyring,
                    now=now(),
                )
                return keys_of(endpoint.id, session=session, keyring=keyring, now=now()).clear
        except ConflictError:
            return ""

    (winner,) = filter(None, at_once([reset] * CROWD))
    (row,) = integrations_of(gatebell, endpoint.project)
    assert row.previous_key_expires_at is not None
    assert row.previous_key_expires_at > now() + timedelta(hours=23)
    renewed = replace(endpoint, key=winner)
    assert [each.send().status_code for each in (endpoint, renewed)] == [200, 200]


@pytest.mark.spec("H11")
def test_a_link_and_an_endpoint_are_never_turned_on_together(gatebell: LiveGatebell) -> None:
    details = IntegrationEdit(name="On", active=True, api_url="https://pager.example")

    def turn_on(integration_id: int) -> str:
        try:
            with database_of(gatebell) as session:
                project_id = session.get_one(Integration, integration_id).project_id
                change_integration(integration_id, details, project_id=project_id, session=session)
        except InvalidError:
            return ""
        return "on"

    for _ in range(4):
        endpoint = connect(gatebell, active=False)
        link = connect(gatebell, endpoint.project, kind="external", name="Pager", active=False)
        told = at_once([partial(turn_on, each.id) for each in (endpoint, link)])
        assert sorted(told) == ["", "on"]
        active = [row.active for row in integrations_of(gatebell, endpoint.project)]
        assert sorted(active) == [False, True]
