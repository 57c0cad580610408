"""Keep beside each name what is the same for all of its spellings.

SQLite folds only the letters a to z, and Postgres as its locale says: two people could have one
e-mail address in two spellings, and be taken for each other. The texts are folded by one function,
in a column of their own.

Where rows turn out to be the same, the oldest is found by the name. A later one keeps all that it
has, the name too, and is not found by it until it has another: who has such an account signs in
with the user name, and gives another address. The log names each of them.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import Any
from unicodedata import normalize

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_log = logging.getLogger("alembic.runtime.migration")
_SLICE = 1_000
#: Table, text, whether one row alone may have it.
_TEXTS = (
    ("users", "username", True),
    ("users", "email", True),
    ("users", "name", False),
    ("groups", "path", True),
    ("projects", "path", True),
    ("environments", "name", False),
    ("applications", "name", False),
    ("personal_access_tokens", "name", False),
)
#: What is looked up exactly is folded by the database, too, for hosts of the former version: names
#: and paths have letters from a to z only, and a folded address is made whole by the worker.
_FILLED = (("users", ("username", "email")), ("groups", ("path",)), ("projects", ("path",)))
_SET_ASIDE = {
    ("users", "email"): "User %d has the e-mail address of an older account in another spelling: "
    "the address leads to the older one; this one signs in with the user name.",
    ("users", "username"): "User %d has the user name of an older account in another spelling: "
    "the name leads to the older one; this one signs in with the e-mail address.",
    ("groups", "path"): "Group %d has the path of an older one in another spelling: the path "
    "leads to the older one until this one is renamed.",
    ("projects", "path"): "Project %d has the path of an older one in another spelling: the path "
    "leads to the older one until this one is renamed.",
}


def upgrade() -> None:
    """Go forward."""
    for table, text, is_unique in _TEXTS:
        op.add_column(table, sa.Column(f"{text}_key", sa.Text(), nullable=True))
        _fill(table, text, is_unique=is_unique)
        if is_unique:
            op.create_index(f"uq_{table}_{text}_key", table, [f"{text}_key"], unique=True)
    for table, texts in _FILLED:
        for statement in _postgres(table, texts) if _is_postgres() else _sqlite(table, texts):
            op.execute(statement)


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def fold(text: str) -> str:
    """Fold a text as the service does (Unicode 3.13, D146)."""
    once = normalize("NFKC", normalize("NFD", text).casefold())
    return normalize("NFKC", once.casefold())


def _fill(table: str, text: str, *, is_unique: bool) -> None:
    rows = sa.table(table, sa.column("id"), sa.column(text), sa.column(f"{text}_key"))
    store = (
        sa.update(rows)
        .where(rows.c.id == sa.bindparam("number"))
        .values({f"{text}_key": sa.bindparam("folded")})
    )
    taken: set[str] = set()
    later = []
    for part in _slices(rows, text):
        keys = []
        for number, value in part:
            key = fold(value)
            if is_unique and key in taken:
                later.append(number)
                continue
            taken.add(key)
            keys.append({"number": number, "folded": key})
        if keys:
            op.get_bind().execute(store, keys)
    for number in later:
        _log.warning(_SET_ASIDE[table, text], number)


def _slices(rows: sa.TableClause, text: str) -> Iterator[Sequence[Any]]:
    """Yield all rows, the oldest first, a slice at a time."""
    last = 0
    while True:
        statement = (
            sa.select(rows.c.id, rows.c[text])
            .where(rows.c.id > last)
            .order_by(rows.c.id)
            .limit(_SLICE)
        )
        part = op.get_bind().execute(statement).all()
        if not part:
            return
        yield part
        last = part[-1][0]


def _postgres(table: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    folded = " ".join(
        f"NEW.{text}_key := coalesce(NEW.{text}_key, lower(NEW.{text}));" for text in texts
    )
    return (
        f"""
        CREATE FUNCTION {table}_folded() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          {folded}
          RETURN NEW;
        END $$
        """,
        f"""
        CREATE TRIGGER {table}_folded BEFORE INSERT ON {table}
        FOR EACH ROW EXECUTE FUNCTION {table}_folded()
        """,
    )


def _sqlite(table: str, texts: tuple[str, ...]) -> tuple[str, ...]:
    is_missing = " OR ".join(f"NEW.{text}_key IS NULL" for text in texts)
    folded = ", ".join(f"{text}_key = coalesce({text}_key, lower({text}))" for text in texts)
    return (
        f"""
        CREATE TRIGGER {table}_folded AFTER INSERT ON {table} WHEN {is_missing}
        BEGIN
          UPDATE {table} SET {folded} WHERE id = NEW.id;
        END
        """,  # noqa: S608 - constants of this file
    )


def downgrade() -> None:
    """Go back."""
    for table, _ in _FILLED:
        if _is_postgres():
            op.execute(f"DROP TRIGGER {table}_folded ON {table}")
            op.execute(f"DROP FUNCTION {table}_folded")
        else:
            op.execute(f"DROP TRIGGER {table}_folded")
    for table, text, is_unique in reversed(_TEXTS):
        if is_unique:
            op.drop_index(f"uq_{table}_{text}_key", table)
        op.drop_column(table, f"{text}_key")
