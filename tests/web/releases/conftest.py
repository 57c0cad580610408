"""Fixtures: a service that records calls."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from flask import Flask

from tests.support.releases.recorded_calls import RecordedService
from web.settings.environment import Settings


@pytest.fixture
def service(make_app: Callable[[Settings], Flask], settings: Settings) -> Iterator[RecordedService]:
    """Run an app before all changes, with an empty database of each kind."""
    old = replace(settings, release="15.11")
    made = RecordedService(make_app(old), old)
    yield made
    made.engine.dispose()
