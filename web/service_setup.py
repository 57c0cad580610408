"""Initialization of an application's database and services, for requests and commands."""

from flask import Flask

from domain.core.clock import Clock
from domain.core.keyring import Keyring
from domain.core.rejection_sampling import RefusalSampler
from domain.releases.usage.storing import CallCounter
from web.database.connections import KeptConnections
from web.database.engine import (
    engine_options,
    open_autocommit_engine,
    pools_transactions,
    prepare_engine,
)
from web.database.write_probe import WriteProbe
from web.extensions import db
from web.http.transactions import held_connection, session_writes
from web.services import LiveSettings, Services
from web.settings.reader import Settings


def start_services(app: Flask, settings: Settings, *, clock: Clock) -> None:
    """Start the database extension and our own services."""
    app.config.update(
        SQLALCHEMY_DATABASE_URI=settings.database_url,
        SQLALCHEMY_ENGINE_OPTIONS=engine_options(settings),
    )
    db.init_app(app)
    with app.app_context():
        prepare_engine(db.engine, settings, writes=session_writes)
    connections = KeptConnections(
        open_autocommit_engine(settings),
        size=settings.database_pool_size,
        patience=settings.database_connect_timeout_seconds,
        held=held_connection if pools_transactions(settings) else None,
    )
    app.extensions["gatebell"] = Services(
        clock=clock,
        keyring=Keyring(settings.secret_key, *settings.secret_key_fallbacks),
        connections=connections,
        live_settings=LiveSettings(settings, connections),
        refusals=RefusalSampler(),
        token_refusals=RefusalSampler(),
        calls=CallCounter(),
        write_probe=WriteProbe(),
    )
