"""/api/v4/projects/:id/releases: releases of a project, with links to their files."""

from http import HTTPStatus

from domain.ci_cd import release_actions as actions
from web.api.operations import Resources

releases = Resources("releases", __name__, url_prefix="/projects/<path:reference>/releases")
_ONE = "/<path:tag_name>"
_LINKS = f"{_ONE}/assets/links"
_LINK = f"{_LINKS}/<int:link_id>"

releases.bind("GET", "", actions.list_releases)
releases.bind("GET", "/permalink/latest", actions.show_latest)
releases.bind("GET", _ONE, actions.show_release)
releases.bind("POST", "", actions.create_release)
releases.bind("PUT", _ONE, actions.change_release)
releases.bind("DELETE", _ONE, actions.delete_release, status=HTTPStatus.OK)
releases.bind("GET", _LINKS, actions.list_links)
releases.bind("GET", _LINK, actions.show_link)
releases.bind("POST", _LINKS, actions.create_link)
releases.bind("PUT", _LINK, actions.change_link)
releases.bind("DELETE", _LINK, actions.delete_link, status=HTTPStatus.OK)
