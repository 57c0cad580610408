"""Checks GraphQL documents, and requests to GraphQL endpoints.

Importing graphql-core takes 12 MiB of memory and a tenth of a second. The library is imported when
the first document is checked, so that it does not delay the start of every web process and command.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from domain.releases.checker.findings import (
    DetectedChange,
    UnreadableContentError,
    check_time_limit,
)
from domain.releases.checker.requests import parse_json_or_none


def check_graphql(
    text: str, variables: Mapping[str, Any] | None = None, line: int = 1
) -> Iterator[DetectedChange]:
    """Yield the changes that affect a GraphQL document starting at the given line.

    Raise UnreadableContentError if the document is not valid.
    """
    from domain.releases.checker import graphql_documents  # noqa: PLC0415 - it imports graphql-core

    check_time_limit()
    yield from graphql_documents.check_document(text, variables, line)


#: Maximum number of queries in one request.
_MAX_QUERIES = 100


def check_graphql_request(body: str) -> Iterator[DetectedChange]:
    """Yield the changes that affect a GraphQL request.

    Invalid queries are skipped.
    """
    given = parse_json_or_none(body)
    for each in (given if isinstance(given, list) else [given])[:_MAX_QUERIES]:
        if not isinstance(each, dict) or not isinstance(each.get("query"), str):
            continue
        variables = each.get("variables")
        try:
            yield from check_graphql(
                each["query"], variables if isinstance(variables, dict) else {}
            )
        except UnreadableContentError:
            continue
