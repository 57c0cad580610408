"""Checks GraphQL documents, by `graphql_reader`.

graphql-core is loaded with the first document: it takes 12 MiB and a tenth of a second, which every
web process and every command would pay for at its start.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from domain.releases.checker.deadline import go_on
from domain.releases.checker.findings import Found


def check_graphql(
    text: str, variables: Mapping[str, Any] | None = None, line: int = 1
) -> Iterator[Found]:
    """Yield what changes for a document that begins at a line; raise UnreadableContentError."""
    from domain.releases.checker import graphql_reader  # noqa: PLC0415 - see above

    go_on()
    yield from graphql_reader.check(text, variables, line)
