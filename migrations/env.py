"""Runs migrations on the connection of `web/database/schema.py` or `migrations/new.py`."""

from typing import Any, Literal

from alembic import context
from alembic.autogenerate.api import AutogenContext

from models import Base
from models.base import UTCDateTime


def _include_object(_what: Any, _name: Any, kind: str, is_reflected: Any, compared_to: Any) -> bool:
    """Leave out tables that have no model, such as the search tables."""
    return not (kind == "table" and is_reflected and compared_to is None)


def _render_column_type(kind: str, what: Any, found: AutogenContext) -> str | Literal[False]:
    """Return the source of a custom column type in a new migration, or False for other types."""
    if kind != "type" or not isinstance(what, UTCDateTime):
        return False
    found.imports.add("\nfrom models.base import UTCDateTime")
    return "UTCDateTime()"


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    compare_type=True,
    # Each migration has its own transaction, so locks are short and finished migrations stay.
    transaction_per_migration=True,
    transactional_ddl=True,
    include_object=_include_object,
    render_item=_render_column_type,
)
with context.begin_transaction():
    context.run_migrations()
