"""Reads what the public API of Grafana OnCall returns: one JSON object, or a file for each list.

https://grafana.com/docs/oncall/latest/oncall-api-reference/
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS
from domain.errors import InvalidError
from domain.importing.entities import Entity, EntityReader, Text, items_of
from domain.importing.files import Document
from domain.importing.grafana_chains import Chain, Policy, policy_of
from domain.importing.grafana_shifts import Schedule, Shift, schedule_of
from domain.importing.plan import ImportedIntegration, ImportedUser, ImportPlan, LeftOut

#: Members of the object, or names of files.
_KINDS = (
    *("users", "teams", "schedules", "on_call_shifts", "escalation_chains"),
    *("escalation_policies", "integrations", "routes"),
)
_NOT_TAKEN = {
    "webhooks": "Outgoing webhooks are not imported: add webhooks to the project.",
    "actions": "Outgoing webhooks are not imported: add webhooks to the project.",
    "personal_notification_rules": "Rules are not imported: each user adds contacts.",
    "shift_swaps": "Swaps are not imported: swap the shifts in the schedule.",
}
_ALERTMANAGER = frozenset(
    {"alertmanager", "legacy_alertmanager", "grafana_alerting", "legacy_grafana_alerting"}
)
_NO_SOURCES = frozenset({"inbound_email", "direct_paging", "manual", "maintenance", "slack"})


class _User(Entity):
    id: Text
    username: Text = ""
    email: Text = ""
    name: Text = ""


class _Team(Entity):
    id: Text
    name: Text


class _DefaultRoute(Entity):
    escalation_chain_id: Text = ""


class _Integration(Entity):
    id: Text
    name: Text
    type: Text
    team_id: Text = ""
    default_route: _DefaultRoute | None = None


class _Route(Entity):
    integration_id: Text = ""
    routing_regex: Text = ""
    is_the_last_route: bool | None = False


def read_grafana_oncall(documents: Iterable[Document], *, now: datetime) -> ImportPlan:
    """Return what an export comes to; raise InvalidError if it is none."""
    given, left_out = _by_kind(documents)
    read = EntityReader(left_out)
    schedules = read.all(Schedule, given["schedules"], "schedule")
    shifts = {each.id: each for each in read.all(Shift, given["on_call_shifts"], "rotation")}
    chains = read.all(Chain, given["escalation_chains"], "policy")
    steps = read.all(Policy, given["escalation_policies"], "step")
    integrations = read.all(_Integration, given["integrations"], "integration")
    default = _default_chain(integrations, chains, left_out)
    _leave_out_routes(read.all(_Route, given["routes"], "route"), integrations, left_out)
    planned = [schedule_of(each, shifts, left_out, now=now) for each in schedules]
    sources = [_source(each, left_out) for each in integrations]
    return ImportPlan(
        teams={each.id: each.name for each in read.all(_Team, given["teams"], "team")},
        users=[_user_of(each) for each in read.all(_User, given["users"], "user")],
        schedules=[each for each in planned if each is not None],
        policies=[policy_of(each, steps, default, left_out) for each in chains],
        integrations=[each for each in sources if each is not None],
        left_out=left_out,
    )


def _by_kind(
    documents: Iterable[Document],
) -> tuple[Mapping[str, list[object]], list[LeftOut]]:
    given: dict[str, list[object]] = {kind: [] for kind in _KINDS}
    left_out: list[LeftOut] = []
    for document in documents:
        for kind, value in _lists(document):
            if kind in given:
                given[kind] += items_of(value)
            elif kind in _NOT_TAKEN and (count := len(items_of(value))):
                left_out.append(
                    LeftOut(kind=kind, name=f"{count} of them", reason=_NOT_TAKEN[kind])
                )
    if not any(given.values()):
        kinds = ", ".join(_KINDS)
        message = f"This is not an export of Grafana OnCall: it has none of the lists {kinds}."
        raise InvalidError(message)
    return given, left_out


def _lists(document: Document) -> Iterable[tuple[str, object]]:
    """Yield lists with their kinds: of a file by its name (`users.json`, `users-2.json`)."""
    kind = document.stem.partition("-")[0]
    if kind in _KINDS or kind in _NOT_TAKEN:
        yield kind, document.value
    elif isinstance(document.value, Mapping):
        yield from document.value.items()


def _user_of(user: _User) -> ImportedUser:
    username = user.username.partition("@")[0] or user.email.partition("@")[0]
    return ImportedUser(key=user.id, username=username, email=user.email, name=user.name)


def _default_chain(
    integrations: Sequence[_Integration], chains: Sequence[Chain], left_out: list[LeftOut]
) -> str:
    """Return the key of the chain that most integrations lead to, and say which lead elsewhere."""
    names = {each.id: each.name for each in chains}
    leads = {
        each.name: each.default_route.escalation_chain_id
        for each in integrations
        if each.default_route and each.default_route.escalation_chain_id in names
    }
    if not leads:
        return ""
    ((default, _),) = Counter(leads.values()).most_common(1)
    for name, chain in leads.items():
        if chain != default:
            reason = (
                f"Its alerts went to {names[chain]}, others to {names[default]}, which is the "
                "default here: add a route with conditions on severity, environment, service "
                "and labels."
            )
            left_out.append(LeftOut(kind="route", name=name, reason=reason))
    return default


def _leave_out_routes(
    routes: Sequence[_Route], integrations: Sequence[_Integration], left_out: list[LeftOut]
) -> None:
    names = {each.id: each.name for each in integrations}
    for route in routes:
        if not route.is_the_last_route:
            reason = (
                "Routes by regular expressions and templates are not imported: add a route with "
                "conditions on severity, environment, service and labels."
            )
            name = f"{names.get(route.integration_id, '')}: {route.routing_regex}"
            left_out.append(LeftOut(kind="route", name=name[:200], reason=reason))


def _source(found: _Integration, left_out: list[LeftOut]) -> ImportedIntegration | None:
    if found.type in _NO_SOURCES:
        reason = f"The type {found.type} does not receive alerts by HTTP."
        left_out.append(LeftOut(kind="integration", name=found.name, reason=reason))
        return None
    is_metrics = found.type in _ALERTMANAGER
    note = f"It had the type {found.type}: add a mapping if its payload has other fields."
    return ImportedIntegration(
        team=found.team_id or None,
        name=found.name or found.type,
        type=PROMETHEUS if is_metrics else HTTP,
        notes=() if is_metrics else (note,),
    )
