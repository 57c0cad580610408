"""The numbers of Postgres' advisory locks, which must differ.

Triggers, the adding up of days and new paths lock by the hash of a word of their own, which is
another space.
"""

from enum import IntEnum, unique


@unique
class AdvisoryLock(IntEnum):
    """An action that one process on all hosts does at a time; the numbers are arbitrary."""

    MIGRATIONS = 7_240_118_364
    SIGNING_KEYS = 7_240_118_365
    REGISTRY_KEYS = 7_240_118_367
    MOVES = 7_240_118_368
