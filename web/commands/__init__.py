"""Command line for operators, such as `gatebell users create …`.

Each command prints one JSON object, or a table with `--output table`. `releases check` prints
formats that CI systems can read.
"""

from flask import Flask

from web.commands.program import LazyCommandGroup

#: Location and short help of each command. The location is in this package, or names the actions
#: from which the command is generated. Commands are imported only when they are used, so that web
#: processes, help and completion start fast.
_COMMANDS = {
    "absences": ("my_on_call:absences", "Manage the absences of users."),
    "alert-routes": (
        "domain.paging.escalations.actions",
        "Manage alert routes, which select an escalation policy for alerts.",
    ),
    "alerts": (
        (
            "domain.alerts.handling.actions,domain.paging.escalations.manual_actions,"
            "domain.incidents.timelines.actions:alert_timeline"
        ),
        "Manage alerts.",
    ),
    "applications": ("applications:applications", "Manage OAuth applications."),
    "audit": ("audit:audit", "Verify the audit log."),
    "audit-streams": (
        "domain.delivery.audit_streams.actions",
        "Manage audit streams, which send audit events to other services.",
    ),
    "backup": ("backups.commands:backup", "Create a backup while the service is running."),
    "channels": (
        "domain.paging.contacts.actions:notification_channels",
        "Manage the notification channels of projects and groups.",
    ),
    "completion": ("program:print_completion_script", "Print the completion script for a shell."),
    "contact-rules": ("contacts:contact_rules", "Manage the notification rules of users."),
    "contacts": ("contacts:contacts", "Manage the contacts at which users are paged."),
    "deliveries": (
        "integrations:deliveries",
        "Show deliveries to alert integrations, or process them again.",
    ),
    "doctor": ("doctor.command:doctor", "Check the installation for problems."),
    "escalations": (
        "domain.paging.escalations.actions:escalation_policies",
        "Manage escalation policies.",
    ),
    "flap-settings": (
        "domain.paging.silences.actions",
        "Show or change the settings of flap detection.",
    ),
    "groups": ("namespaces:groups", "Manage groups."),
    "handoff-notes": (
        "domain.reports.actions:on_call_handover_notes",
        "Manage the handoff notes of on-call schedules.",
    ),
    "heartbeats": (
        "domain.heartbeats.actions",
        "Manage heartbeats, which open an alert if a job does not run.",
    ),
    "identity-providers": (
        "domain.accounts.identity_providers.actions",
        "Manage identity providers for signing in with OpenID Connect.",
    ),
    "import": (
        "imports.commands:imports",
        "Import users, schedules, policies and integrations from other tools.",
    ),
    "incident-documents": (
        "domain.reports.incident_documents",
        "Show or change post-incident documents.",
    ),
    "incident-rules": (
        "domain.incidents.rule_actions",
        "Manage incident rules, which open incidents for alerts.",
    ),
    "incidents": (
        "domain.incidents.actions,domain.incidents.timelines.actions:incident_timeline",
        "Manage incidents.",
    ),
    "integrations": ("integrations:integrations", "Manage alert integrations."),
    "keys": ("domain.oauth.openid.signing_keys", "List or rotate the keys that sign ID tokens."),
    "mail": ("mail:mail", "Test email, and show the state of the email queue."),
    "maintenance-windows": (
        "domain.paging.maintenance_windows.actions",
        "Manage maintenance windows, during which alerts do not page anyone.",
    ),
    "member-roles": ("member_roles:member_roles", "Manage custom member roles."),
    "members": ("domain.projects.member_actions", "Manage the members of groups and projects."),
    "on-call": (
        "my_on_call:on_call",
        "Show the on-call shifts of a user, or let another user cover them.",
    ),
    "projects": ("namespaces:projects", "Manage projects."),
    "prune": ("prune:prune_command", "Remove expired and deleted data immediately."),
    "queues": (
        "domain.housekeeping.queues",
        "Show delivery queues, and retry or give up failing destinations.",
    ),
    "registry": ("registry:registry", "Configure the container registry."),
    "releases": ("releases:releases", "Check which API calls a release breaks."),
    "reports": (
        "domain.reports.actions:on_call_reports",
        "Show on-call reports.",
    ),
    "repositories": ("repositories:repositories", "Check, back up and restore Git repositories."),
    "restore": ("backups.commands:restore", "Restore and verify a backup."),
    "schedules": (
        "domain.paging.on_call.actions:on_call_schedules",
        "Manage on-call schedules.",
    ),
    "secrets": ("secrets:secrets", "Rotate the secret key."),
    "settings": ("settings:instance_settings", "Manage the settings of the installation."),
    "silences": (
        "domain.paging.silences.actions",
        "Manage silences, which keep matching alerts from paging.",
    ),
    "tokens": ("tokens:tokens", "Manage personal access tokens."),
    "upgrade-check": (
        "upgrade_check:upgrade_check",
        "List what stops working after an upgrade to this release.",
    ),
    "users": ("users:users", "Manage user accounts."),
    "version": ("program:version_command", "Print the version and the commit."),
    "webhooks": ("domain.delivery.webhooks.actions", "Manage webhooks."),
}
#: Current names of renamed commands, by their deprecated names.
_FORMER_NAMES = {"handover-notes": "handoff-notes"}

gatebell = LazyCommandGroup(
    name="gatebell",
    help="Operate a Gatebell installation. Commands use the settings of the environment.",
    places=_COMMANDS,
    former_names=_FORMER_NAMES,
)


def register_commands(app: Flask) -> None:
    """Register the commands with the app, for `flask --app app` and for tests."""
    app.cli = gatebell
