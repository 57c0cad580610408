"""Checks GraphQL documents, with `graphql_reader`, and requests to a GraphQL endpoint.

graphql-core takes 12 MiB and a tenth of a second. It is loaded with the first document, so that it
does not slow down the start of every web process and command.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from domain.releases.checker.findings import Found, UnreadableContentError, go_on
from domain.releases.checker.requests import json_value


def check_graphql(
    text: str, variables: Mapping[str, Any] | None = None, line: int = 1
) -> Iterator[Found]:
    """Yield the changes that affect a document that starts at a line.

    Raise UnreadableContentError if it is not valid.
    """
    from domain.releases.checker import graphql_reader  # noqa: PLC0415 - see above

    go_on()
    yield from graphql_reader.check(text, variables, line)


#: Maximum number of queries in one request.
_MOST = 100


def check_graphql_request(body: str) -> Iterator[Found]:
    """Yield the changes that affect a request; queries that are not valid are skipped."""
    given = json_value(body)
    for each in (given if isinstance(given, list) else [given])[:_MOST]:
        if not isinstance(each, dict) or not isinstance(each.get("query"), str):
            continue
        variables = each.get("variables")
        try:
            yield from check_graphql(
                each["query"], variables if isinstance(variables, dict) else {}
            )
        except UnreadableContentError:
            continue
