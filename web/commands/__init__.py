"""The command line for operators: `gatebell users create …`, or `flask users create …`.

Each command prints one JSON object, but `releases check`, whose output is for a consumer's CI.
"""

from flask import Flask

from web.commands.applications import applications
from web.commands.audit import audit
from web.commands.audit_streams import audit_streams
from web.commands.contacts import channels, contacts
from web.commands.escalations import escalations, routes
from web.commands.heartbeats import heartbeats
from web.commands.imports import imports
from web.commands.incidents import incidents
from web.commands.integrations import integrations
from web.commands.keys import keys
from web.commands.places import GROUP_COMMANDS, PROJECT_COMMANDS
from web.commands.projects import groups, members, projects
from web.commands.prune import prune_command
from web.commands.registry import registry
from web.commands.releases import releases
from web.commands.repositories import repositories
from web.commands.schedules import schedules
from web.commands.secrets import secrets
from web.commands.settings import instance_settings
from web.commands.silences import flap_settings, maintenance_windows, silences
from web.commands.tokens import tokens
from web.commands.users import users
from web.commands.webhooks import webhooks

_COMMANDS = (
    users,
    groups,
    projects,
    members,
    applications,
    incidents,
    integrations,
    heartbeats,
    contacts,
    channels,
    webhooks,
    imports,
    schedules,
    escalations,
    routes,
    silences,
    maintenance_windows,
    flap_settings,
    tokens,
    keys,
    audit,
    audit_streams,
    registry,
    releases,
    repositories,
    secrets,
    instance_settings,
    prune_command,
)


def register_commands(app: Flask) -> None:
    """Add our commands to `flask`."""
    for command in GROUP_COMMANDS:
        groups.add_command(command)
    for command in PROJECT_COMMANDS:
        projects.add_command(command)
    for command in _COMMANDS:
        app.cli.add_command(command)
