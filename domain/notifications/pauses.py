"""The pauses between attempts to send to a contact, and how long they go on."""

from datetime import timedelta

#: After the first failure; each further pause is twice as long, up to the longest.
_FIRST_SECONDS = 10
_LONGEST_SECONDS = 300
#: Pauses differ by a quarter in both directions, so that contacts of one service do not return all
#: at once.
_VARIATION = 0.25
_MOST_DOUBLINGS = 5
LONGEST_PAUSE = timedelta(seconds=_LONGEST_SECONDS * (1 + _VARIATION))
#: Something new for a contact that fails is tried after this pause, however long the present one.
NEW_MESSAGE_PAUSE = timedelta(seconds=5)
#: What could not be sent for so long is given up.
GIVE_UP_AFTER = timedelta(hours=6)


def pause_after(failures: int, *, share: float) -> timedelta:
    """Return the pause after so many failures in a row; `share` from 0 to 1 varies it.

    The first is at most 12.5 seconds, the longest a little over six minutes.
    """
    doublings = min(max(failures, 1) - 1, _MOST_DOUBLINGS)
    seconds = min(_FIRST_SECONDS * 2**doublings, _LONGEST_SECONDS)
    return timedelta(seconds=seconds * (1 - _VARIATION + 2 * _VARIATION * share))
