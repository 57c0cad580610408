"""The states of swap requests, compared with the table in docs/on-call.md."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from domain.core.errors import ConflictError, ForbiddenError
from domain.paging.on_call.swap_request_states import (
    SwapRequestParty,
    SwapRequestState,
    compute_request_state,
    find_next_state,
)

_GUIDE = Path(__file__).parents[4] / "docs/on-call.md"
_PARTIES = {
    "other user": SwapRequestParty.ASKED,
    "requester": SwapRequestParty.REQUESTER,
    "maintainer": SwapRequestParty.MAINTAINER,
}
START = datetime(2026, 11, 30, 9, tzinfo=UTC)


def read_table() -> dict[tuple[str, str, SwapRequestParty | None], str]:
    """Return the next state by state, event and party; the clock has no party."""
    text = _GUIDE.read_text(encoding="utf-8")
    (table,) = re.findall(r"\| state \| event \| by \| next state \|\n\|[-|]+\n((?:\|.*\n)+)", text)
    found: dict[tuple[str, str, SwapRequestParty | None], str] = {}
    for line in table.splitlines():
        state, event, by, following = (each.strip() for each in line.strip("|").split("|"))
        for party in by.split(", "):
            found[state, event, _PARTIES[party] if party else None] = following
    return found


TABLE = read_table()
_CLOCK = "the earlier shift starts"
_EVENTS = st.tuples(
    st.sampled_from(["accept", "decline", "withdraw"]),
    st.sampled_from(list(SwapRequestParty)),
    st.integers(min_value=0, max_value=120),
)


@given(history=st.lists(_EVENTS, max_size=8))
def test_every_history_follows_the_table(history: list[tuple[str, SwapRequestParty, int]]) -> None:
    now, stored, expected = START - timedelta(minutes=200), "requested", "requested"
    for answer, party, minutes in history:
        now += timedelta(minutes=minutes)
        if now >= START:
            expected = TABLE.get((expected, _CLOCK, None), expected)
        state = compute_request_state(stored, START, now)
        assert state == expected
        following = TABLE.get((expected, answer, party))
        try:
            stored = find_next_state(state, answer, party).value
        except (ConflictError, ForbiddenError):
            assert following is None
        else:
            assert stored == following
            expected = stored


def test_the_table_names_every_state_but_the_final_ones_only_as_results() -> None:
    assert set(TABLE.values()) == {each.value for each in SwapRequestState} - {"requested"}
    assert {state for state, _, _ in TABLE} == {"requested"}


def test_a_request_expires_exactly_when_the_first_shift_starts() -> None:
    before = START - timedelta(microseconds=1)
    assert compute_request_state("requested", START, before) == SwapRequestState.REQUESTED
    assert compute_request_state("requested", START, START) == SwapRequestState.EXPIRED
    assert compute_request_state("accepted", START, START) == SwapRequestState.ACCEPTED
