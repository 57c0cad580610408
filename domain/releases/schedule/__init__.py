"""The release schedule: all changes to interfaces that the specification announces.

Changes are ordered by release, then as in the specification. Entries do not contain the releases in
which a change was announced or support ended, because the specification does not contain these
releases.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from domain.releases.changes import Change
from domain.releases.schedule.release_16 import RELEASE_16, RELEASE_16_7
from domain.releases.schedule.release_17 import RELEASE_17, RELEASE_17_5
from domain.releases.schedule.release_18 import RELEASE_18

SCHEDULE: Sequence[Change] = (
    *RELEASE_16,
    *RELEASE_16_7,
    *RELEASE_17,
    *RELEASE_17_5,
    *RELEASE_18,
)

CHANGES_BY_ID: Mapping[str, Change] = MappingProxyType({each.id: each for each in SCHEDULE})
