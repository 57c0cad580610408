"""Which scheduled changes concern the calls of a shape.

The schedule is asked when counts are read, so that a change that is announced later is found in
calls of before. What depends on values was noted with the call.
"""

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType

from domain.api_usage.counting import UNKNOWN_NAME, Shape
from domain.releases.changes import Call, Certainty, Change, Interface, Kind
from domain.releases.conditions import Given, Missing
from domain.releases.matching import calls_to
from domain.releases.schedule import BY_ID

_GIVEN = "given"


@lru_cache(maxsize=10_000)
def concerns_of(shape: Shape) -> Mapping[str, Certainty]:
    """Return the ids of the changes that concern calls of a shape."""
    found = {
        change_id: _noted(BY_ID[change_id], shape)
        for change_id in shape.changes
        if change_id in BY_ID
    }
    names = dict.fromkeys(shape.parameters, _GIVEN)
    for concern in calls_to(shape.method, shape.route):
        certainty = _by_names(concern.change, concern.call, names)
        if certainty is not None and found.get(concern.change.id) is not Certainty.SURE:
            found[concern.change.id] = certainty
    return MappingProxyType(found)


def _noted(change: Change, shape: Shape) -> Certainty:
    """Return how sure a change is that was noted with a call, for its method and path."""
    own = [each.call for each in calls_to(shape.method, shape.route) if each.change is change]
    is_open = own and all(call.when is None and not _is_ended(change, call) for call in own)
    return Certainty.POSSIBLE if is_open else Certainty.SURE


def _by_names(change: Change, call: Call, names: Mapping[str, str]) -> Certainty | None:
    """Return how sure a change is as far as names tell, or None."""
    if change.interface is Interface.PAGES:
        return None  # its pattern fits the URLs of APIs as well
    if call.when is not None:
        if not isinstance(call.when, Given | Missing) or not call.when(names):
            return None
        # A shape that lost its names may have had this one.
        is_open = isinstance(call.when, Missing) and names.keys() == {UNKNOWN_NAME}
        return Certainty.POSSIBLE if is_open else Certainty.SURE
    if _is_ended(change, call) or not names.keys().isdisjoint(call.attributes):
        return Certainty.SURE
    return Certainty.POSSIBLE


def _is_ended(change: Change, call: Call) -> bool:
    """Return whether every call has another result."""
    return change.kind is Kind.OPERATION_GONE and not call.fields
