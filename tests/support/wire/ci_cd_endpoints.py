"""The endpoints for reports of external CI systems: name, method, path, parameters."""

from tests.support.wire.group_endpoints import PAGES, TOKEN

ENVIRONMENTS_AT = "/api/v4/{project}/environments"
DEPLOYMENTS_AT = "/api/v4/{project}/deployments"
DEPLOYMENTS = (
    *("page", "per_page", "pagination", "cursor", "order_by", "sort", "environment", "status"),
    *("updated_after", "updated_before", "finished_after", "finished_before"),
)
SHA = "0123456789abcdef0123456789abcdef01234567"
STATUS = (
    *("state", "ref", "name", "context", "stage", "target_url", "description", "coverage"),
    *("allow_failure", "pipeline_id"),
)
RELEASES_AT = "/api/v4/{project}/releases"
LINKS_AT = f"{RELEASES_AT}/v1.0/assets/links"
LINK = ("name", "url", "link_type")

CI_CD_ENDPOINTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("api_v4.environments.index", "GET", ENVIRONMENTS_AT, (*PAGES, "name", "search")),
    ("api_v4.environments.show", "GET", f"{ENVIRONMENTS_AT}/{{id}}", TOKEN),
    ("api_v4.environments.create", "POST", ENVIRONMENTS_AT, ("name", "external_url")),
    ("api_v4.environments.edit", "PUT", f"{ENVIRONMENTS_AT}/{{id}}", ("external_url",)),
    ("api_v4.environments.stop", "POST", f"{ENVIRONMENTS_AT}/{{id}}/stop", TOKEN),
    ("api_v4.environments.delete", "DELETE", f"{ENVIRONMENTS_AT}/{{id}}", TOKEN),
    ("api_v4.deployments.index", "GET", DEPLOYMENTS_AT, DEPLOYMENTS),
    ("api_v4.deployments.show", "GET", f"{DEPLOYMENTS_AT}/{{id}}", TOKEN),
    (
        "api_v4.deployments.create",
        "POST",
        DEPLOYMENTS_AT,
        ("environment", "sha", "ref", "tag", "status"),
    ),
    ("api_v4.deployments.edit", "PUT", f"{DEPLOYMENTS_AT}/{{id}}", ("status",)),
    ("api_v4.deployments.delete", "DELETE", f"{DEPLOYMENTS_AT}/{{id}}", TOKEN),
    (
        "api_v4.commits.show",
        "GET",
        "/api/v4/{project}/repository/commits/main",
        ("stats",),
    ),
    (
        "api_v4.commit_statuses.index",
        "GET",
        f"/api/v4/{{project}}/repository/commits/{SHA}/statuses",
        (*PAGES, "cursor", "ref", "stage", "name", "pipeline_id"),
    ),
    ("api_v4.commit_statuses.create", "POST", f"/api/v4/{{project}}/statuses/{SHA}", STATUS),
    ("api_v4.releases.index", "GET", RELEASES_AT, (*PAGES, "cursor")),
    ("api_v4.releases.latest", "GET", f"{RELEASES_AT}/permalink/latest", TOKEN),
    ("api_v4.releases.show", "GET", f"{RELEASES_AT}/v1.0", TOKEN),
    (
        "api_v4.releases.create",
        "POST",
        RELEASES_AT,
        ("tag_name", "name", "description", "ref", "released_at", "assets"),
    ),
    ("api_v4.releases.edit", "PUT", f"{RELEASES_AT}/v1.0", ("name", "description", "released_at")),
    ("api_v4.releases.delete", "DELETE", f"{RELEASES_AT}/v1.0", TOKEN),
    ("api_v4.releases.list_links", "GET", LINKS_AT, PAGES),
    ("api_v4.releases.show_link", "GET", f"{LINKS_AT}/{{id}}", TOKEN),
    ("api_v4.releases.create_link", "POST", LINKS_AT, LINK),
    ("api_v4.releases.edit_link", "PUT", f"{LINKS_AT}/{{id}}", LINK),
    ("api_v4.releases.delete_link", "DELETE", f"{LINKS_AT}/{{id}}", TOKEN),
)
