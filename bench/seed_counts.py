"""Number of rows that all runs need in the databases."""

from dataclasses import dataclass

from bench.oauth_shots import CODES_PER_SECOND
from bench.shots import CHAIN_COUNT


@dataclass(frozen=True, kw_only=True)
class Counts:
    """The row counts of each kind."""

    access_tokens: int
    refresh_tokens: int
    codes: int
    device_codes: int


def build_counts(*, runs: int, seconds: int, has_codes: bool) -> Counts:
    """Return the number of rows for `runs` runs, and one more for the initial check."""
    return Counts(
        access_tokens=1_000,
        refresh_tokens=CHAIN_COUNT * runs + 1,
        codes=CODES_PER_SECOND * seconds * runs + 1 if has_codes else 1,
        # With this many codes, the same code is rarely polled again soon enough to get slow_down.
        device_codes=10_000,
    )
