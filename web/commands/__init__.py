"""Command line for operators, such as `gatebell users create …`.

Each command prints one JSON object, or a table with `--output table`. `releases check` prints
formats that CI systems can read.
"""

from flask import Flask

from web.commands.program import Program

#: Location of each command in this package, or the actions that it is made from, and its short
#: help. Commands are imported when they are used. Web processes, help and completion do not wait
#: for them.
_COMMANDS = {
    "alert-routes": (
        "domain.paging.escalations.actions",
        "Which alerts go to which escalation policy.",
    ),
    "alerts": (
        (
            "domain.alerts.handling.actions,domain.paging.escalations.manual_actions,"
            "domain.incidents.timelines.actions:alert_timeline"
        ),
        "Alerts of projects.",
    ),
    "applications": ("applications:applications", "OAuth clients."),
    "audit": ("audit:audit", "The audit log."),
    "audit-streams": (
        "domain.delivery.audit_streams.actions",
        "Destinations that get every audit event by HTTP.",
    ),
    "backup": ("backups.restore:backup", "Write a backup while the service runs."),
    "channels": (
        "domain.paging.contacts.actions:notification_channels",
        "Channels: chat rooms and lists that projects page.",
    ),
    "completion": ("program:completion", "Print the completion script for a shell."),
    "contact-rules": ("contacts:contact_rules", "Rules by which people are paged."),
    "contacts": ("contacts:contacts", "Contacts: addresses at which people are paged."),
    "deliveries": ("integrations:deliveries", "What senders posted to alert integrations."),
    "doctor": ("doctor:doctor", "Check the installation for problems."),
    "escalations": (
        "domain.paging.escalations.actions:escalation_policies",
        "Escalation policies: who is paged for alerts, and when.",
    ),
    "flap-settings": (
        "domain.paging.silences.actions",
        "How alerts that open repeatedly page.",
    ),
    "groups": ("namespaces:groups", "Groups of projects."),
    "handover-notes": (
        "domain.reports.actions:on_call_handover_notes",
        "What people on call leave for whoever is next.",
    ),
    "heartbeats": (
        "domain.heartbeats.actions",
        "Heartbeats: alerts when a job does not report.",
    ),
    "identity-providers": (
        "domain.accounts.identity_providers.actions",
        "OpenID Connect providers through which people sign in.",
    ),
    "import": ("imports:imports", "Import users, schedules, policies and integrations."),
    "incident-documents": (
        "domain.reports.incident_documents",
        "What teams write down after incidents.",
    ),
    "incident-rules": ("domain.incidents.rule_actions", "Which alerts open incidents."),
    "incidents": (
        "domain.incidents.actions,domain.incidents.timelines.actions:incident_timeline",
        "Incidents of projects.",
    ),
    "integrations": ("integrations:integrations", "Alert integrations of projects."),
    "keys": ("domain.oauth.openid.keys", "Keys that sign ID tokens."),
    "mail": ("mail:mail", "E-mail that the worker sends."),
    "maintenance-windows": (
        "domain.paging.maintenance_windows.actions",
        "Times at which alerts page nobody.",
    ),
    "member-roles": ("member_roles:member_roles", "Custom member roles."),
    "members": ("domain.projects.member_actions", "Members of groups and projects."),
    "on-call": ("own_on_call:on_call", "When and where users are on call, and who covers them."),
    "projects": ("namespaces:projects", "Projects."),
    "prune": ("prune:prune_command", "Remove expired and deleted data now."),
    "registry": ("registry:registry", "The container registry."),
    "releases": ("releases:releases", "The release schedule."),
    "reports": (
        "domain.reports.actions:on_call_reports",
        "What happened in nights and weeks, in figures.",
    ),
    "repositories": ("repositories:repositories", "Git repositories."),
    "restore": ("backups.restore:restore", "Restore a backup, and check it."),
    "schedules": (
        "domain.paging.on_call.actions:on_call_schedules",
        "On-call schedules of projects.",
    ),
    "secrets": ("secrets:secrets", "Rotation of the secret key."),
    "settings": ("settings:instance_settings", "Settings of the installation."),
    "silences": (
        "domain.paging.silences.actions",
        "Silences: matching alerts page nobody for a time.",
    ),
    "tokens": ("tokens:tokens", "Personal access tokens."),
    "upgrade-check": (
        "upgrade_check:upgrade_check",
        "List what an upgrade to this release turns off.",
    ),
    "users": ("users:users", "User accounts."),
    "version": ("program:version_command", "The version and the commit of this program."),
    "webhooks": ("domain.delivery.webhooks.actions", "Outgoing webhooks of projects."),
}

gatebell = Program(
    name="gatebell",
    help="Operate Gatebell. Commands use the database that the environment names.",
    places=_COMMANDS,
)


def register_commands(app: Flask) -> None:
    """Use our commands as the commands of the app, for `flask --app app` and for tests."""
    app.cli = gatebell
