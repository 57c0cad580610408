"""HTTP in, HTTP out. This file is the URL map on one screen."""

from flask import Flask

from blueprints.access_tokens import access_tokens
from blueprints.account import account
from blueprints.alerts import alerts
from blueprints.api_v4 import api_v4
from blueprints.applications import applications
from blueprints.authorize import authorize
from blueprints.authorized_applications import authorized_applications
from blueprints.device import device
from blueprints.groups import groups
from blueprints.health import health
from blueprints.home import home
from blueprints.intake import intake
from blueprints.integrations import integrations
from blueprints.logout import logout
from blueprints.metadata import metadata
from blueprints.openid import openid
from blueprints.projects import projects
from blueprints.sessions import sessions
from blueprints.token import token

#: What browsers show: forms here carry a token against forged requests.
PAGES = (
    home,  # /  /groups
    sessions,  # /users/sign_in  /users/sign_out
    account,  # /-/user_settings/{profile,security}
    applications,  # /-/user_settings/applications…
    access_tokens,  # /-/user_settings/access_tokens…
    authorized_applications,  # /-/user_settings/authorized_applications…
    authorize,  # /oauth/authorize
    device,  # /oauth/device…
    logout,  # /oauth/logout
    groups,  # /groups/new  /groups/<group>/-/members
    integrations,  # /<project>/-/settings/integrations…
    alerts,  # /<project>/-/alerts…
    projects,  # /projects/new  /<project>/-/settings/{general,members}  /<group or project>
)

#: What machines call: no session, no cookie, no form token.
MACHINES = (
    token,  # /oauth/token  /oauth/authorize_device  /oauth/revoke  /oauth/token/info
    metadata,  # /.well-known/…
    openid,  # /oauth/{userinfo,introspect,discovery/keys}  /-/jwks  /-/pictures/…
    intake,  # /<project>/alerts/notify…
    api_v4,  # /api/v4/…
    health,  # /healthz  /readyz  /metrics
)


def register_blueprints(app: Flask) -> None:
    """Give the application its URL map."""
    for blueprint in (*PAGES, *MACHINES):
        app.register_blueprint(blueprint)
