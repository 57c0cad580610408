"""HTTP in, HTTP out. This file is the URL map on one screen."""

from flask import Flask

from blueprints.access_tokens import access_tokens
from blueprints.account import account
from blueprints.activity import activity
from blueprints.admin import admin
from blueprints.alert_changes import alert_changes
from blueprints.alerts import alerts
from blueprints.api_v4 import api_v4
from blueprints.applications import applications
from blueprints.audit import audit
from blueprints.authorize import authorize
from blueprints.authorized_applications import authorized_applications
from blueprints.deliveries import deliveries
from blueprints.device import device
from blueprints.environments import environments
from blueprints.git import git
from blueprints.groups import groups
from blueprints.health import health
from blueprints.help_pages import help_pages
from blueprints.home import home
from blueprints.intake import intake
from blueprints.integration_keys import integration_keys
from blueprints.integration_settings import integration_settings
from blueprints.integrations import integrations
from blueprints.logout import logout
from blueprints.metadata import metadata
from blueprints.openid import openid
from blueprints.passkeys import passkeys
from blueprints.place_tokens import place_tokens
from blueprints.projects import projects
from blueprints.registration import registration
from blueprints.second_factors import second_factors
from blueprints.sessions import sessions
from blueprints.token import token
from blueprints.trials import trials
from blueprints.two_factor import two_factor
from blueprints.users import users

#: What browsers show: forms here carry a token against forged requests.
PAGES = (
    home,  # /  /groups
    help_pages,  # /help/errors
    sessions,  # /users/sign_in…  /users/sign_out
    two_factor,  # /users/two_factor…
    account,  # /-/user_settings/{profile,security}
    second_factors,  # /-/user_settings/security/{authenticator,recovery_codes}…
    passkeys,  # /-/user_settings/security/passkeys…
    applications,  # /-/user_settings/applications…
    access_tokens,  # /-/user_settings/access_tokens…
    activity,  # /-/user_settings/activity…
    authorized_applications,  # /-/user_settings/authorized_applications…
    authorize,  # /oauth/authorize…
    device,  # /oauth/device…
    logout,  # /oauth/logout
    users,  # /-/users/<username>
    groups,  # /groups/new  /groups/<group>/-/members
    integrations,  # /<project>/-/settings/integrations…
    integration_settings,  # …/integrations/<id>/{configure,mapping}
    integration_keys,  # …/integrations/<id>/{credentials,reset_key,end_previous_key}
    trials,  # …/integrations/<id>/test
    deliveries,  # …/integrations/<id>/deliveries…
    place_tokens,  # /<project>/-/settings/access_tokens…  /groups/<group>/-/access_tokens…
    alerts,  # /<project>/-/alerts…
    alert_changes,  # /<project>/-/alerts/status  …/alerts/<iid>/{status,assignee,notes}
    environments,  # /<project>/-/environments…
    admin,  # /admin…
    audit,  # /admin/audit
    projects,  # /projects/new  /<project>/-/settings/{general,members}  /<group or project>
)

#: Those of them that applications lead people to, and whose forms can lead back there.
LED_TO = (sessions, two_factor, authorize, device, logout)

#: What machines call: no session, no cookie, no form token.
MACHINES = (
    token,  # /oauth/token  /oauth/par  /oauth/authorize_device  /oauth/revoke  /oauth/token/info
    registration,  # /oauth/register…
    metadata,  # /.well-known/…
    openid,  # /oauth/{userinfo,introspect,discovery/keys}  /-/jwks  /-/pictures/…
    intake,  # /<project>/alerts/notify…
    api_v4,  # /api/v4/…
    git,  # /<project>.git/…
    health,  # /healthz  /readyz  /metrics
)


def register_blueprints(app: Flask) -> None:
    """Give the application its URL map."""
    for blueprint in (*PAGES, *MACHINES):
        app.register_blueprint(blueprint)
