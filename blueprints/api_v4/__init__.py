"""The REST API, under /api/v4."""

from blueprints.api_v4.accounts.personal_access_tokens import personal_access_tokens
from blueprints.api_v4.accounts.users import users
from blueprints.api_v4.alerts.alert_activity import alert_activity
from blueprints.api_v4.alerts.alert_deliveries import alert_deliveries
from blueprints.api_v4.alerts.alert_integration_keys import alert_integration_keys
from blueprints.api_v4.alerts.alert_integrations import alert_integrations
from blueprints.api_v4.alerts.alert_lists import alert_lists
from blueprints.api_v4.alerts.alert_mappings import alert_mappings
from blueprints.api_v4.alerts.alert_recognition import alert_recognition
from blueprints.api_v4.alerts.alerts import alerts
from blueprints.api_v4.applications import applications
from blueprints.api_v4.audit_streams import audit_streams
from blueprints.api_v4.ci_cd import commit_statuses, deployments, environments, releases
from blueprints.api_v4.contacts import contacts, notification_channels
from blueprints.api_v4.escalations import alert_routes, escalation_policies
from blueprints.api_v4.heartbeats import heartbeats
from blueprints.api_v4.incidents import incident_alerts, incident_notes, incident_rules, incidents
from blueprints.api_v4.instance.audit_events import audit_events, namespace_audit_events
from blueprints.api_v4.instance.instance import instance
from blueprints.api_v4.instance.instance_settings import instance_settings
from blueprints.api_v4.maintenance_windows import maintenance_windows
from blueprints.api_v4.on_call import (
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
from blueprints.api_v4.release_schedule import api_usage, release_changes, release_checks
from blueprints.api_v4.silences import alert_mutes, flap_settings, silences
from blueprints.api_v4.webhooks import webhook_deliveries, webhooks
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
for _each in (
    instance,
    instance_settings,
    release_changes,
    release_checks,
    api_usage,
    users,
    contacts,
    personal_access_tokens,
    applications,
    groups,
    projects,
    job_token_scope,
    members,
    invitations,
    resource_tokens,
    audit_events,
    namespace_audit_events,
    audit_streams,
    member_roles,
    group_member_roles,
    environments,
    registry_repositories,
    heartbeats,
    alerts,
    alert_lists,
    alert_activity,
    on_call_schedules,
    on_call_overrides,
    on_call_swaps,
    incidents,
    incident_alerts,
    incident_notes,
    incident_rules,
    deployments,
    commit_statuses,
    releases,
    runners,
    alert_integrations,
    alert_integration_keys,
    alert_recognition,
    alert_mappings,
    alert_deliveries,
    notification_channels,
    webhooks,
    webhook_deliveries,
    escalation_policies,
    alert_routes,
    silences,
    alert_mutes,
    maintenance_windows,
    flap_settings,
):
    api_v4.register_blueprint(_each)
