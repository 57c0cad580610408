"""The permission table: the scopes and roles that each action requires.

Actions (`domain/access/actions.py`), and the decorators of pages and API operations, refer to rows
of the table by name. The API description at /api/openapi.json, and the tests of all routes, roles,
scopes and visibility levels, use the same rows.
"""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum
from functools import partial

from domain.access.roles import MINIMUM_ROLES, Ability, Role
from domain.access.scopes import SCOPES_BY_NAME


class PermissionTarget(Enum):
    """The kind of object in which the actor needs the required role.

    The object is identified by the URL of the operation.
    """

    INSTANCE = "the instance"
    PROJECT = "the project"
    GROUP = "the group"
    #: A project or group, depending on the first part of the URL: `projects/` or `groups/`.
    NAMESPACE = "the project or group"


@dataclass(frozen=True)
class Permission:
    """The scopes, the role and the other conditions that an operation requires."""

    #: Accepted scopes. The token needs at least one of them.
    scopes: tuple[str, ...]
    #: Minimum role in the target; None if every user who can see the target may use the operation.
    least: Role | None = None
    #: Ability of a custom role that permits the operation with a lower role.
    ability: Ability | None = None
    _: KW_ONLY
    target: PermissionTarget = PermissionTarget.INSTANCE
    #: Minimum role in a group, if it differs from the minimum role in a project.
    in_group: Role | None = None
    #: Minimum role in private projects, if the operation requires no role in other projects.
    in_private: Role | None = None
    is_for_administrators: bool = False
    #: True if tokens of applications are rejected, since the result would outlive their access.
    is_for_people: bool = False
    #: True if requests without a token are allowed, for public data.
    is_open: bool = False
    #: True if the operation is also allowed in archived projects.
    in_archived: bool = False

    def get_minimum_role(self, *, is_group: bool) -> Role | None:
        """Return the minimum role in a group or a project, or None if no role is required."""
        return self.in_group if is_group and self.in_group else self.least

    @property
    def description(self) -> str:
        """The requirements as readable text."""
        is_any = self.scopes == _ANY_SCOPE
        if is_any and self.is_open:
            return "no token"
        scopes = " or ".join(filter(None, (", ".join(self.scopes[:-1]), self.scopes[-1])))
        token = f"a token with {'any scope' if is_any else f'the {scopes} scope'}"
        if self.is_for_administrators:
            own = ". Tokens of applications are rejected" if self.is_for_people else ""
            return f"an administrator's {token.removeprefix('a ')} and the admin_mode scope{own}"
        if self.least is not None:
            return f"{token}, and the {self.least.label} role or higher in {self.target.value}"
        if self.in_private is not None:
            token = f"{token}, and the {self.in_private.label} role or higher in private projects"
        return f"{token}, except for public data" if self.is_open else token


_READ = ("api", "read_api", "read")
_READ_USER = (*_READ, "read_user")
_WRITE = ("api",)
_READ_ALERTS = (*_READ, "read_alerts", "write_alerts")
_WRITE_ALERTS = ("api", "write_alerts")
#: All scopes, for operations that every token may use, such as revoking itself.
_ANY_SCOPE = tuple(SCOPES_BY_NAME)


_instance = Permission
_administrator = partial(Permission, is_for_administrators=True)
_project = partial(Permission, target=PermissionTarget.PROJECT)
_group = partial(Permission, target=PermissionTarget.GROUP)
_namespace = partial(Permission, target=PermissionTarget.NAMESPACE)
_open = partial(Permission, is_open=True)
_open_project = partial(_project, is_open=True)
_open_group = partial(_group, is_open=True)

_VIEW_ALERTS = _project(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS)
_MANAGE_ALERTS = _project(_WRITE_ALERTS, Role.DEVELOPER, Ability.ADMIN_ALERTS)
#: Permissions for alerts in a project or a group.
_VIEW_NAMESPACE_ALERTS = replace(_VIEW_ALERTS, target=PermissionTarget.NAMESPACE)
_MANAGE_NAMESPACE_ALERTS = replace(_MANAGE_ALERTS, target=PermissionTarget.NAMESPACE)
_VIEW_INTEGRATIONS = _project(_READ, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS)
_MANAGE_INTEGRATIONS = _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_INTEGRATIONS)
_MAINTAIN_PROJECT = _project(_WRITE, Role.MAINTAINER)
_MAINTAIN_NAMESPACE = _namespace(_WRITE, Role.MAINTAINER)
_MANAGE_MEMBERS = _namespace(_WRITE, Role.MAINTAINER, in_group=Role.MAINTAINER)
_MANAGE_TOKENS = _namespace(_WRITE, Role.MAINTAINER, in_group=Role.OWNER)
_ADMINISTER = _administrator(_WRITE)
_ADMINISTER_IN_PERSON = _administrator(_WRITE, is_for_people=True)
_VIEW_ENVIRONMENTS = _project(_READ, Role.REPORTER, Ability.READ_ENVIRONMENTS)


def _build_permission_rows(
    room: str, verbs: str, permission: Permission
) -> Mapping[str, Permission]:
    """Return rows with the same permission for several actions on a resource."""
    return dict.fromkeys((f"{room}.{verb}" for verb in verbs.split()), permission)


#: Permissions by operation name. The name is also the endpoint of the operation in the `api_v4`
#: blueprint.
PERMISSIONS: Mapping[str, Permission] = {
    **_build_permission_rows("instance", "version metadata", _instance(_READ_USER)),
    "release_changes.index": _open(_ANY_SCOPE),
    "release_checks.create": _open(_ANY_SCOPE),
    **_build_permission_rows("instance_settings", "show show_appearance", _administrator(_READ)),
    **_build_permission_rows("instance_settings", "change change_appearance", _ADMINISTER),
    # Users see their own usage. Administrators see the usage of all users.
    "api_usage.index": _instance(_READ),
    **_build_permission_rows("users", "current ssh_keys index show", _instance(_READ_USER)),
    "users.rename_current": _instance(_WRITE),
    "users.projects": _instance(_READ),
    **_build_permission_rows("users", "create change", _ADMINISTER_IN_PERSON),
    **_build_permission_rows(
        "users", "approve reject deactivate activate disconnect block unblock", _ADMINISTER
    ),
    # Users export their own data. Administrators can export the data of any user.
    "users.export": _instance(_READ),
    "users.delete": _ADMINISTER,
    # Users manage their own tokens. Administrators can manage the tokens of all users.
    **_build_permission_rows("personal_access_tokens", "index show", _instance(_READ)),
    **_build_permission_rows(
        "personal_access_tokens", "show_self revoke_self", _instance(_ANY_SCOPE)
    ),
    **_build_permission_rows(
        "personal_access_tokens", "rotate_self rotate revoke", _instance(_WRITE)
    ),
    "personal_access_tokens.create": _ADMINISTER,
    **_build_permission_rows(
        "resource_tokens", "index show", _namespace(_READ, Role.MAINTAINER, in_group=Role.OWNER)
    ),
    **_build_permission_rows("resource_tokens", "create rotate", _MANAGE_TOKENS),
    "resource_tokens.rotate_self": _namespace(_WRITE, Role.GUEST, in_group=Role.GUEST),
    "resource_tokens.revoke": _namespace(
        _WRITE, Role.MAINTAINER, in_group=Role.OWNER, in_archived=True
    ),
    "applications.index": _administrator(_READ),
    **_build_permission_rows("applications", "create renew", _ADMINISTER_IN_PERSON),
    "applications.delete": _ADMINISTER,
    # Owners can see their own applications. Administrators can see all applications.
    **_build_permission_rows("applications", "people refused_requests", _instance(_READ)),
    **_build_permission_rows("alerts", "index download show payload paging", _VIEW_ALERTS),
    "alert_timeline.index": _VIEW_ALERTS,
    **_build_permission_rows(
        "alerts", "change escalate page snooze wake renew change_several", _MANAGE_ALERTS
    ),
    "alerts.delete": _MAINTAIN_PROJECT,
    **_build_permission_rows("alert_activity", "notes index occurrences", _VIEW_ALERTS),
    "alert_activity.create_note": _MANAGE_ALERTS,
    "alert_mutes.show": _VIEW_ALERTS,
    # Developers may create silences, since on-call users need them at any time.
    **_build_permission_rows("silences", "index show preview", _VIEW_NAMESPACE_ALERTS),
    **_build_permission_rows("silences", "create edit delete", _MANAGE_NAMESPACE_ALERTS),
    **_build_permission_rows("maintenance_windows", "index show", _VIEW_NAMESPACE_ALERTS),
    **_build_permission_rows("maintenance_windows", "create edit delete", _MAINTAIN_NAMESPACE),
    "flap_settings.show": _VIEW_ALERTS,
    "flap_settings.edit": _MAINTAIN_PROJECT,
    **_build_permission_rows(
        "alert_lists",
        "of_group download_of_group",
        _group(_READ_ALERTS, Role.DEVELOPER, Ability.READ_ALERTS),
    ),
    # The lists contain alerts from all projects in which the user may see alerts as a member.
    **_build_permission_rows("alert_lists", "mine download_mine", _instance(_READ_ALERTS)),
    **_build_permission_rows("escalation_policies", "index show", _VIEW_NAMESPACE_ALERTS),
    **_build_permission_rows("escalation_policies", "create change delete", _MAINTAIN_NAMESPACE),
    **_build_permission_rows("alert_routes", "index show", _VIEW_NAMESPACE_ALERTS),
    **_build_permission_rows("alert_routes", "create change delete", _MAINTAIN_NAMESPACE),
    # A dry run makes no changes.
    "alert_routes.dry_run": _VIEW_NAMESPACE_ALERTS,
    **_build_permission_rows("incidents", "index show", _VIEW_ALERTS),
    **_build_permission_rows("incident_timeline", "index surroundings", _VIEW_ALERTS),
    **_build_permission_rows("incidents", "create change page", _MANAGE_ALERTS),
    "incidents.delete": _project(_WRITE, Role.OWNER),
    "incident_alerts.index": _VIEW_ALERTS,
    **_build_permission_rows("incident_alerts", "create delete", _MANAGE_ALERTS),
    # Members with at least the Reporter role see internal comments. Only Maintainers can change
    # comments of other users.
    **_build_permission_rows("incident_notes", "index show", _VIEW_ALERTS),
    **_build_permission_rows("incident_notes", "create change delete", _MANAGE_ALERTS),
    **_build_permission_rows("incident_rules", "index show", _VIEW_ALERTS),
    **_build_permission_rows("incident_rules", "create change delete", _MAINTAIN_PROJECT),
    **_build_permission_rows("audit_events", "index download show", _administrator(_READ)),
    # Members who manage the project or group see all events. Other developers see their own events.
    "namespace_audit_events.index": _namespace(_READ, Role.DEVELOPER, in_group=Role.DEVELOPER),
    "namespace_audit_events.show": _namespace(_READ, Role.MAINTAINER, in_group=Role.OWNER),
    "alert_integrations.index": _project(_READ, Role.DEVELOPER, Ability.ADMIN_INTEGRATIONS),
    **_build_permission_rows("alert_integrations", "create change delete", _MANAGE_INTEGRATIONS),
    **_build_permission_rows("alert_integrations", "show labels warnings", _VIEW_INTEGRATIONS),
    "alert_integrations.test": _project(_WRITE, Role.DEVELOPER, Ability.ADMIN_INTEGRATIONS),
    # The response contains the credentials of senders, so a read scope is not enough.
    "alert_integration_keys.credentials": _MANAGE_INTEGRATIONS,
    "alert_integration_keys.index": _VIEW_INTEGRATIONS,
    **_build_permission_rows("alert_integration_keys", "rotate delete", _MANAGE_INTEGRATIONS),
    # Recognition only returns a proposal, and stores nothing.
    "alert_recognition.recognize": _VIEW_INTEGRATIONS,
    "alert_mappings.show": _VIEW_INTEGRATIONS,
    **_build_permission_rows("alert_mappings", "change delete preview", _MANAGE_INTEGRATIONS),
    **_build_permission_rows("alert_deliveries", "index show body recognize", _VIEW_INTEGRATIONS),
    **_build_permission_rows("alert_deliveries", "replay resend", _MANAGE_INTEGRATIONS),
    **_build_permission_rows("heartbeats", "index show pings", _VIEW_ALERTS),
    **_build_permission_rows(
        "heartbeats", "create change delete pause resume", _MANAGE_INTEGRATIONS
    ),
    # The response contains the URL for pings, so a read scope is not enough.
    **_build_permission_rows("heartbeats", "url reset_url", _MANAGE_INTEGRATIONS),
    **_build_permission_rows(
        "on_call_schedules",
        "index current show current_of_one shifts balance",
        _VIEW_NAMESPACE_ALERTS,
    ),
    **_build_permission_rows("on_call_schedules", "create change delete", _MAINTAIN_NAMESPACE),
    **_build_permission_rows("on_call_overrides", "index show", _VIEW_NAMESPACE_ALERTS),
    # Members manage overrides of their own shifts and request swaps. Maintainers change all shifts.
    **_build_permission_rows("on_call_overrides", "create delete", _MANAGE_NAMESPACE_ALERTS),
    **_build_permission_rows("on_call_swaps", "index show", _VIEW_NAMESPACE_ALERTS),
    "on_call_swaps.create": _namespace(_WRITE_ALERTS, Role.MAINTAINER),
    "on_call_swaps.delete": _MANAGE_NAMESPACE_ALERTS,
    **_build_permission_rows("on_call_swap_requests", "index show", _VIEW_NAMESPACE_ALERTS),
    **_build_permission_rows("on_call_swap_requests", "create answer", _MANAGE_NAMESPACE_ALERTS),
    **_build_permission_rows(
        "on_call_reports", "show download download_figures", _VIEW_NAMESPACE_ALERTS
    ),
    **_build_permission_rows("on_call_handover_notes", "index draft", _VIEW_NAMESPACE_ALERTS),
    "on_call_handover_notes.create": _MANAGE_NAMESPACE_ALERTS,
    # Members can delete their own notes. Maintainers can delete all notes.
    "on_call_handover_notes.delete": _MANAGE_NAMESPACE_ALERTS,
    **_build_permission_rows("incident_documents", "show download", _VIEW_ALERTS),
    "incident_documents.change": _MANAGE_ALERTS,
    # Users see and cover their own shifts in all projects.
    **_build_permission_rows(
        "own_on_call", "show preview_cover show_calendar", _instance(_READ_ALERTS)
    ),
    "own_on_call.cover": _instance(_WRITE_ALERTS),
    "own_absences.index": _instance(_READ_ALERTS),
    **_build_permission_rows("own_absences", "create delete", _instance(_WRITE_ALERTS)),
    "own_absence_calendars.index": _instance(_READ_ALERTS),
    # The URL is read after the token has expired, so a scope for alerts is not enough.
    **_build_permission_rows("own_absence_calendars", "create refresh delete", _instance(_WRITE)),
    "on_call_conflicts.index": _VIEW_NAMESPACE_ALERTS,
    "on_call_holidays.index": _VIEW_NAMESPACE_ALERTS,
    "on_call_holiday_calendars.index": _VIEW_NAMESPACE_ALERTS,
    **_build_permission_rows(
        "on_call_holiday_calendars",
        "create refresh delete",
        _namespace(_WRITE, Role.MAINTAINER),
    ),
    # The calendar URL outlives the token that creates it, so a scope for alerts is not enough.
    **_build_permission_rows("own_on_call", "renew_calendar end_calendar", _instance(_WRITE)),
    # URLs may contain a secret, so a read scope is not enough.
    **_build_permission_rows("hooks", "index show", _MAINTAIN_PROJECT),
    **_build_permission_rows(
        "webhooks", "index create show change delete rotate_secret send_test", _MAINTAIN_PROJECT
    ),
    **_build_permission_rows("webhook_deliveries", "index show send_again", _MAINTAIN_PROJECT),
    **_build_permission_rows(
        "contacts",
        "index create show change confirm send_code send_test delete preferences "
        "change_preferences",
        _instance(_WRITE),
    ),
    **_build_permission_rows(
        "contact_rules", "index summary create show change delete", _instance(_WRITE)
    ),
    **_build_permission_rows(
        "notification_channels", "index create show change send_test delete", _MAINTAIN_NAMESPACE
    ),
    **_build_permission_rows("audit_streams", "index show delete send_test", _ADMINISTER),
    **_build_permission_rows("audit_streams", "create change rotate_secret", _ADMINISTER_IN_PERSON),
    **_build_permission_rows("identity_providers", "index show test", _ADMINISTER),
    **_build_permission_rows("identity_providers", "create change delete", _ADMINISTER_IN_PERSON),
    "member_roles.index": _administrator(_READ),
    **_build_permission_rows("member_roles", "create delete", _ADMINISTER),
    "group_member_roles.index": _group(_READ, Role.OWNER),
    **_build_permission_rows("group_member_roles", "create delete", _group(_WRITE, Role.OWNER)),
    # The responses only explain that Gatebell no longer supports runners. A runner that registers
    # presents only the `token` in the request body, and no user's access token.
    "runners.register": _open(_ANY_SCOPE),
    **_build_permission_rows(
        "runners", "reset_token reset_project_token reset_group_token", _instance(_ANY_SCOPE)
    ),
    "job_token_scope.show": _project(_READ, Role.MAINTAINER),
    "job_token_scope.change": _MAINTAIN_PROJECT,
    **_build_permission_rows("environments", "index show", _VIEW_ENVIRONMENTS),
    **_build_permission_rows(
        "environments",
        "create edit stop delete",
        _project(_WRITE, Role.MAINTAINER, Ability.ADMIN_ENVIRONMENTS),
    ),
    **_build_permission_rows("deployments", "index show", _VIEW_ENVIRONMENTS),
    **_build_permission_rows(
        "members",
        "index index_all show show_of_all",
        _namespace(_READ, Role.GUEST, in_group=Role.GUEST),
    ),
    **_build_permission_rows("members", "create change", _MANAGE_MEMBERS),
    # Members remove themselves; Maintainers also remove others.
    "members.delete": _namespace(_WRITE, Role.GUEST, in_group=Role.GUEST, in_archived=True),
    "invitations.index": _namespace(_READ, Role.MAINTAINER, in_group=Role.MAINTAINER),
    **_build_permission_rows("invitations", "create change revoke", _MANAGE_MEMBERS),
    "groups.index": _open(_READ),
    "groups.create": _instance(_WRITE),
    **_build_permission_rows(
        "groups", "show subgroups descendant_groups projects", _open_group(_READ)
    ),
    **_build_permission_rows("groups", "change delete transfer", _group(_WRITE, Role.OWNER)),
    "groups.transfer_locations": _group(_READ, Role.OWNER),
    "namespaces.index": _instance(_READ),
    "namespaces.show": _open_group(_READ),
    "projects.index": _open(_READ),
    "projects.create": _instance(_WRITE),
    "projects.show": _open_project(_READ),
    **_build_permission_rows("projects", "change share", _MAINTAIN_PROJECT),
    **_build_permission_rows(
        "projects", "delete archive unarchive", _project(_WRITE, Role.OWNER, in_archived=True)
    ),
    "projects.transfer": _project(_WRITE, Role.OWNER),
    "projects.transfer_locations": _project(_READ, Role.OWNER),
    "projects.unshare": _project(_WRITE, Role.MAINTAINER, in_archived=True),
    **_build_permission_rows("deployments", "create edit", _project(_WRITE, Role.DEVELOPER)),
    "deployments.delete": _MAINTAIN_PROJECT,
    "commits.show": _open_project(
        _READ, None, Ability.READ_CODE, in_private=MINIMUM_ROLES[Ability.READ_CODE]
    ),
    "commit_statuses.index": _project(_READ, Role.REPORTER),
    "commit_statuses.create": _project(_WRITE, Role.DEVELOPER),
    **_build_permission_rows(
        "releases", "index show latest list_links show_link", _open_project(_READ)
    ),
    **_build_permission_rows(
        "releases",
        "create edit delete create_link edit_link delete_link",
        _project(_WRITE, Role.DEVELOPER),
    ),
    **_build_permission_rows(
        "registry_repositories", "index tags tag", _project(_READ, Role.REPORTER)
    ),
    "registry_repositories.index_of_group": _group(_READ, Role.REPORTER),
    "registry_repositories.show": _instance(_READ),
    **_build_permission_rows(
        "registry_repositories", "delete delete_tag delete_tags", _MAINTAIN_PROJECT
    ),
}

#: Permissions of actions that are available on pages and as commands, but not in the API.
NON_API_PERMISSIONS: Mapping[str, Permission] = {
    # All users may change their own accounts, so no role is required.
    "own_account.change": _instance(_WRITE),
    "authorized_applications.revoke": _instance(_WRITE),
    **_build_permission_rows("signing_in", "prove sign_in sign_out", _open(_ANY_SCOPE)),
    **_build_permission_rows("sign_up", "ask finish", _open(_ANY_SCOPE)),
    "keys.index": _administrator(_READ),
    "keys.rotate": _ADMINISTER_IN_PERSON,
    **_build_permission_rows("personal_access_tokens", "create_own renew", _instance(_WRITE)),
    "resource_tokens.renew": _MANAGE_TOKENS,
    # Owners manage their own applications. Administrators can manage all applications.
    "applications.show": _instance(_READ),
    **_build_permission_rows(
        "applications", "register edit rotate end_secret end_removed remove", _instance(_WRITE)
    ),
    # The invited user accepts the invitation with the link in the message.
    "invitations.accept": _instance(_WRITE),
    "invitations.join": _open(_ANY_SCOPE),
    "paging_queue.send_again": _ADMINISTER,
    **_build_permission_rows("queues", "index failing", _administrator(_READ)),
    **_build_permission_rows("queues", "retry give_up", _ADMINISTER),
    "registry_keys.rotate": _ADMINISTER_IN_PERSON,
    "on_call_rotations.put": _MAINTAIN_NAMESPACE,
    # Users manage the URL of their own calendar, which contains only shifts that they may see.
    **_build_permission_rows("on_call_calendars", "renew end", _VIEW_NAMESPACE_ALERTS),
    "former_paths.index": _namespace(_READ, Role.MAINTAINER, in_group=Role.OWNER),
    "former_paths.release": _namespace(_WRITE, Role.OWNER, in_group=Role.OWNER),
}


def get_permission(name: str) -> Permission:
    """Return the permission of the action with this name."""
    return PERMISSIONS[name] if name in PERMISSIONS else NON_API_PERMISSIONS[name]
