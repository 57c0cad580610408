"""Fixture for a project with incidents."""

import pytest
from flask import Flask

from tests.support.alerts.incidents import IncidentProject
from web.settings.environment import Settings


@pytest.fixture
def project(app: Flask, settings: Settings) -> IncidentProject:
    """A new project for the test, on each kind of database."""
    return IncidentProject(app, settings)
