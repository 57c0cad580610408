"""The endpoints of groups, projects and members in the API: name, method, path, parameters."""

PAGES = ("page", "per_page", "pagination", "order_by", "sort", "id_after", "cursor", "access_token")
TOKEN = ("access_token",)
#: Parameter of lists that can include objects of ancestor groups.
ABOVE = "include_ancestor_groups"
GROUPS = (
    *PAGES,
    "search",
    "owned",
    "min_access_level",
    "top_level_only",
    "all_available",
    "skip_groups[]",
    *("visibility", "active", "archived", "marked_for_deletion_on", "statistics"),
)
PROJECTS = (
    *PAGES,
    "search",
    "membership",
    "owned",
    "min_access_level",
    "visibility",
    "archived",
    "simple",
    "id_before",
    *("last_activity_after", "last_activity_before", "updated_after", "updated_before"),
    *("active", "search_namespaces", "topic", "topic_id", "starred", "imported", "statistics"),
)
MEMBERS = (*PAGES, "query", "user_ids[]", "skip_users[]", "state", "show_seat_info")
LEVELS = tuple(
    f"{part}_access_level"
    for part in (
        *("releases", "environments", "feature_flags", "infrastructure", "monitor", "operations"),
    )
)
PROJECT = ("name", "path", "visibility", "description", *LEVELS)
LOCATIONS = (*PAGES, "search")
GROUP_CHANGE = (
    *("name", "path", "description"),
    *("require_two_factor_authentication", "two_factor_grace_period"),
)
GROUPS_AT = "/api/v4/groups"
NAMESPACES_AT = "/api/v4/namespaces"
NAMESPACES = (*LOCATIONS, "owned_only", "top_level_only", "full_path_search")
GROUP_AT = "/api/v4/{namespace}"
MEMBERS_AT = f"{GROUP_AT}/members"
MEMBER = ("user_id", "username", "access_level", "expires_at")
INVITATIONS_AT = f"{GROUP_AT}/invitations"
INVITATION = ("email", "access_level", "expires_at")
PROJECTS_AT = "/api/v4/projects"

GROUP_ENDPOINTS: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("api_v4.groups.index", "GET", GROUPS_AT, GROUPS),
    ("api_v4.groups.create", "POST", GROUPS_AT, ("name", "path", "parent_id", "description")),
    ("api_v4.groups.show", "GET", f"{GROUPS_AT}/{{id}}", TOKEN),
    ("api_v4.groups.change", "PUT", GROUP_AT, GROUP_CHANGE),
    ("api_v4.groups.delete", "DELETE", f"{GROUPS_AT}/{{id}}", TOKEN),
    ("api_v4.groups.transfer", "POST", f"{GROUP_AT}/transfer", ("group_id",)),
    ("api_v4.groups.transfer_locations", "GET", f"{GROUP_AT}/transfer_locations", LOCATIONS),
    ("api_v4.groups.subgroups", "GET", f"{GROUP_AT}/subgroups", GROUPS),
    ("api_v4.groups.descendant_groups", "GET", f"{GROUP_AT}/descendant_groups", GROUPS),
    ("api_v4.groups.projects", "GET", f"{GROUP_AT}/projects", (*PROJECTS, "include_subgroups")),
    ("api_v4.namespaces.index", "GET", NAMESPACES_AT, NAMESPACES),
    ("api_v4.namespaces.show", "GET", f"{NAMESPACES_AT}/{{id}}", TOKEN),
    ("api_v4.members.index", "GET", MEMBERS_AT, MEMBERS),
    ("api_v4.members.index_all", "GET", f"{MEMBERS_AT}/all", MEMBERS),
    ("api_v4.members.show", "GET", f"{MEMBERS_AT}/{{id}}", TOKEN),
    ("api_v4.members.show_of_all", "GET", f"{MEMBERS_AT}/all/{{id}}", TOKEN),
    ("api_v4.members.create", "POST", MEMBERS_AT, MEMBER),
    ("api_v4.members.change", "PUT", f"{MEMBERS_AT}/{{id}}", MEMBER),
    ("api_v4.members.delete", "DELETE", f"{MEMBERS_AT}/{{id}}", TOKEN),
    ("api_v4.invitations.index", "GET", INVITATIONS_AT, (*PAGES, "query")),
    ("api_v4.invitations.create", "POST", INVITATIONS_AT, INVITATION),
    ("api_v4.invitations.change", "PUT", f"{INVITATIONS_AT}/{{id}}", INVITATION),
    ("api_v4.invitations.revoke", "DELETE", f"{INVITATIONS_AT}/{{id}}", TOKEN),
    ("api_v4.projects.index", "GET", PROJECTS_AT, PROJECTS),
    ("api_v4.projects.create", "POST", PROJECTS_AT, (*PROJECT, "namespace_id")),
    ("api_v4.projects.show", "GET", f"{PROJECTS_AT}/{{id}}", TOKEN),
    ("api_v4.projects.change", "PUT", "/api/v4/{project}", PROJECT),
    (
        "api_v4.projects.share",
        "POST",
        "/api/v4/{project}/share",
        ("group_id", "group_access", "expires_at"),
    ),
    ("api_v4.projects.unshare", "DELETE", "/api/v4/{project}/share/{id}", ()),
    ("api_v4.projects.delete", "DELETE", f"{PROJECTS_AT}/{{id}}", TOKEN),
    ("api_v4.projects.transfer", "PUT", "/api/v4/{project}/transfer", ("namespace",)),
    (
        "api_v4.projects.transfer_locations",
        "GET",
        "/api/v4/{project}/transfer_locations",
        LOCATIONS,
    ),
    ("api_v4.projects.archive", "POST", f"{PROJECTS_AT}/{{id}}/archive", TOKEN),
    ("api_v4.projects.unarchive", "POST", f"{PROJECTS_AT}/{{id}}/unarchive", TOKEN),
)
