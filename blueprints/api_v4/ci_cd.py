"""/api/v4/projects/:id/{environments,deployments,statuses,releases}: what external CI reports."""

from http import HTTPStatus

from domain.ci_cd import deployment_actions, environment_actions, release_actions, status_actions
from web.api.operations import Resources

_AT = "/projects/<path:reference>"

environments = Resources("environments", __name__, url_prefix=f"{_AT}/environments")
environments.bind_usual(environment_actions, "/<int:environment_id>")
environments.bind(
    "POST", "/<int:environment_id>/stop", environment_actions.stop_environment, status=HTTPStatus.OK
)

deployments = Resources("deployments", __name__, url_prefix=f"{_AT}/deployments")
deployments.bind_usual(deployment_actions, "/<int:deployment_id>")

commit_statuses = Resources("commit_statuses", __name__, url_prefix=_AT)
commit_statuses.bind("GET", "/repository/commits/<sha:sha>/statuses", status_actions.list_statuses)
commit_statuses.bind("POST", "/statuses/<sha:sha>", status_actions.report_status)

_RELEASE = "/<path:tag_name>"
_LINKS = f"{_RELEASE}/assets/links"
_LINK = f"{_LINKS}/<int:link_id>"

releases = Resources("releases", __name__, url_prefix=f"{_AT}/releases")
releases.bind("GET", "", release_actions.list_releases)
releases.bind("GET", "/permalink/latest", release_actions.show_latest)
releases.bind("GET", _RELEASE, release_actions.show_release)
releases.bind("POST", "", release_actions.create_release)
releases.bind("PUT", _RELEASE, release_actions.change_release)
releases.bind("DELETE", _RELEASE, release_actions.delete_release, status=HTTPStatus.OK)
releases.bind("GET", _LINKS, release_actions.list_links)
releases.bind("GET", _LINK, release_actions.show_link)
releases.bind("POST", _LINKS, release_actions.create_link)
releases.bind("PUT", _LINK, release_actions.change_link)
releases.bind("DELETE", _LINK, release_actions.delete_link, status=HTTPStatus.OK)
