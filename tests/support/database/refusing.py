"""Makes a database reject some rows, as an unexpected constraint does."""

from collections.abc import Callable, Mapping, Sequence

from sqlalchemy import Engine, text

_REFUSING: Mapping[str, Sequence[str]] = {
    "sqlite": (
        """CREATE TRIGGER refusing BEFORE INSERT ON {table} WHEN {condition}
        BEGIN SELECT RAISE(ABORT, 'refused'); END""",
    ),
    "postgresql": (
        """CREATE FUNCTION refusing() RETURNS trigger LANGUAGE plpgsql AS
        $$BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = 'check_violation'; END$$""",
        """CREATE TRIGGER refusing BEFORE INSERT ON {table} FOR EACH ROW WHEN ({condition})
        EXECUTE FUNCTION refusing()""",
    ),
}
_ALLOWING: Mapping[str, Sequence[str]] = {
    "sqlite": ("DROP TRIGGER refusing",),
    "postgresql": ("DROP FUNCTION refusing CASCADE",),
}


def refuse_rows(table: str, condition: str, *, engine: Engine) -> Callable[[], None]:
    """Reject rows of a table that meet a condition; return a function that allows them again."""
    _run(_REFUSING, engine, table=table, condition=condition)
    return lambda: _run(_ALLOWING, engine)


def _run(by_dialect: Mapping[str, Sequence[str]], engine: Engine, **words: str) -> None:
    with engine.begin() as connection:
        for statement in by_dialect[engine.dialect.name]:
            connection.execute(text(statement.format(**words)))
