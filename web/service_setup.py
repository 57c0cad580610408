"""Initialization of an application's database and services, for requests and commands."""

from flask import Flask

from domain.core.clock import Clock
from domain.core.keyring import Keyring
from domain.core.rejected_request_sampling import RejectedRequestSampler
from domain.releases.usage.call_counts import CallCounter
from web.database.autocommit_pool import AutocommitPool
from web.database.engine import (
    build_engine_options,
    open_autocommit_engine,
    prepare_engine,
    uses_transaction_pooler,
)
from web.database.write_probe import WriteProbe
from web.extensions import db
from web.http.transactions import can_session_write, find_session_connection
from web.services import LiveSettings, Services
from web.settings.environment import Settings


def start_services(app: Flask, settings: Settings, *, clock: Clock) -> None:
    """Start the database extension, and create the services of an application."""
    app.config.update(
        SQLALCHEMY_DATABASE_URI=settings.database_url,
        SQLALCHEMY_ENGINE_OPTIONS=build_engine_options(settings),
    )
    db.init_app(app)
    with app.app_context():
        prepare_engine(db.engine, settings, writes=can_session_write)
    connections = AutocommitPool(
        open_autocommit_engine(settings),
        size=settings.database_pool_size,
        timeout_seconds=settings.database_connect_timeout_seconds,
        held=find_session_connection if uses_transaction_pooler(settings) else None,
    )
    app.extensions["gatebell"] = Services(
        clock=clock,
        keyring=Keyring(settings.secret_key, *settings.secret_key_fallbacks),
        connections=connections,
        live_settings=LiveSettings(settings, connections),
        refusals=RejectedRequestSampler(),
        token_refusals=RejectedRequestSampler(),
        calls=CallCounter(),
        write_probe=WriteProbe(),
    )
