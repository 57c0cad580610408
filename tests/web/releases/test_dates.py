"""Tests that all processes and hosts announce the same dates."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta

import pytest
from flask import Flask

from domain.core.clock import read_system_clock
from domain.releases.version import Release
from web.releases.schedule_view import find_release_date, get_installation_time
from web.settings.environment import Settings


@pytest.mark.long
def test_every_host_reports_the_same_installation_time(
    make_app: Callable[[Settings], Flask], settings: Settings
) -> None:
    found = []
    for app in (make_app(settings), make_app(settings)):
        with app.app_context():
            found += [get_installation_time(), get_installation_time()]
    assert len(set(found)) == 1
    assert timedelta() <= read_system_clock() - found[0] < timedelta(days=1)


@pytest.mark.one_database("sqlite")
def test_a_release_has_the_configured_date(
    make_app: Callable[[Settings], Flask], settings: Settings
) -> None:
    given = replace(settings, release_dates="17.0=2024-05-16")
    with make_app(given).app_context():
        assert find_release_date(Release(17, 0)) == date(2024, 5, 16)
        assert find_release_date(Release(18, 0)) is None
