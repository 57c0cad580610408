"""Administrators, and events of the audit log."""

from functools import partial

import pytest

from tests.support.accounts.people import Person, make_user
from tests.support.database.audit_log import Write, write_event
from tests.support.service.live import LiveGatebell


@pytest.fixture
def admin(gatebell: LiveGatebell) -> Person:
    """An administrator of the test's own."""
    return make_user(gatebell, name="root", admin=True)


@pytest.fixture
def write(gatebell: LiveGatebell) -> Write:
    """Writes an event about somebody and returns its subject, which no other event has."""
    return partial(write_event, gatebell)
