"""/api/v4/applications: the instance's own applications, for administrators' scripts.

The refused requests of an application are for its owner as well.
"""

from domain.oauth.setting_up import actions
from web.api.operations import Resources

_ONE = "/<int:application_id>"

applications = Resources("applications", __name__, url_prefix="/applications")
applications.bind("GET", "", actions.list_applications)
applications.bind("POST", "", actions.create_application)
applications.bind("DELETE", _ONE, actions.delete_application)
applications.bind("POST", f"{_ONE}/renew-secret", actions.renew_secret)
applications.bind("GET", f"{_ONE}/people", actions.list_application_users)
applications.bind("GET", f"{_ONE}/refused_requests", actions.list_refused_requests)
