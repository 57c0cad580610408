"""Fixtures for administrators, and for events of the audit log."""

from functools import partial

import pytest

from tests.support.accounts.people import Person, make_user
from tests.support.database.audit_log import Write, write_event
from tests.support.service.live import LiveGatebell


@pytest.fixture
def admin(gatebell: LiveGatebell) -> Person:
    """An administrator for one test."""
    return make_user(gatebell, name="root", admin=True)


@pytest.fixture
def write(gatebell: LiveGatebell) -> Write:
    """A function that records an event about a user, and returns its unique subject."""
    return partial(write_event, gatebell)
