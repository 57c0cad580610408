"""Create the tables of release 0.1.0.

A database that 0.1.0 has migrated is already at this revision, with the same tables. They are the
result of the 51 earlier migrations
(docs/adr/0063-start-migrations-at-0-1-0-and-never-rewrite-them.md).
"""

import sqlalchemy as sa
from alembic import op

from migrations.release_0_1_0 import (
    accounts,
    alerts,
    ci_cd,
    incidents,
    oauth,
    paging,
    service,
    triggers,
)

revision = "0051"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Upgrade the schema."""
    for subject in (accounts, oauth, service, ci_cd, alerts, paging, incidents):
        subject.create_tables()
    triggers.create_triggers()
    op.execute("INSERT INTO installation (id, installed_at) VALUES (1, CURRENT_TIMESTAMP)")
    # Code that knows this migration or a later one can work with these tables.
    op.execute(sa.text("INSERT INTO schema_support (oldest_revision) VALUES ('0008')"))
