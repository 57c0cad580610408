"""The pauses between attempts to deliver something to a destination."""

from datetime import timedelta

#: After the first failures; with the widest variation the longest is two minutes.
_FIRST_SECONDS = (5, 10, 20, 40, 60, 80, 100, 100, 100, 100)
_LONGEST_SECONDS = 3 * 3600
#: Pauses differ by a fifth in both directions, so that destinations on one host do not return
#: all at once.
_VARIATION = 0.2
_MOST_DOUBLINGS = 10
LONGEST_PAUSE = timedelta(seconds=_LONGEST_SECONDS)
_LONGEST_FIRST_SECONDS = 120


def pause_after(failures: int, *, share: float, asked_seconds: int | None = None) -> timedelta:
    """Return the pause after so many failures in a row; `share` from 0 to 1 varies it.

    A destination that asks for a longer pause (Retry-After) gets it, up to two minutes during the
    first ten failures and up to three hours after them.
    """
    most = _LONGEST_FIRST_SECONDS if failures <= len(_FIRST_SECONDS) else _LONGEST_SECONDS
    varied = _seconds(failures) * (1 - _VARIATION + 2 * _VARIATION * share)
    return timedelta(seconds=min(max(varied, asked_seconds or 0), most))


def _seconds(failures: int) -> int:
    if failures <= len(_FIRST_SECONDS):
        return _FIRST_SECONDS[max(failures, 1) - 1]
    doublings = min(failures - len(_FIRST_SECONDS), _MOST_DOUBLINGS)
    return int(min(_LONGEST_FIRST_SECONDS * 2**doublings, _LONGEST_SECONDS))
