"""A project with incidents."""

import pytest
from flask import Flask

from tests.support.alerts.incidents import IncidentProject
from web.settings.reader import Settings


@pytest.fixture
def project(app: Flask, settings: Settings) -> IncidentProject:
    """A project of a test's own, on each kind of database in turn."""
    return IncidentProject(app, settings)
