"""Runs migrations on the connection that `web.database.migrate` or Flask-Migrate provides."""

from alembic import context
from flask import current_app
from sqlalchemy import Connection

from models import Base


def _run(connection: Connection) -> None:
    context.configure(
        connection=connection,
        target_metadata=Base.metadata,
        compare_type=True,
    )
    with context.begin_transaction():
        context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    _run(given)
else:  # `flask db …`, within the application
    with current_app.extensions["sqlalchemy"].engine.begin() as opened:
        _run(opened)
