"""Administration pages of the instance, under /admin."""

from blueprints.admin.api_usage import api_usage
from blueprints.admin.applications import applications
from blueprints.admin.audit_streams import audit_streams
from blueprints.admin.identity_providers import identity_providers
from blueprints.admin.member_roles import member_roles
from blueprints.admin.overview import overview
from blueprints.admin.queues import queues
from blueprints.admin.registry import registry
from blueprints.admin.settings import instance_settings
from blueprints.admin.signing_keys import keys
from blueprints.admin.users import personal_data, users
from web.http.endpoints import PageBlueprint

admin = PageBlueprint("admin", __name__, url_prefix="/admin")
for part in (
    *(overview, users, personal_data, member_roles, applications, instance_settings),
    *(identity_providers, keys, registry, api_usage, audit_streams, queues),
):
    admin.register_blueprint(part)
