"""How much must be in the databases for all runs to have enough."""

from dataclasses import dataclass

from bench.oauth_shots import CODES_A_SECOND
from bench.shots import CHAINS


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Rows of each kind."""

    access_tokens: int
    refresh_tokens: int
    codes: int
    device_codes: int


def counts_for(*, runs: int, seconds: int, has_codes: bool) -> Counts:
    """Return what that many runs need, and one more value for the look beforehand."""
    return Counts(
        access_tokens=1_000,
        refresh_tokens=CHAINS * runs + 1,
        codes=CODES_A_SECOND * seconds * runs + 1 if has_codes else 1,
        # One in so many is asked about again, and may then be told to slow down.
        device_codes=10_000,
    )
