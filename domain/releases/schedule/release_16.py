"""Changes in releases 16.0 to 16.7."""

from collections.abc import Sequence
from functools import partial

from domain.releases.changes import (
    ApiNameKind,
    CallPattern,
    Change,
    Interface,
    NamePattern,
    ReleaseChangeKind,
)
from domain.releases.conditions import (
    FilterSortMismatch,
    ParameterGiven,
    ParameterMissing,
    TextTooLong,
    TextTooShort,
)
from domain.releases.schedule.calls import (
    API_PATH,
    GROUP_PATH,
    PROJECT_PATH,
    build_get_call,
    build_post_call,
    build_project_attribute_calls,
    build_setting_patterns,
)

_build_change = partial(Change, release="16.0")
_build_rest_change = partial(_build_change, interface=Interface.REST)
_build_graphql_change = partial(_build_change, interface=Interface.GRAPHQL)

_ACCESS_LEVELS = (
    "releases_access_level",
    "environments_access_level",
    "feature_flags_access_level",
    "infrastructure_access_level",
    "monitor_access_level",
)
RELEASE_16: Sequence[Change] = (
    _build_rest_change(
        id="release-links-external",
        kind=ReleaseChangeKind.FIELD_GONE,
        title="Field external of releases and release links removed",
        matches=(
            CallPattern(
                methods=("GET", "POST", "PUT"),
                path=f"{PROJECT_PATH}/releases/:tag_name/assets/links",
                fields=("external",),
                attributes=("external",),
            ),
            CallPattern(
                path=f"{PROJECT_PATH}/releases/:tag_name/assets/links/:link_id",
                fields=("external",),
                attributes=("external",),
            ),
            build_get_call(path=f"{PROJECT_PATH}/releases", fields=("assets.links[].external",)),
            build_post_call(
                path=f"{PROJECT_PATH}/releases",
                fields=("assets.links[].external",),
                attributes=("assets.links[].external",),
            ),
            CallPattern(
                path=f"{PROJECT_PATH}/releases/:tag_name", fields=("assets.links[].external",)
            ),
            build_get_call(
                path=f"{PROJECT_PATH}/releases/permalink/latest",
                fields=("assets.links[].external",),
            ),
        ),
        after="Responses do not contain the field external. Requests that set it are rejected.",
        replacement="Treat every link as external.",
        hosted=True,
    ),
    _build_graphql_change(
        id="graphql-release-asset-link-external",
        kind=ReleaseChangeKind.FIELD_GONE,
        title="Field external of ReleaseAssetLink removed",
        matches=(
            NamePattern(
                where=ApiNameKind.GRAPHQL_FIELD,
                names=("external",),
                types=("ReleaseAssetLink", "ReleaseLink"),
            ),
        ),
        after="Queries with the field are rejected.",
        replacement="Treat every link as external.",
    ),
    _build_rest_change(
        id="operations-access-level",
        kind=ReleaseChangeKind.FIELD_GONE,
        title="Project attribute operations_access_level removed",
        matches=build_project_attribute_calls("operations_access_level"),
        after="Projects do not have operations_access_level. Requests that set it are rejected.",
        replacement="Use " + ", ".join(_ACCESS_LEVELS[:-1]) + f" and {_ACCESS_LEVELS[-1]}.",
        hosted=True,
        renamed={"operations_access_level": _ACCESS_LEVELS},
    ),
    _build_rest_change(
        id="merge-request-approvals",
        kind=ReleaseChangeKind.OPERATION_GONE,
        title="POST /approvals for changing merge request approvals removed",
        matches=(
            build_post_call(path=f"{PROJECT_PATH}/merge_requests/:merge_request_iid/approvals"),
        ),
        after="The operation no longer exists.",
        replacement="Use /approval_rules.",
        status=404,
    ),
    _build_rest_change(
        id="jobs-request-job-age",
        kind=ReleaseChangeKind.PARAMETER_REFUSED,
        title="Parameter job_age of POST /jobs/request removed",
        matches=(build_post_call(path=f"{API_PATH}/jobs/request", when=ParameterGiven("job_age")),),
        after="The parameter has no effect.",
        replacement="Omit the parameter.",
    ),
    _build_graphql_change(
        id="graphql-runner-status",
        kind=ReleaseChangeKind.FIELD_GONE,
        title="Runner status no longer returns paused or active",
        matches=(
            NamePattern(
                where=ApiNameKind.GRAPHQL_VALUE,
                names=("PAUSED", "ACTIVE"),
                types=("CiRunnerStatus",),
            ),
        ),
        after="The field status of a runner is never PAUSED or ACTIVE.",
        replacement="Use the boolean field paused.",
    ),
    _build_change(
        id="legacy-page-urls",
        interface=Interface.PAGES,
        kind=ReleaseChangeKind.OPERATION_GONE,
        title="Legacy URLs without the /-/ delimiter removed",
        matches=(
            build_get_call(path="/:namespace/:project/*", unless=("/api/", "/oauth/", "/-/")),
        ),
        after="URLs of project pages need /-/ after the path of the project.",
        replacement="Insert /-/ after the path of the project. API URLs do not change.",
        hosted=True,
        status=404,
    ),
    _build_rest_change(
        id="deployments-updated-at",
        kind=ReleaseChangeKind.PARAMETER_REFUSED,
        title="Deployment filters by updated_at require sorting by updated_at, and vice versa",
        matches=(
            build_get_call(
                path=f"{PROJECT_PATH}/deployments",
                when=FilterSortMismatch(
                    filters=("updated_after", "updated_before"), sort="order_by", by="updated_at"
                ),
            ),
        ),
        after="Requests with only the filter or only the sort order are rejected.",
        replacement=(
            "Use finished_after and finished_before with order_by=finished_at and status=success."
        ),
        hosted=True,
    ),
    _build_rest_change(
        id="environment-search",
        kind=ReleaseChangeKind.LIMIT_APPLIED,
        title="Environment searches under 3 characters rejected",
        matches=(
            build_get_call(path=f"{PROJECT_PATH}/environments", when=TextTooShort(3, "search")),
        ),
        after="Environment searches need at least 3 characters.",
        replacement="Search for at least 3 characters, or list all environments.",
        hosted=True,
    ),
    _build_rest_change(
        id="external-status-length",
        kind=ReleaseChangeKind.LIMIT_APPLIED,
        title="Texts of external commit statuses over 255 characters rejected",
        matches=(
            build_post_call(
                path=f"{PROJECT_PATH}/statuses/:sha",
                when=TextTooLong(255, "stage", "ref", "description", "target_url"),
            ),
        ),
        after="stage, ref, description and target_url can have at most 255 characters.",
        replacement="Send at most 255 characters.",
        hosted=True,
    ),
    _build_rest_change(
        id="tokens-without-expiry",
        kind=ReleaseChangeKind.DEFAULT_CHANGED,
        title=(
            "Personal, project and group access tokens without an expiry date expire after a year"
        ),
        matches=tuple(
            build_post_call(path=path, when=ParameterMissing("expires_at"))
            for path in (
                f"{API_PATH}/users/:id/personal_access_tokens",
                f"{API_PATH}/user/personal_access_tokens",
                f"{PROJECT_PATH}/access_tokens",
                f"{GROUP_PATH}/access_tokens",
            )
        ),
        after="Tokens without expires_at expire after a year. Existing tokens without an expiry "
        "date expire a year after the release.",
        replacement="Set expires_at, and rotate the token before that date.",
        hosted=True,
        is_strict=True,
    ),
)


RELEASE_16_7: Sequence[Change] = (
    Change(
        id="user-email-lookup-limit",
        release="16.7",
        interface=Interface.SETTINGS,
        kind=ReleaseChangeKind.FIELD_GONE,
        title="Setting user_email_lookup_limit removed",
        matches=build_setting_patterns("user_email_lookup_limit"),
        after="Settings do not have user_email_lookup_limit. Requests that set it are rejected.",
        replacement="Use search_rate_limit.",
        hosted=True,
        renamed={"user_email_lookup_limit": ("search_rate_limit",)},
    ),
)
