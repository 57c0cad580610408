"""What each action asks for: the one table of scopes and roles.

Actions (`domain/access/actions.py`) and the marks of pages and operations of the API name its rows;
the description at /api/openapi.json and the test of every route, role, scope and visibility read
the same rows.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from functools import partial

from domain.access.roles import Ability, Role
from domain.access.scopes import BY_NAME


class Target(Enum):
    """What the URL of an operation names, and where its role is needed."""

    INSTANCE = "the instance"
    PROJECT = "the project"
    GROUP = "the group"
    #: `<any(projects, groups):kind>/<path:reference>`
    NAMESPACE = "the project or group"


@dataclass(frozen=True)
class Permission:
    """What an operation asks for."""

    #: One of them is enough.
    scopes: tuple[str, ...]
    #: The lowest role in the target; None for everybody who sees it.
    least: Role | None = None
    #: What lets in a member with a lower role to which a custom one adds it.
    ability: Ability | None = None
    _: KW_ONLY
    target: Target = Target.INSTANCE
    #: The lowest role in a group, where a project and a group ask for different ones.
    in_group: Role | None = None
    is_for_administrators: bool = False
    #: Whether it refuses the tokens of applications: what it makes lives on when their access ends.
    is_for_people: bool = False
    #: Whether it takes a request without a token, which sees what is public.
    is_open: bool = False
    #: Whether it also changes archived projects.
    in_archived: bool = False

    def least_in(self, *, is_group: bool) -> Role | None:
        """Return the lowest role in a group or a project."""
        return self.in_group if is_group and self.in_group else self.least

    @property
    def text(self) -> str:
        """What is required, in words."""
        is_any = self.scopes == _ANY
        if is_any and self.is_open:
            return "no token"
        scopes = " or ".join(filter(None, (", ".join(self.scopes[:-1]), self.scopes[-1])))
        token = f"a token with {'any scope' if is_any else f'the scope {scopes}'}"
        if self.is_for_administrators:
            own = ", of no application" if self.is_for_people else ""
            return f"{token} and admin_mode, of an administrator{own}"
        if self.least is not None:
            return f"{token}, and the {self.least.label} role or higher in {self.target.value}"
        return f"{token}, except for what is public" if self.is_open else token


_READ = ("api", "read_api", "read")
_READ_USER = (*_READ, "read_user")
_WRITE = ("api",)
_READ_ALERTS = (*_READ, "read_alerts", "write_alerts")
_WRITE_ALERTS = ("api", "write_alerts")
#: A token of any scope may be used to read or revoke that token itself.
_ANY = tuple(BY_NAME)


_instance = Permission
_administrator = partial(Permission, is_for_administrators=True)
_project = partial(Permission, target=Target.PROJECT)
_group = partial(Permission, target=Target.GROUP)
_namespace = partial(Permission, target=Target.NAMESPACE)
_open = partial(Permission, is_open=True)
_open_project = partial(_project, is_open=True)
_open_group = partial(_group, is_open=True)

#: By the name of the operation: its endpoint below `api_v4`.
PERMISSIONS: Mapping[str, Permission] = {
    "instance.version": _instance(_READ_USER),
    "instance.metadata": _instance(_READ_USER),
    "release_changes.index": _open(_ANY),
    "release_checks.create": _open(_ANY),
    "instance_settings.show": _administrator(_READ),
    "instance_settings.change": _administrator(_WRITE),
    "instance_settings.show_appearance": _administrator(_READ),
    "instance_settings.change_appearance": _administrator(_WRITE),
    # Their own; administrators those of all.
    "api_usage.index": _instance(_READ),
    "users.current": _instance(_READ_USER),
    "users.rename_current": _instance(_WRITE),
    "users.ssh_keys": _instance(_READ_USER),
    "users.index": _instance(_READ_USER),
    "users.show": _instance(_READ_USER),
    "users.projects": _instance(_READ),
    "users.create": _administrator(_WRITE, is_for_people=True),
    "users.change": _administrator(_WRITE, is_for_people=True),
    "users.approve": _administrator(_WRITE),
    "users.reject": _administrator(_WRITE),
    "users.deactivate": _administrator(_WRITE),
    "users.activate": _administrator(_WRITE),
    "users.disconnect": _administrator(_WRITE),
    "users.block": _administrator(_WRITE),
    "users.unblock": _administrator(_WRITE),
    # Their own; administrators those of all.
    "users.export": _instance(_READ),
    "users.delete": _administrator(_WRITE),
    # Their own; administrators those of all.
    "personal_access_tokens.index": _instance(_READ),
    "personal_access_tokens.show_self": _instance(_ANY),
    "personal_access_tokens.show": _instance(_READ),
    "personal_access_tokens.rotate_self": _instance(_WRITE),
    "personal_access_tokens.rotate": _instance(_WRITE),
    "personal_access_tokens.revoke_self": _instance(_ANY),
    "personal_access_tokens.revoke": _instance(_WRITE),
    "personal_access_tokens.create": _administrator(_WRITE),
    "resource_tokens.index": _namespace(_READ, Role.MAINTAINER, in_group=Role.OWNER),
    "resource_tokens.create": _namespace(_WRITE, Role.MAINTAINER, in_group=Role.OWNER),
    "resource_tokens.show": _namespace(_READ, Role.MAINTAINER, in_group=Role.OWNER),
    "resource_tokens.rotate_self": _namespace(_WRITE, Role.GUEST, in_group=Role.GUEST),
    "resource_tokens.rotate": _namespace(_WRITE, Role.MAINTAINER, in_group=Role.OWNER),
    "resource_tokens.revoke": _namespace(
        _WRITE, Role.MAINTAINER, in_group=Role.OWNER, in_archived=True
    ),
    "applications.index": _administrator(_READ),
    "applications.create": _administrator(_WRITE, is_for_people=True),
    "applications.delete": _administrator(_WRITE),
    "applications.renew": _administrator(_WRITE, is_for_people=True),
    # Their own; administrators those of all.
    "applications.people": _instance(_READ),
    "applications.refused_requests": _instance(_READ),
    "alerts.index": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "alerts.download": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "alerts.show": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "alert_timeline.index": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "alerts.payload": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "alerts.change": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "alerts.delete": _project(_WRITE, Role.MAINTAINER),
    "alerts.paging": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "alerts.escalate": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "alerts.page": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "alerts.snooze": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "alerts.wake": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "alerts.renew": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "alerts.change_several": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "alert_activity.notes": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "alert_activity.create_note": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "alert_activity.index": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "alert_activity.occurrences": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "alert_mutes.show": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    # Developers too: whoever is on call silences at night.
    "silences.index": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "silences.show": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "silences.preview": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "silences.create": _namespace(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "silences.edit": _namespace(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "silences.delete": _namespace(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "maintenance_windows.index": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "maintenance_windows.show": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "maintenance_windows.create": _namespace(_WRITE, Role.MAINTAINER),
    "maintenance_windows.edit": _namespace(_WRITE, Role.MAINTAINER),
    "maintenance_windows.delete": _namespace(_WRITE, Role.MAINTAINER),
    "flap_settings.show": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "flap_settings.edit": _project(_WRITE, Role.MAINTAINER),
    "alert_lists.of_group": _group(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "alert_lists.download_of_group": _group(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    # Of the projects where the user is a member who may see alerts.
    "alert_lists.mine": _instance(_READ_ALERTS),
    "alert_lists.download_mine": _instance(_READ_ALERTS),
    "escalation_policies.index": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "escalation_policies.show": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "escalation_policies.create": _namespace(_WRITE, Role.MAINTAINER),
    "escalation_policies.change": _namespace(_WRITE, Role.MAINTAINER),
    "escalation_policies.delete": _namespace(_WRITE, Role.MAINTAINER),
    "alert_routes.index": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "alert_routes.show": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "alert_routes.create": _namespace(_WRITE, Role.MAINTAINER),
    "alert_routes.change": _namespace(_WRITE, Role.MAINTAINER),
    "alert_routes.delete": _namespace(_WRITE, Role.MAINTAINER),
    # It changes nothing.
    "alert_routes.dry_run": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "incidents.index": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "incidents.show": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "incident_timeline.index": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "incident_timeline.surroundings": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "incidents.create": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "incidents.change": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "incidents.page": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "incidents.delete": _project(_WRITE, Role.OWNER),
    "incident_alerts.index": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "incident_alerts.create": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "incident_alerts.delete": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    # Internal ones from Reporter up; others' comments are changed by Maintainers.
    "incident_notes.index": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "incident_notes.show": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "incident_notes.create": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "incident_notes.change": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "incident_notes.delete": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "incident_rules.index": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "incident_rules.show": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "incident_rules.create": _project(_WRITE, Role.MAINTAINER),
    "incident_rules.change": _project(_WRITE, Role.MAINTAINER),
    "incident_rules.delete": _project(_WRITE, Role.MAINTAINER),
    "audit_events.index": _administrator(_READ),
    "audit_events.download": _administrator(_READ),
    "audit_events.show": _administrator(_READ),
    # Who manages the project or group sees all events, other developers their own.
    "namespace_audit_events.index": _namespace(_READ, Role.DEVELOPER, in_group=Role.DEVELOPER),
    "namespace_audit_events.show": _namespace(_READ, Role.MAINTAINER, in_group=Role.OWNER),
    "alert_integrations.index": _project(_READ, Role.DEVELOPER, Ability.ADMIN_INTEGRATIONS),
    "alert_integrations.create": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "alert_integrations.show": _project(_READ, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "alert_integrations.labels": _project(_READ, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "alert_integrations.change": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "alert_integrations.delete": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "alert_integrations.test": _project(_WRITE, Role.DEVELOPER, Ability.ADMIN_INTEGRATIONS),
    # It returns what alerts are sent with: no right to read is enough.
    "alert_integration_keys.credentials": _project(
        _WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS
    ),
    "alert_integration_keys.index": _project(_READ, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "alert_integration_keys.rotate": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "alert_integration_keys.delete": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    # It proposes, and stores nothing.
    "alert_recognition.recognize": _project(_READ, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "alert_mappings.show": _project(_READ, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "alert_mappings.change": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "alert_mappings.delete": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "alert_mappings.preview": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "alert_deliveries.index": _project(_READ, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "alert_deliveries.show": _project(_READ, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "alert_deliveries.body": _project(_READ, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "alert_deliveries.replay": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "alert_deliveries.resend": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "heartbeats.index": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "heartbeats.show": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "heartbeats.pings": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "heartbeats.create": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "heartbeats.change": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "heartbeats.delete": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "heartbeats.pause": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "heartbeats.resume": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    # It returns what pings are sent to: no right to read is enough.
    "heartbeats.url": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "heartbeats.reset_url": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS),
    "on_call_schedules.index": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "on_call_schedules.current": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "on_call_schedules.create": _namespace(_WRITE, Role.MAINTAINER),
    "on_call_schedules.show": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "on_call_schedules.change": _namespace(_WRITE, Role.MAINTAINER),
    "on_call_schedules.delete": _namespace(_WRITE, Role.MAINTAINER),
    "on_call_schedules.current_of_one": _namespace(
        _READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS
    ),
    "on_call_schedules.shifts": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "on_call_overrides.index": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "on_call_overrides.show": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    # Shifts of their own; those of others from Maintainer up.
    "on_call_overrides.create": _namespace(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "on_call_overrides.delete": _namespace(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "on_call_swaps.index": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "on_call_swaps.show": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "on_call_swaps.create": _namespace(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "on_call_swaps.delete": _namespace(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    "on_call_reports.show": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "on_call_reports.download": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "on_call_reports.download_figures": _namespace(
        _READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS
    ),
    "on_call_handover_notes.index": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "on_call_handover_notes.draft": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "on_call_handover_notes.create": _namespace(
        _WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS
    ),
    # Their own; those of others from Maintainer up.
    "on_call_handover_notes.delete": _namespace(
        _WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS
    ),
    "incident_documents.show": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "incident_documents.download": _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "incident_documents.change": _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS),
    # Their own, in all projects.
    "own_on_call.show": _instance(_READ_ALERTS),
    "own_on_call.preview_cover": _instance(_READ_ALERTS),
    "own_on_call.cover": _instance(_WRITE_ALERTS),
    # URLs may hold a secret: no right to read is enough.
    "hooks.index": _project(_WRITE, Role.MAINTAINER),
    "hooks.show": _project(_WRITE, Role.MAINTAINER),
    "webhooks.index": _project(_WRITE, Role.MAINTAINER),
    "webhooks.create": _project(_WRITE, Role.MAINTAINER),
    "webhooks.show": _project(_WRITE, Role.MAINTAINER),
    "webhooks.change": _project(_WRITE, Role.MAINTAINER),
    "webhooks.delete": _project(_WRITE, Role.MAINTAINER),
    "webhooks.rotate_secret": _project(_WRITE, Role.MAINTAINER),
    "webhooks.send_test": _project(_WRITE, Role.MAINTAINER),
    "webhook_deliveries.index": _project(_WRITE, Role.MAINTAINER),
    "webhook_deliveries.show": _project(_WRITE, Role.MAINTAINER),
    "webhook_deliveries.send_again": _project(_WRITE, Role.MAINTAINER),
    "contacts.index": _instance(_WRITE),
    "contacts.create": _instance(_WRITE),
    "contacts.show": _instance(_WRITE),
    "contacts.confirm": _instance(_WRITE),
    "contacts.send_code": _instance(_WRITE),
    "contacts.send_test": _instance(_WRITE),
    "contacts.delete": _instance(_WRITE),
    "contacts.preferences": _instance(_WRITE),
    "contacts.change_preferences": _instance(_WRITE),
    "contact_rules.index": _instance(_WRITE),
    "contact_rules.summary": _instance(_WRITE),
    "contact_rules.create": _instance(_WRITE),
    "contact_rules.show": _instance(_WRITE),
    "contact_rules.delete": _instance(_WRITE),
    "notification_channels.index": _namespace(_WRITE, Role.MAINTAINER),
    "notification_channels.create": _namespace(_WRITE, Role.MAINTAINER),
    "notification_channels.show": _namespace(_WRITE, Role.MAINTAINER),
    "notification_channels.send_test": _namespace(_WRITE, Role.MAINTAINER),
    "notification_channels.delete": _namespace(_WRITE, Role.MAINTAINER),
    "audit_streams.index": _administrator(_WRITE),
    "audit_streams.create": _administrator(_WRITE, is_for_people=True),
    "audit_streams.show": _administrator(_WRITE),
    "audit_streams.change": _administrator(_WRITE, is_for_people=True),
    "audit_streams.delete": _administrator(_WRITE),
    "audit_streams.rotate_secret": _administrator(_WRITE, is_for_people=True),
    "audit_streams.send_test": _administrator(_WRITE),
    "identity_providers.index": _administrator(_WRITE),
    "identity_providers.create": _administrator(_WRITE, is_for_people=True),
    "identity_providers.show": _administrator(_WRITE),
    "identity_providers.change": _administrator(_WRITE, is_for_people=True),
    "identity_providers.delete": _administrator(_WRITE, is_for_people=True),
    "identity_providers.test": _administrator(_WRITE),
    "member_roles.index": _administrator(_READ),
    "member_roles.create": _administrator(_WRITE),
    "member_roles.delete": _administrator(_WRITE),
    # Roles belong to the instance: a group's URL gives nobody more than that of the instance does.
    "group_member_roles.index": _administrator(_READ),
    "group_member_roles.create": _administrator(_WRITE),
    "group_member_roles.delete": _administrator(_WRITE),
    # Whoever calls them learns what became of them. A runner that registers has no user's token,
    # only the `token` of its body.
    "runners.register": _open(_ANY),
    "runners.reset_token": _instance(_ANY),
    "runners.reset_project_token": _instance(_ANY),
    "runners.reset_group_token": _instance(_ANY),
    "job_token_scope.show": _project(_READ, Role.MAINTAINER),
    "job_token_scope.change": _project(_WRITE, Role.MAINTAINER),
    "environments.index": _project(_READ, Role.REPORTER, Ability.READ_ENVIRONMENTS),
    "environments.show": _project(_READ, Role.REPORTER, Ability.READ_ENVIRONMENTS),
    "environments.create": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_ENVIRONMENTS),
    "environments.edit": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_ENVIRONMENTS),
    "environments.stop": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_ENVIRONMENTS),
    "environments.delete": _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_ENVIRONMENTS),
    "deployments.index": _project(_READ, Role.REPORTER, Ability.READ_ENVIRONMENTS),
    "deployments.show": _project(_READ, Role.REPORTER, Ability.READ_ENVIRONMENTS),
    "members.index": _namespace(_READ, Role.GUEST, in_group=Role.GUEST),
    "members.index_all": _namespace(_READ, Role.GUEST, in_group=Role.GUEST),
    "members.show": _namespace(_READ, Role.GUEST, in_group=Role.GUEST),
    "members.show_of_all": _namespace(_READ, Role.GUEST, in_group=Role.GUEST),
    "members.create": _namespace(_WRITE, Role.MAINTAINER, in_group=Role.MAINTAINER),
    "members.change": _namespace(_WRITE, Role.MAINTAINER, in_group=Role.MAINTAINER),
    # Themselves; others from Maintainer up.
    "members.delete": _namespace(_WRITE, Role.GUEST, in_group=Role.GUEST, in_archived=True),
    "invitations.index": _namespace(_READ, Role.MAINTAINER, in_group=Role.MAINTAINER),
    "invitations.create": _namespace(_WRITE, Role.MAINTAINER, in_group=Role.MAINTAINER),
    "invitations.change": _namespace(_WRITE, Role.MAINTAINER, in_group=Role.MAINTAINER),
    "invitations.revoke": _namespace(_WRITE, Role.MAINTAINER, in_group=Role.MAINTAINER),
    "groups.index": _open(_READ),
    "groups.create": _instance(_WRITE),
    "groups.show": _open_group(_READ),
    "groups.change": _group(_WRITE, Role.OWNER),
    "groups.delete": _group(_WRITE, Role.OWNER),
    "groups.transfer": _group(_WRITE, Role.OWNER),
    "groups.transfer_locations": _group(_READ, Role.OWNER),
    "groups.subgroups": _open_group(_READ),
    "groups.descendant_groups": _open_group(_READ),
    "groups.projects": _open_group(_READ),
    "namespaces.index": _instance(_READ),
    "namespaces.show": _open_group(_READ),
    "projects.index": _open(_READ),
    "projects.create": _instance(_WRITE),
    "projects.show": _open_project(_READ),
    "projects.change": _project(_WRITE, Role.MAINTAINER),
    "projects.delete": _project(_WRITE, Role.OWNER, in_archived=True),
    "projects.transfer": _project(_WRITE, Role.OWNER),
    "projects.transfer_locations": _project(_READ, Role.OWNER),
    "projects.share": _project(_WRITE, Role.MAINTAINER),
    "projects.unshare": _project(_WRITE, Role.MAINTAINER, in_archived=True),
    "projects.archive": _project(_WRITE, Role.OWNER, in_archived=True),
    "projects.unarchive": _project(_WRITE, Role.OWNER, in_archived=True),
    "deployments.create": _project(_WRITE, Role.DEVELOPER),
    "deployments.edit": _project(_WRITE, Role.DEVELOPER),
    "deployments.delete": _project(_WRITE, Role.MAINTAINER),
    "commit_statuses.index": _project(_READ, Role.REPORTER),
    "commit_statuses.create": _project(_WRITE, Role.DEVELOPER),
    "releases.index": _open_project(_READ),
    "releases.show": _open_project(_READ),
    "releases.latest": _open_project(_READ),
    "releases.create": _project(_WRITE, Role.DEVELOPER),
    "releases.edit": _project(_WRITE, Role.DEVELOPER),
    "releases.delete": _project(_WRITE, Role.DEVELOPER),
    "releases.list_links": _open_project(_READ),
    "releases.show_link": _open_project(_READ),
    "releases.create_link": _project(_WRITE, Role.DEVELOPER),
    "releases.edit_link": _project(_WRITE, Role.DEVELOPER),
    "releases.delete_link": _project(_WRITE, Role.DEVELOPER),
    "registry_repositories.index": _project(_READ, Role.REPORTER),
    "registry_repositories.index_of_group": _group(_READ, Role.REPORTER),
    "registry_repositories.show": _instance(_READ),
    "registry_repositories.delete": _project(_WRITE, Role.MAINTAINER),
    "registry_repositories.tags": _project(_READ, Role.REPORTER),
    "registry_repositories.tag": _project(_READ, Role.REPORTER),
    "registry_repositories.delete_tag": _project(_WRITE, Role.MAINTAINER),
    "registry_repositories.delete_tags": _project(_WRITE, Role.MAINTAINER),
}

#: What pages and commands alone do, by the name of the action: the API has no such operation.
BESIDE_THE_API: Mapping[str, Permission] = {
    # Of who is signed in.
    "own_account.change": _instance(_WRITE),
    "authorized_applications.revoke": _instance(_WRITE),
    "signing_in.prove": _open(_ANY),
    "sign_up.ask": _open(_ANY),
    "sign_up.finish": _open(_ANY),
    "signing_in.sign_in": _open(_ANY),
    "signing_in.sign_out": _open(_ANY),
    "keys.index": _administrator(_READ),
    "keys.rotate": _administrator(_WRITE, is_for_people=True),
    "personal_access_tokens.create_own": _instance(_WRITE),
    "personal_access_tokens.renew": _instance(_WRITE),
    "resource_tokens.renew": _namespace(_WRITE, Role.MAINTAINER, in_group=Role.OWNER),
    # Their own; administrators those of all.
    "applications.show": _instance(_READ),
    "applications.register": _instance(_WRITE),
    "applications.edit": _instance(_WRITE),
    "applications.rotate": _instance(_WRITE),
    "applications.end_secret": _instance(_WRITE),
    "applications.remove": _instance(_WRITE),
    # The invited person, by the link of the message.
    "invitations.accept": _instance(_WRITE),
    "invitations.join": _open(_ANY),
    "paging_queue.try_now": _administrator(_WRITE),
    "paging_queue.send_again": _administrator(_WRITE),
    "registry_keys.rotate": _administrator(_WRITE, is_for_people=True),
    "on_call_rotations.put": _namespace(_WRITE, Role.MAINTAINER),
    # An address of one's own, which shows what its owner may see.
    "on_call_calendars.renew": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "on_call_calendars.end": _namespace(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    "former_paths.index": _namespace(_READ, Role.MAINTAINER, in_group=Role.OWNER),
    "former_paths.release": _namespace(_WRITE, Role.OWNER, in_group=Role.OWNER),
}


def permission_of(name: str) -> Permission:
    """Return what the action of this name asks for."""
    return PERMISSIONS[name] if name in PERMISSIONS else BESIDE_THE_API[name]
