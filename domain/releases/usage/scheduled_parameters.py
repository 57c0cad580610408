"""Parameter names in the release schedule."""

from collections.abc import Iterator

from domain.releases.schedule import SCHEDULE


def _list_parameter_names() -> Iterator[str]:
    for change in SCHEDULE:
        for call in change.call_patterns:
            yield from call.attributes
            if call.when is not None:
                yield from call.when.parameter_names


#: Parameter names of all changes.
SCHEDULE_NAMES = frozenset(_list_parameter_names())
