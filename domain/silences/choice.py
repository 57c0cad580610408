"""The matchers that a silence for one alert begins with."""

from collections.abc import Mapping

from domain.alerts.matching.matchers import Matcher, Operator
from domain.alerts.matching.parser import LONGEST_TEXT

#: What tells one problem from another, as senders name it.
_TELLING = ("alertname", "service", "environment", "instance", "host")
_LONGEST = LONGEST_TEXT // (2 * len(_TELLING))


def matchers_for(labels: Mapping[str, str]) -> tuple[Matcher, ...]:
    """Return matchers for the alerts that have the same problem in the same place.

    `host` is left out where `instance` says the same more exactly.
    """
    names = [name for name in _TELLING if 0 < len(labels.get(name, "")) <= _LONGEST]
    if "instance" in names and "host" in names:
        names.remove("host")
    return tuple(Matcher(name, Operator.EQUAL, labels[name]) for name in names)
