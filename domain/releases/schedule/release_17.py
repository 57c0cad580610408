"""Changes in releases 17.0 to 17.5."""

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
from domain.releases.conditions import NumberAboveOne, ParameterGiven
from domain.releases.schedule.calls import (
    API_PATH,
    GROUP_PATH,
    PROJECT_PATH,
    REGISTRATION_REPLACEMENT,
    build_get_call,
    build_post_call,
    build_project_attribute_calls,
    build_setting_patterns,
)

_build_change = partial(Change, release="17.0")
_build_rest_change = partial(_build_change, interface=Interface.REST)
_build_graphql_change = partial(_build_change, interface=Interface.GRAPHQL)

_RUNNER_ARGUMENTS = (
    "token",
    "locked",
    "access_level",
    "run_untagged",
    "maximum_timeout",
    "paused",
    "active",
    "tag_list",
    "maintenance_note",
)
RELEASE_17: Sequence[Change] = (
    _build_rest_change(
        id="users-offset-pagination",
        kind=ReleaseChangeKind.PARAMETER_REFUSED,
        title="Offset pagination of /users removed",
        matches=(build_get_call(path=f"{API_PATH}/users", when=NumberAboveOne("page")),),
        after="Requests with page above 1 are rejected.",
        replacement="Use pagination=keyset, order_by=id and the URL with rel=next in Link.",
        hosted=True,
    ),
    _build_rest_change(
        id="ci-job-token-scope-enabled",
        kind=ReleaseChangeKind.FIELD_GONE,
        title="Project attribute ci_job_token_scope_enabled removed",
        matches=build_project_attribute_calls("ci_job_token_scope_enabled"),
        after=(
            "Projects do not have ci_job_token_scope_enabled. Requests that set it are rejected."
        ),
        replacement="Use the job token scope API, /projects/:id/job_token_scope.",
        hosted=True,
    ),
    _build_rest_change(
        id="feature-flag-version",
        kind=ReleaseChangeKind.FIELD_GONE,
        title="Field version of feature flags removed",
        matches=(
            CallPattern(
                path=f"{PROJECT_PATH}/feature_flags", fields=("version",), attributes=("version",)
            ),
            CallPattern(
                path=f"{PROJECT_PATH}/feature_flags/:name",
                fields=("version",),
                attributes=("version",),
            ),
        ),
        after="Feature flags do not have the field version.",
        replacement="Omit the field. All feature flags use the new version.",
    ),
    _build_rest_change(
        id="packages-pipelines",
        kind=ReleaseChangeKind.FIELD_GONE,
        title="Attribute pipelines of /api/v4/projects/:id/packages removed",
        matches=(
            build_get_call(path=f"{PROJECT_PATH}/packages", fields=("pipelines",)),
            build_get_call(path=f"{PROJECT_PATH}/packages/:package_id", fields=("pipelines",)),
        ),
        after="Packages do not have the attribute pipelines.",
        replacement="Use /projects/:id/packages/:package_id/pipelines.",
    ),
    _build_change(
        id="sign-in-text",
        interface=Interface.SETTINGS,
        kind=ReleaseChangeKind.FIELD_GONE,
        title="Settings sign_in_text and help_text removed",
        matches=build_setting_patterns("sign_in_text", "help_text"),
        after=(
            "Settings do not have sign_in_text and help_text. Requests that set them are rejected."
        ),
        replacement="Use the field description of the Appearance API, /application/appearance.",
        hosted=True,
    ),
    _build_change(
        id="jwks-alias",
        interface=Interface.OAUTH,
        kind=ReleaseChangeKind.OPERATION_GONE,
        title="Alias /-/jwks of /oauth/discovery/keys removed",
        matches=(build_get_call(path="/-/jwks"),),
        after="The URL no longer exists.",
        replacement="Use /oauth/discovery/keys.",
        hosted=True,
        status=404,
    ),
    _build_change(
        id="ci-job-jwt",
        interface=Interface.CI,
        kind=ReleaseChangeKind.FIELD_GONE,
        title="ID token variables CI_JOB_JWT, CI_JOB_JWT_V1 and CI_JOB_JWT_V2 removed",
        matches=(
            NamePattern(
                where=ApiNameKind.CI_VARIABLE,
                names=("CI_JOB_JWT", "CI_JOB_JWT_V1", "CI_JOB_JWT_V2"),
            ),
        ),
        after="Jobs no longer have these variables.",
        replacement=(
            "Use ID tokens (id_tokens, since release 15.7). They follow OpenID Connect, and their "
            "iss claim is a fully qualified domain name."
        ),
    ),
    _build_graphql_change(
        id="graphql-token-types",
        kind=ReleaseChangeKind.LIMIT_APPLIED,
        title="GraphQL access only through documented token types",
        matches=(
            NamePattern(where=ApiNameKind.GRAPHQL_ENDPOINT, names=("deploy_token", "deploy-token")),
        ),
        after="Requests with a token of another type are rejected.",
        replacement="Use a documented token type, such as a personal access token.",
        status=401,
        is_strict=True,
    ),
    _build_rest_change(
        id="runner-registration",
        kind=ReleaseChangeKind.OPERATION_GONE,
        title="POST /runners with a registration token or runner arguments removed",
        matches=(
            build_post_call(path=f"{API_PATH}/runners", when=ParameterGiven(*_RUNNER_ARGUMENTS)),
        ),
        after=(
            "Requests with a registration token, or with the runner arguments locked, access "
            "level, run untagged, maximum timeout, paused, tag list or maintenance note, return "
            "410 Gone."
        ),
        replacement=REGISTRATION_REPLACEMENT,
        hosted=True,
        status=410,
    ),
    _build_graphql_change(
        id="graphql-runner-projects-sort",
        kind=ReleaseChangeKind.DEFAULT_CHANGED,
        title="Default sort of CiRunner.projects changes from id_asc to id_desc",
        matches=(
            NamePattern(
                where=ApiNameKind.GRAPHQL_FIELD,
                names=("projects",),
                types=("CiRunner",),
                unless=("sort",),
            ),
        ),
        after="Projects of a runner are sorted by descending id.",
        replacement="Use sort: ID_ASC for the previous order.",
    ),
    _build_rest_change(
        id="group-member-roles",
        kind=ReleaseChangeKind.OPERATION_GONE,
        title="Member roles of groups moved to the instance",
        matches=(
            CallPattern(path=f"{GROUP_PATH}/member_roles"),
            CallPattern(path=f"{GROUP_PATH}/member_roles/:member_role_id"),
        ),
        after="Member roles are managed for the whole instance.",
        replacement="Use /member_roles.",
        hosted=True,
        status=404,
    ),
    _build_change(
        id="public-download-events",
        interface=Interface.AUDIT,
        kind=ReleaseChangeKind.DEFAULT_CHANGED,
        title="Downloads of public projects have a separate audit event",
        matches=(NamePattern(where=ApiNameKind.EVENT, names=("repository_download_operation",)),),
        after=(
            "repository_download_operation covers only private and internal projects. Downloads "
            "of public projects are public_repository_download_operation, which is only streamed."
        ),
        replacement="Stream public_repository_download_operation.",
        hosted=True,
        is_strict=True,
    ),
)


RELEASE_17_5: Sequence[Change] = (
    Change(
        id="tls-versions",
        release="17.5",
        interface=Interface.TLS,
        kind=ReleaseChangeKind.LIMIT_APPLIED,
        title="TLS 1.2 and keys with 112 bits of security required",
        matches=(NamePattern(where=ApiNameKind.PROTOCOL, names=("TLSv1", "TLSv1.0", "TLSv1.1")),),
        after=(
            "Incoming and outgoing connections require TLS 1.2 or later. RSA, DSA and DH keys "
            "need at least 2048 bits, and ECC keys at least 224 bits."
        ),
        replacement="Use TLS 1.2 or 1.3, and a larger key.",
        hosted=True,
        is_strict=True,
        is_always_applied=True,
    ),
)
