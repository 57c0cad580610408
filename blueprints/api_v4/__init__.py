"""The REST API, under /api/v4."""

from blueprints.api_v4.accounts.contacts import contacts
from blueprints.api_v4.accounts.personal_access_tokens import personal_access_tokens
from blueprints.api_v4.accounts.users import users
from blueprints.api_v4.alerts.alert_activity import alert_activity
from blueprints.api_v4.alerts.alert_deliveries import alert_deliveries
from blueprints.api_v4.alerts.alert_integration_keys import alert_integration_keys
from blueprints.api_v4.alerts.alert_integrations import alert_integrations
from blueprints.api_v4.alerts.alert_lists import alert_lists
from blueprints.api_v4.alerts.alert_mappings import alert_mappings
from blueprints.api_v4.alerts.alert_mutes import alert_mutes
from blueprints.api_v4.alerts.alert_recognition import alert_recognition
from blueprints.api_v4.alerts.alert_routes import alert_routes
from blueprints.api_v4.alerts.alerts import alerts
from blueprints.api_v4.alerts.flap_settings import flap_settings
from blueprints.api_v4.applications import applications
from blueprints.api_v4.ci_cd.commit_statuses import commit_statuses
from blueprints.api_v4.ci_cd.deployments import deployments
from blueprints.api_v4.ci_cd.environments import environments
from blueprints.api_v4.heartbeats import heartbeats
from blueprints.api_v4.incidents.incident_alerts import incident_alerts
from blueprints.api_v4.incidents.incident_notes import incident_notes
from blueprints.api_v4.incidents.incident_rules import incident_rules
from blueprints.api_v4.incidents.incidents import incidents
from blueprints.api_v4.instance.audit_events import audit_events
from blueprints.api_v4.instance.audit_streams import audit_streams
from blueprints.api_v4.instance.instance import instance
from blueprints.api_v4.instance.instance_settings import instance_settings
from blueprints.api_v4.instance.notification_channels import notification_channels
from blueprints.api_v4.instance.place_audit_events import place_audit_events
from blueprints.api_v4.on_call.escalation_policies import escalation_policies
from blueprints.api_v4.on_call.on_call_schedules import (
    on_call_overrides,
    on_call_schedules,
    on_call_swaps,
)
from blueprints.api_v4.projects.groups import groups
from blueprints.api_v4.projects.invitations import invitations
from blueprints.api_v4.projects.job_token_scope import job_token_scope
from blueprints.api_v4.projects.member_roles import group_member_roles, member_roles
from blueprints.api_v4.projects.members import members
from blueprints.api_v4.projects.projects import projects
from blueprints.api_v4.projects.resource_tokens import resource_tokens
from blueprints.api_v4.projects.runners import runners
from blueprints.api_v4.registry_repositories import registry_repositories
from blueprints.api_v4.releases.api_usage import api_usage
from blueprints.api_v4.releases.release_changes import release_changes
from blueprints.api_v4.releases.release_checks import release_checks
from blueprints.api_v4.releases.releases import releases
from blueprints.api_v4.silences.maintenance_windows import maintenance_windows
from blueprints.api_v4.silences.silences import silences
from blueprints.api_v4.webhooks.webhook_deliveries import webhook_deliveries
from blueprints.api_v4.webhooks.webhooks import webhooks
from web.access.bearer_token import PRIVATE_TOKEN
from web.api import idempotency, ignored_parameters, sudo
from web.http.cors import LIMIT_HEADERS, SIMPLE_HEADERS, CorsPolicy
from web.http.endpoints import ErrorFormat, MachineBlueprint
from web.releases import requested

api_v4 = MachineBlueprint(
    "api_v4",
    __name__,
    url_prefix="/api/v4",
    errors=ErrorFormat.API,
    # The API accepts no cookies, so a script can do no more than the owner of its token. It can
    # send all headers that the API reads, except DPoP: no script elsewhere gets such tokens.
    cross_origin=CorsPolicy(
        methods=("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
        headers=(
            *SIMPLE_HEADERS,
            *(PRIVATE_TOKEN, sudo.HEADER, idempotency.HEADER, "If-None-Match", requested.HEADER),
        ),
        exposed=(
            *("Link", "X-Total", "X-Total-Pages", "X-Page", "X-Per-Page", "X-Next-Page"),
            *("X-Prev-Page", "ETag", "Deprecation", "Sunset"),
            *LIMIT_HEADERS,
            ignored_parameters.HEADER,
        ),
    ),
)
api_v4.register_blueprint(instance)
api_v4.register_blueprint(instance_settings)
api_v4.register_blueprint(release_changes)
api_v4.register_blueprint(release_checks)
api_v4.register_blueprint(api_usage)
api_v4.register_blueprint(users)
api_v4.register_blueprint(contacts)
api_v4.register_blueprint(personal_access_tokens)
api_v4.register_blueprint(applications)
api_v4.register_blueprint(groups)
api_v4.register_blueprint(projects)
api_v4.register_blueprint(job_token_scope)
api_v4.register_blueprint(members)
api_v4.register_blueprint(invitations)
api_v4.register_blueprint(resource_tokens)
api_v4.register_blueprint(audit_events)
api_v4.register_blueprint(place_audit_events)
api_v4.register_blueprint(audit_streams)
api_v4.register_blueprint(member_roles)
api_v4.register_blueprint(group_member_roles)
api_v4.register_blueprint(environments)
api_v4.register_blueprint(registry_repositories)
api_v4.register_blueprint(heartbeats)
api_v4.register_blueprint(alerts)
api_v4.register_blueprint(alert_lists)
api_v4.register_blueprint(alert_activity)
api_v4.register_blueprint(on_call_schedules)
api_v4.register_blueprint(on_call_overrides)
api_v4.register_blueprint(on_call_swaps)
api_v4.register_blueprint(incidents)
api_v4.register_blueprint(incident_alerts)
api_v4.register_blueprint(incident_notes)
api_v4.register_blueprint(incident_rules)
api_v4.register_blueprint(deployments)
api_v4.register_blueprint(commit_statuses)
api_v4.register_blueprint(releases)
api_v4.register_blueprint(runners)
api_v4.register_blueprint(alert_integrations)
api_v4.register_blueprint(alert_integration_keys)
api_v4.register_blueprint(alert_recognition)
api_v4.register_blueprint(alert_mappings)
api_v4.register_blueprint(alert_deliveries)
api_v4.register_blueprint(notification_channels)
api_v4.register_blueprint(webhooks)
api_v4.register_blueprint(webhook_deliveries)
api_v4.register_blueprint(escalation_policies)
api_v4.register_blueprint(alert_routes)
api_v4.register_blueprint(silences)
api_v4.register_blueprint(alert_mutes)
api_v4.register_blueprint(maintenance_windows)
api_v4.register_blueprint(flap_settings)
