"""Hypothesis strategies for JSON values and for the bodies that contain them."""

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)

#: Any character that JSON can contain, including lone surrogates and NUL.
texts = st.text(st.characters(codec=None, exclude_categories=()), max_size=12)

numbers = st.one_of(
    st.integers(),
    st.integers(min_value=-(10**40), max_value=10**40),
    st.floats(allow_nan=False, allow_infinity=False),
)

scalars = st.one_of(st.none(), st.booleans(), numbers, texts)


def _containers(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(children, max_size=4) | st.dictionaries(texts, children, max_size=4)


json_values = st.recursive(scalars, _containers, max_leaves=8)

#: Texts that are similar to the words and times of senders.
near_misses = st.sampled_from(
    (
        "resolved",
        "RESOLVED ",
        "critical",
        "Page",
        "2026-11-21T07:52:39Z",
        "2026-11-21T07:52:39+99:99",
        "0001-01-01T00:00:00Z",
        "0001-01-01T00:00:00+05:00",
        "9999-12-31T23:59:60-23:59",
        "2026-02-30T00:00:00Z",
        "Sat, 21 Nov 2026 08:27:28 +9999",
        "1763712000",
        "99999999999999",
        "http://prom.example/graph?g0.expr=%ff%00+up",
        "http://[::1/graph?g0.expr=up",
        1763712000123,
        10**18,
        1e308,
        -1,
        True,
    )
)

field_values = json_values | near_misses


def posted(value: Any) -> bytes:
    """Return the body of a request."""
    return json.dumps(value).encode()
