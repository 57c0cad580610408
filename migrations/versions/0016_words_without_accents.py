"""Find words whether they are written with accents or without, alike on both databases.

The trigger sits on the words themselves, so that it does not matter who writes them. It adds those
without accents to the others: hosts of the release before look for words as they were typed. Only
Latin letters lose anything, as in SQLite's own table.

`remove_diacritics=1`, the default of SQLite, leaves letters alone that have two marks, as most of
Vietnamese has.
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_COLUMNS = "title, description, service, monitoring_tool, hosts, environment"
_IS_PLAIN = "octet_length({0}) = char_length({0})"
_ON_POSTGRES = (
    f"""
    CREATE FUNCTION alert_search_without_accents() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      NEW.document := NEW.document || array_to_tsvector(ARRAY(
        SELECT lower(normalize(
          regexp_replace(normalize(word, NFD), '([A-Za-z])[\\u0300-\\u036f]+', '\\1', 'g'), NFC))
        FROM unnest(tsvector_to_array(NEW.document)) AS word
        WHERE NOT {_IS_PLAIN.format("word")}
      ));
      RETURN NEW;
    END $$
    """,  # noqa: S608 - constants of this file
    f"""
    CREATE TRIGGER alert_search_without_accents BEFORE INSERT OR UPDATE ON alert_search
    FOR EACH ROW WHEN (NOT {_IS_PLAIN.format("NEW.document::text")})
    EXECUTE FUNCTION alert_search_without_accents()
    """,
    f"""
    UPDATE alert_search SET document = document WHERE NOT {_IS_PLAIN.format("document::text")}
    """,  # noqa: S608 - as above
)


def _index_anew(tokenizer: str) -> None:
    """Read the words of all alerts once more.

    The table has the name and the columns that it had: triggers and former code go on with it.
    """
    op.execute("DROP TABLE alert_search")
    op.execute(
        f"""
        CREATE VIRTUAL TABLE alert_search
        USING fts5({_COLUMNS}, content='alerts', content_rowid='id', tokenize='{tokenizer}')
        """
    )
    op.execute("INSERT INTO alert_search (alert_search) VALUES ('rebuild')")


def upgrade() -> None:
    """Go forward."""
    if not _is_postgres():
        _index_anew("unicode61 remove_diacritics 2")
        return
    for statement in _ON_POSTGRES:
        op.get_bind().exec_driver_sql(statement)


def _is_postgres() -> bool:
    return op.get_bind().dialect.name == "postgresql"


def downgrade() -> None:
    """Go back; words without accents that were added do no harm."""
    if not _is_postgres():
        _index_anew("unicode61")
        return
    op.execute("DROP TRIGGER alert_search_without_accents ON alert_search")
    op.execute("DROP FUNCTION alert_search_without_accents")
