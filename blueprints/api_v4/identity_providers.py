"""/api/v4/admin/identity_providers: through whom people sign in, for administrators."""

from domain.identity_providers import actions
from web.api.operations import Resources

_ONE = "/<int:provider_id>"

identity_providers = Resources(
    "identity_providers", __name__, url_prefix="/admin/identity_providers"
)
identity_providers.bind_usual(actions, _ONE)
identity_providers.bind("POST", f"{_ONE}/test", actions.test_connection, status=200)
