"""The views of the service. This file is the URL map."""

from flask import Flask

from blueprints.account.access_tokens import access_tokens
from blueprints.account.activity import activity
from blueprints.account.api_changes import api_changes
from blueprints.account.authorized_applications import authorized_applications
from blueprints.account.email_confirmations import email_confirmations
from blueprints.account.page_sizes import page_sizes
from blueprints.account.passkeys import passkeys
from blueprints.account.profile import account
from blueprints.account.second_factors import second_factors
from blueprints.admin import admin
from blueprints.admin.audit import audit
from blueprints.alerts.alerts import alerts
from blueprints.alerts.all_alerts import all_alerts
from blueprints.alerts.batches import alert_batches
from blueprints.alerts.changes import alert_changes
from blueprints.alerts.events_api import events_api
from blueprints.alerts.intake import intake
from blueprints.alerts.list_settings import alert_list_settings
from blueprints.api_description import api_description, api_viewer
from blueprints.api_v4 import api_v4
from blueprints.applications import applications
from blueprints.git import git
from blueprints.health import health
from blueprints.heartbeats.pages import heartbeats
from blueprints.heartbeats.pings import pings
from blueprints.help_pages import help_pages
from blueprints.home import home
from blueprints.incidents.changes import incident_changes
from blueprints.incidents.comments import incident_comments
from blueprints.incidents.incidents import incidents
from blueprints.incidents.rules import incident_rules
from blueprints.integrations.deliveries import deliveries
from blueprints.integrations.keys import integration_keys
from blueprints.integrations.overview import integrations
from blueprints.integrations.settings import integration_settings
from blueprints.integrations.severity_words import severity_words
from blueprints.integrations.trials import test_alerts
from blueprints.maintenance_windows import maintenance_windows
from blueprints.notifications.acknowledgement import acknowledgement
from blueprints.notifications.channels import channels
from blueprints.notifications.contacts import contacts
from blueprints.oauth.authorize import authorize
from blueprints.oauth.device import device
from blueprints.oauth.logout import logout
from blueprints.oauth.metadata import metadata
from blueprints.oauth.openid import openid
from blueprints.oauth.registration import registration
from blueprints.oauth.token import token
from blueprints.on_call.calendars import on_call_calendars, on_call_feeds
from blueprints.on_call.changes import on_call_changes
from blueprints.on_call.overview import on_call
from blueprints.on_call.policies import escalation_policies
from blueprints.on_call.rotations import on_call_rotations
from blueprints.on_call.routes import alert_routes
from blueprints.on_call.schedules import on_call_schedules
from blueprints.projects.environments import environments
from blueprints.projects.files import files
from blueprints.projects.group_settings import group_settings
from blueprints.projects.groups import groups
from blueprints.projects.invitations import invitations
from blueprints.projects.project_settings import project_settings
from blueprints.projects.projects import projects
from blueprints.projects.resource_tokens import resource_tokens
from blueprints.registry import registry_notifications, registry_pages, registry_tokens
from blueprints.release_schedule import release_check, release_feeds, release_schedule
from blueprints.signing_in.sessions import sessions
from blueprints.signing_in.two_factor import two_factor
from blueprints.silences import silences
from blueprints.users import users
from blueprints.webhooks.deliveries import webhook_deliveries
from blueprints.webhooks.settings import webhooks
from web.http.endpoints import describe_endpoints

BLUEPRINTS = (
    # Pages
    home,  # /  /groups
    help_pages,  # /help  /help/{guides,docs,images}/…  /help/errors
    api_viewer,  # /help/api…
    release_check,  # /help/releases/check
    release_schedule,  # /help/releases…
    sessions,  # /users/sign_in…  /users/sign_out
    two_factor,  # /users/two_factor…
    account,  # /-/user_settings/{profile,security}
    email_confirmations,  # /-/email_confirmations/…  /-/user_settings/profile/email/…
    page_sizes,  # /-/user_settings/page_size
    second_factors,  # /-/user_settings/security/{authenticator,recovery_codes}…
    passkeys,  # /-/user_settings/security/passkeys…
    applications,  # /-/user_settings/applications…
    access_tokens,  # /-/user_settings/access_tokens…
    activity,  # /-/user_settings/activity…
    api_changes,  # /-/user_settings/api_changes
    authorized_applications,  # /-/user_settings/authorized_applications…
    authorize,  # /oauth/authorize…
    device,  # /oauth/device…
    logout,  # /oauth/logout
    users,  # /-/users/<username>
    contacts,  # /-/user_settings/contacts…
    channels,  # /<project>/-/settings/channels…
    acknowledgement,  # /-/acknowledge/…
    invitations,  # /-/invitations/…
    group_settings,  # /groups/<group>/-/{settings,path,transfer,delete}
    project_settings,  # /<project>/-/settings/{path,transfer,delete}
    groups,  # /groups/new  /groups/<group>/-/members
    integrations,  # /<project>/-/settings/integrations…
    integration_settings,  # …/integrations/<id>/{configure,mapping}
    integration_keys,  # …/integrations/<id>/{credentials,reset_key,end_previous_key}
    webhooks,  # /<project>/-/settings/webhooks
    webhook_deliveries,
    severity_words,  # …/integrations/<id>/severity_words…
    test_alerts,  # …/integrations/<id>/test
    deliveries,  # …/integrations/<id>/deliveries…
    resource_tokens,  # /<project>/-/settings/access_tokens…  /groups/<group>/-/access_tokens…
    all_alerts,  # /-/alerts…
    alert_batches,  # /-/alert_changes…
    alert_list_settings,  # …/-/alerts/filters…
    alerts,  # /<project>/-/alerts…
    alert_changes,  # /<project>/-/alerts/status  …/alerts/<iid>/{status,assignee,notes}
    on_call,  # /<project>/-/on_call
    on_call_schedules,  # /<project>/-/on_call/schedules…
    on_call_rotations,  # …/schedules/<id>/rotations…
    on_call_changes,  # …/schedules/<id>/{overrides,swaps}…
    on_call_calendars,  # …/schedules/<id>/calendar…
    escalation_policies,  # …/on_call/policies…
    alert_routes,  # …/on_call/routes…
    incidents,  # /<project>/-/incidents…
    incident_changes,  # …/incidents/<iid>/{status,severity,assignees,edit,alerts,delete}…
    incident_comments,  # …/incidents/<iid>/notes…
    incident_rules,  # …/incidents/rules…
    silences,  # /<project>/-/silences…
    maintenance_windows,  # /<project>/-/maintenance_windows…
    environments,  # /<project>/-/environments…
    heartbeats,  # /<project>/-/heartbeats…
    registry_pages,  # /<project>/-/container_registry…
    files,  # /<project>/-/{tree,blob,commits}/…
    admin,  # /admin…
    audit,  # /admin/audit
    projects,  # /projects/new  /<project>/-/settings/{general,members}  /<group or project>
    # For machines
    token,  # /oauth/token  /oauth/par  /oauth/authorize_device  /oauth/revoke  /oauth/token/info
    registration,  # /oauth/register…
    metadata,  # /.well-known/…
    openid,  # /oauth/{userinfo,introspect,discovery/keys}  /-/jwks  /-/pictures/…
    intake,  # /<project>/alerts/notify…
    events_api,  # /v2/enqueue  /v2/change/enqueue
    pings,  # /-/ping/…
    registry_notifications,  # /api/v4/container_registry_event/events
    api_v4,  # /api/v4/…
    api_description,  # /api/openapi.json
    on_call_feeds,  # /-/on_call/<token>.ics
    release_feeds,  # /help/releases.{atom,ics}
    registry_tokens,  # /jwt/…
    git,  # /<project>.git/…
    health,  # /healthz  /readyz  /metrics
)


def register_blueprints(app: Flask) -> None:
    """Give the application its URL map; raise TypeError for a view without a mark."""
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint)
    describe_endpoints(app)
