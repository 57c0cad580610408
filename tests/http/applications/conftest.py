"""Fixtures for Bob's application, and for apps in this process that accept registrations."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import requests
from flask import Flask
from flask.testing import FlaskClient

from app import create_app
from tests.support.accounts.people import ClientCredentials, bob, make_application, signed_in
from tests.support.oauth.registrations import Open, add_people
from tests.support.service.live import LiveGatebell, close_app
from web.settings.environment import Settings, parse_settings

_OPEN = {
    "dynamic_client_registration": True,
    "open_client_registration": True,
    "client_registration_rate_limit": "",
}


@pytest.fixture
def opened(make_app: Callable[[Settings], Flask], settings: Settings) -> Open:
    """A function that returns a client of a new app, by default with open registrations."""

    def make(**changes: object) -> FlaskClient:
        app = make_app(replace(settings, **{**_OPEN, **changes}))  # type: ignore[arg-type]
        add_people(app)
        return app.test_client()

    return make


@pytest.fixture(scope="session")
def visitor(
    migrated_sqlite: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FlaskClient]:
    """A client of a shared app with open registrations; tests change only their own data."""
    directory = tmp_path_factory.mktemp("registrations")
    shutil.copy(migrated_sqlite, directory / "gatebell.db")
    environment = {
        "BASE_URL": "http://localhost",
        "INSTANCE_PATH": str(directory),
        "OAUTH_RATE_LIMIT": "1000000/minute",
    }
    app = create_app(replace(parse_settings(environment), **_OPEN))  # type: ignore[arg-type]
    add_people(app)
    yield app.test_client()
    close_app(app)


@pytest.fixture
def browser(gatebell: LiveGatebell) -> requests.Session:
    """Bob's browser."""
    return signed_in(gatebell, bob(gatebell))


@pytest.fixture
def client(gatebell: LiveGatebell) -> ClientCredentials:
    """An application of Bob."""
    return make_application(gatebell, bob(gatebell))
