"""Reads requests to a GraphQL endpoint: JSON with a query and its variables."""

from collections.abc import Iterator

from domain.releases.checker.findings import Found, UnreadableContentError
from domain.releases.checker.graphql_documents import check_graphql
from domain.releases.checker.requests import json_value

#: Queries of one request.
_MOST = 100


def check_graphql_request(body: str) -> Iterator[Found]:
    """Yield what changes for a request; what is no document is passed over."""
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
