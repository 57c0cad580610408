"""Names and definitions of all objects in a database, as lines that can be compared."""

import re
from collections.abc import Iterator

from sqlalchemy import Connection, text

#: Query for the definition of each object of Postgres.
_ON_POSTGRES = """
SELECT concat_ws(' ', 'column', attrelid::regclass, attname, format_type(atttypid, atttypmod),
  CASE WHEN attnotnull THEN 'NOT NULL' END, 'DEFAULT ' || pg_get_expr(adbin, adrelid))
FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = attrelid
LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
  AND attnum > 0 AND NOT attisdropped
UNION ALL
SELECT concat_ws(' ', 'relation', relkind, oid::regclass, reloptions) FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind <> 'i'
UNION ALL
SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE connamespace = current_schema()::regnamespace
UNION ALL
SELECT concat_ws(' ', 'index', pg_get_indexdef(indexrelid), indisvalid) FROM pg_index
JOIN pg_class AS c ON c.oid = indexrelid WHERE relnamespace = current_schema()::regnamespace
UNION ALL
SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal
UNION ALL
SELECT pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
"""
_ON_SQLITE = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"


def read_catalog(connection: Connection) -> list[str]:
    """Return the definition of every table, column, constraint, index, trigger and function."""
    if connection.dialect.name == "postgresql":
        return sorted(_one_line(each) for each in connection.scalars(text(_ON_POSTGRES)))
    found = connection.scalars(text(_ON_SQLITE))
    return sorted(line for each in found for line in _lines_of(_one_line(each)))


def _one_line(definition: str) -> str:
    """Remove insignificant differences: blanks, quotes around plain names, old for OLD."""
    line = re.sub(r'"([a-z_][a-z0-9_]*)"', r"\1", " ".join(definition.split()))
    line = re.sub(r"\b(new|old)\.", lambda row: row[0].upper(), line)
    return re.sub(r"\s*([(),;])\s*", r"\1", line)


def _lines_of(definition: str) -> Iterator[str]:
    """Split the definition of a table; columns that were added later follow the constraints."""
    found = re.fullmatch(r"CREATE TABLE (\w+)\((.*)\)", definition)
    if found is None:
        yield definition
        return
    table, members = found.groups()
    yield f"CREATE TABLE {table}"
    for member in _members(members):
        yield f"{table} {member}"


def _members(text_of_members: str) -> Iterator[str]:
    """Split at the commas outside of brackets."""
    depth, member = 0, ""
    for character in text_of_members:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            yield member
            member = ""
        else:
            member += character
    yield member
