"""The release schedule: every change of an interface that the specification announces.

The order is that of the specification: by release, and there as it lists them. No entry states the
release of its announcement or the end of support, because the specification states none.
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

BY_ID: Mapping[str, Change] = MappingProxyType({each.id: each for each in SCHEDULE})
