"""Reads what opsgenie-configuration-backup wrote: a folder for each kind, a file for each entity.

https://github.com/opsgenie/opsgenie-configuration-backup
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from domain.alerts.formats.http_endpoint import HTTP
from domain.alerts.formats.prometheus import PROMETHEUS
from domain.errors import InvalidError
from domain.importing.entities import Entity, EntityReader, Text, items_of
from domain.importing.files import Document
from domain.importing.opsgenie_escalations import Escalation, policy_of
from domain.importing.opsgenie_schedules import Reference, ScheduleFile, schedule_of
from domain.importing.plan import ImportedIntegration, ImportedUser, ImportPlan, LeftOut

#: By the folder of the backup.
_KINDS = ("users", "teams", "schedules", "escalations", "integrations")
_NOT_TAKEN = {
    "policies": "Alert policies have no counterpart: use routes, silences and incident rules.",
    "policiesV2": "Alert policies have no counterpart: use routes, silences and incident rules.",
    "forwardings": "Forwarding rules are not imported: add an override to the schedule.",
    "maintenance": "Maintenance is not imported: create a maintenance window.",
    "heartbeats": "Heartbeats are not imported: create them, since their URLs change anyway.",
    "customUserRoles": "Roles of users are not imported.",
    "notifications": "Notification rules are not imported: each user adds contacts.",
    "groups": "Groups are not imported.",
}
#: Integrations that send in Alertmanager's format.
_ALERTMANAGER = frozenset({"Prometheus", "GrafanaV2"})
#: Types that do not receive alerts by HTTP.
_NO_SOURCES = frozenset(
    {
        *("Email", "Slack", "SlackApp", "Jira", "JiraServiceDesk", "Webhook", "Zendesk", "Marid"),
        *("MSTeams", "MSTeamsV2", "Mattermost", "ServiceNowV2", "ServiceNowV3", "Oec", "Incoming"),
        *("HipChat", "HipChatV2", "HipChatAddOn", "Flowdock", "FlowdockV2", "Statuspage"),
    }
)


class _User(Entity):
    id: Text
    username: Text
    fullName: Text = ""
    blocked: bool = False


class _UserFile(Entity):
    user: _User


class _Member(Entity):
    user: Reference


class _Team(Entity):
    id: Text
    name: Text
    members: tuple[_Member, ...] | None = None


class _Notify(Entity):
    type: Text = ""
    id: Text = ""
    name: Text = ""


class _RoutingRule(Entity):
    name: Text = ""
    isDefault: bool | None = False
    notify: _Notify | None = None


class _TeamFile(Entity):
    team: _Team
    teamRoutingRules: tuple[_RoutingRule, ...] | None = None


class _Integration(Entity):
    name: Text
    type: Text
    enabled: bool | None = True
    ownerTeam: Reference | None = None


class _IntegrationFile(Entity):
    integration: _Integration


def read_opsgenie(documents: Iterable[Document], *, now: datetime) -> ImportPlan:
    """Return what a backup comes to; raise InvalidError if it is none."""
    given, left_out = _by_kind(documents)
    read = EntityReader(left_out)
    teams = read.all(_TeamFile, given["teams"], "team")
    schedules = read.all(ScheduleFile, given["schedules"], "schedule")
    escalations = read.all(Escalation, given["escalations"], "policy")
    integrations = read.all(_IntegrationFile, given["integrations"], "integration")
    members = {
        each.team.id: tuple(one.user.id for one in each.team.members or () if one.user.id)
        for each in teams
    }
    defaults = _defaults(teams, left_out)
    sources = [each for one in integrations if (each := _source(one.integration, left_out))]
    return ImportPlan(
        teams={each.team.id: each.team.name for each in teams},
        users=_users(read.all(_UserFile, given["users"], "user"), left_out),
        schedules=[schedule_of(each, left_out, now=now) for each in schedules],
        policies=[policy_of(each, members, defaults, left_out) for each in escalations],
        integrations=sources,
        left_out=left_out,
    )


def _by_kind(
    documents: Iterable[Document],
) -> tuple[Mapping[str, list[object]], list[LeftOut]]:
    given: dict[str, list[object]] = {kind: [] for kind in _KINDS}
    others: dict[str, list[str]] = {}
    for document in documents:
        for kind, value in _parts(document):
            if kind in given:
                given[kind].append(value)
            elif kind in _NOT_TAKEN:
                others.setdefault(kind, []).append(document.stem)
    if not any(given.values()):
        message = (
            "This is not a backup of Opsgenie: it has none of the folders "
            f"{', '.join(_KINDS)} with JSON files."
        )
        raise InvalidError(message)
    return given, [
        LeftOut(kind=kind, name=name[:100], reason=_NOT_TAKEN[kind])
        for kind, names in sorted(others.items())
        for name in names
    ]


def _parts(document: Document) -> Iterable[tuple[str, object]]:
    """Yield entities with their kinds: of a file of its folder, or of an object with all kinds."""
    if document.folder in _KINDS or document.folder in _NOT_TAKEN:
        yield document.folder, document.value
    elif isinstance(document.value, Mapping):
        for kind, value in document.value.items():
            for each in items_of(value):
                yield kind, each


def _users(found: Iterable[_UserFile], left_out: list[LeftOut]) -> list[ImportedUser]:
    users = []
    for each in found:
        if each.user.blocked:
            name, reason = each.user.username, "The account is blocked."
            left_out.append(LeftOut(kind="user", name=name, reason=reason))
        else:
            users.append(_user_of(each.user))
    return users


def _user_of(user: _User) -> ImportedUser:
    name = user.username.partition("@")[0]
    email = user.username if "@" in user.username else ""
    return ImportedUser(key=user.id, username=name, email=email, name=user.fullName)


def _defaults(teams: Sequence[_TeamFile], left_out: list[LeftOut]) -> frozenset[str]:
    """Return the keys of escalations that alerts of a team go to without a rule."""
    found = set()
    for team in teams:
        for rule in team.teamRoutingRules or ():
            notify = rule.notify
            if rule.isDefault and notify and notify.type == "escalation":
                found.add(notify.id)
                continue
            reason = (
                "Routing rules are not imported: add a route with conditions on severity, "
                "environment, service and labels."
            )
            if rule.isDefault:
                reason = "Its alerts go to no escalation: add a policy, and make it the default."
            name = f"{team.team.name}: {rule.name or 'rule'}"
            left_out.append(LeftOut(kind="route", name=name[:200], reason=reason))
    return frozenset(found)


def _source(found: _Integration, left_out: list[LeftOut]) -> ImportedIntegration | None:
    if found.type in _NO_SOURCES:
        reason = (
            f"The type {found.type} does not receive alerts by HTTP. What it sends elsewhere can "
            "be a channel or a webhook of the project."
        )
        left_out.append(LeftOut(kind="integration", name=found.name, reason=reason))
        return None
    is_metrics = found.type in _ALERTMANAGER
    details: dict[str, Any] = {} if is_metrics else {"notes": (_note(found.type),)}
    return ImportedIntegration(
        team=found.ownerTeam.id if found.ownerTeam else None,
        name=found.name or found.type,
        type=PROMETHEUS if is_metrics else HTTP,
        is_active=found.enabled is not False,
        **details,
    )


def _note(kind: str) -> str:
    return f"It had the type {kind or 'API'}: add a mapping if its payload has other fields."
