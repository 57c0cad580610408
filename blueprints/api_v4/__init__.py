"""The REST API, under /api/v4."""

from flask import Blueprint

from blueprints.api_v4.alerts import alerts
from blueprints.api_v4.applications import applications
from blueprints.api_v4.audit_events import audit_events
from blueprints.api_v4.environments import environments
from blueprints.api_v4.instance import instance
from blueprints.api_v4.personal_access_tokens import personal_access_tokens
from blueprints.api_v4.resource_tokens import resource_tokens
from blueprints.api_v4.users import users

api_v4 = Blueprint("api_v4", __name__, url_prefix="/api/v4")
api_v4.register_blueprint(instance)
api_v4.register_blueprint(users)
api_v4.register_blueprint(personal_access_tokens)
api_v4.register_blueprint(applications)
api_v4.register_blueprint(resource_tokens)
api_v4.register_blueprint(audit_events)
api_v4.register_blueprint(environments)
api_v4.register_blueprint(alerts)
