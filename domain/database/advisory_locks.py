"""Numbers of Postgres' advisory locks, in one place: two that are the same wait for each other.

Triggers and the adding up of days lock by the hash of a word of their own, which is another space.
"""

from enum import IntEnum, unique


@unique
class AdvisoryLock(IntEnum):
    """What is done by one at a time, on all hosts; any number will do."""

    MIGRATIONS = 7_240_118_364
    SIGNING_KEYS = 7_240_118_365
    QUEUE_TABLES = 7_240_118_366
