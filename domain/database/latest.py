"""The latest of several times, a function that the databases name differently."""

from datetime import datetime
from typing import Any

from sqlalchemy import SQLColumnExpression
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import ReturnTypeFromArgs


class latest(ReturnTypeFromArgs[datetime]):  # noqa: N801 - named as functions of SQL are
    """The latest of its arguments, none of which may be NULL."""

    inherit_cache = True

    def __init__(self, *times: SQLColumnExpression[datetime]) -> None:
        """Take the times."""
        super().__init__(*times)


@compiles(latest, "postgresql")
def _greatest(element: latest, compiler: Any, **options: Any) -> str:
    return f"greatest({compiler.process(element.clauses, **options)})"


@compiles(latest, "sqlite")
def _max(element: latest, compiler: Any, **options: Any) -> str:
    return f"max({compiler.process(element.clauses, **options)})"
