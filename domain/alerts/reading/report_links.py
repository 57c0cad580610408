"""Finds what a report links to: a runbook, a dashboard, a panel, its page at the sender."""

from collections.abc import Iterator, Mapping, Sequence

from domain.alerts.reading.text import storable
from domain.text_links import is_web_url

#: What the first and the last of them lead to.
RUNBOOK, SOURCE = "Runbook", "Source"
_LONGEST = 1_000
#: Where senders put each link, in the order in which they are asked; Grafana has the second and
#: third name.
_NAMES = {
    RUNBOOK: ("runbook_url", "runbook", "playbook"),
    "Dashboard": ("dashboard", "dashboardURL", "dashboard_url", "dashboardUrl"),
    "Panel": ("panelURL", "panel_url"),
    SOURCE: ("generatorURL", "generatorUrl", "generator_url", "client_url", "url", "link"),
}
#: The objects within a report that have such members as well.
_WITHIN = ("annotations", "labels", "payload", "custom_details", "details")


def report_links(report: Mapping[str, object]) -> Mapping[str, str]:
    """Return the links of a report by what they lead to; only complete http and https URLs."""
    within = list(_within(report))
    places = [report, *within, *(each for inner in within for each in _within(inner))]
    found = {what: _first(places, names) for what, names in _NAMES.items()}
    return {what: url for what, url in found.items() if url is not None}


def _within(place: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    for name in _WITHIN:
        inner = place.get(name)
        if isinstance(inner, dict):
            yield inner


def _first(places: Sequence[Mapping[str, object]], names: Sequence[str]) -> str | None:
    for name in names:
        for place in places:
            value = place.get(name)
            if isinstance(value, str) and len(value) <= _LONGEST and is_web_url(value):
                return storable(value)
    return None
