"""The service whose calls are recorded."""

from collections.abc import Iterator

import pytest
from flask import Flask

from tests.support.releases.recorded_calls import RecordedService
from web.settings.reader import Settings


@pytest.fixture
def service(app: Flask, settings: Settings) -> Iterator[RecordedService]:
    """An app with an empty database of each kind."""
    made = RecordedService(app, settings)
    yield made
    made.engine.dispose()
