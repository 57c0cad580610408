"""Runs migrations on the connection of `web/database/schema.py` or `migrations/new.py`."""

from typing import Any

from alembic import context

from models import Base


def _is_ours(_what: Any, _name: Any, kind: str, is_reflected: Any, compared_to: Any) -> bool:
    """Leave out the tables that a migration wrote by itself, as those of the search."""
    return not (kind == "table" and is_reflected and compared_to is None)


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    compare_type=True,
    # A lock is only held as long as one migration takes, and what is done stays done.
    transaction_per_migration=True,
    transactional_ddl=True,
    include_object=_is_ours,
)
with context.begin_transaction():
    context.run_migrations()
