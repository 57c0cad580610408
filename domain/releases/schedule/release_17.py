"""Changes of releases 17.0 to 17.5."""

from collections.abc import Sequence
from functools import partial

from domain.releases.changes import Call, Change, Interface, Kind, Names, Where
from domain.releases.conditions import AboveOne, Given
from domain.releases.schedule.calls import (
    API,
    GROUP,
    PROJECT,
    REGISTRATION_ENDED,
    SETTINGS,
    project_attribute,
)

_change = partial(Change, release="17.0")
_rest = partial(_change, interface=Interface.REST)

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
    _rest(
        id="users-offset-pagination",
        kind=Kind.PARAMETER_REFUSED,
        title="Offset pagination of /users removed",
        matches=(Call(methods=("GET",), path=f"{API}/users", when=AboveOne("page")),),
        after="Requests with page above 1 are rejected.",
        replacement="Use pagination=keyset, order_by=id and the URL with rel=next in Link.",
        hosted=True,
    ),
    _rest(
        id="ci-job-token-scope-enabled",
        kind=Kind.FIELD_GONE,
        title="Project attribute ci_job_token_scope_enabled removed",
        matches=project_attribute("ci_job_token_scope_enabled"),
        after=(
            "Projects do not have ci_job_token_scope_enabled. Requests that set it are rejected."
        ),
        replacement="Use the job token scope API, /projects/:id/job_token_scope.",
        hosted=True,
    ),
    _rest(
        id="feature-flag-version",
        kind=Kind.FIELD_GONE,
        title="Field version of feature flags removed",
        matches=(
            Call(path=f"{PROJECT}/feature_flags", fields=("version",), attributes=("version",)),
            Call(
                path=f"{PROJECT}/feature_flags/:name",
                fields=("version",),
                attributes=("version",),
            ),
        ),
        after="Feature flags do not have the field version.",
        replacement="Omit the field. All feature flags use the new version.",
    ),
    _rest(
        id="packages-pipelines",
        kind=Kind.FIELD_GONE,
        title="Attribute pipelines of /api/v4/projects/:id/packages removed",
        matches=(
            Call(methods=("GET",), path=f"{PROJECT}/packages", fields=("pipelines",)),
            Call(methods=("GET",), path=f"{PROJECT}/packages/:package_id", fields=("pipelines",)),
        ),
        after="Packages do not have the attribute pipelines.",
        replacement="Use /projects/:id/packages/:package_id/pipelines.",
    ),
    _change(
        id="sign-in-text",
        interface=Interface.SETTINGS,
        kind=Kind.FIELD_GONE,
        title="Settings sign_in_text and help_text removed",
        matches=(
            Call(methods=("GET",), path=SETTINGS, fields=("sign_in_text", "help_text")),
            Call(
                methods=("PUT",),
                path=SETTINGS,
                fields=("sign_in_text", "help_text"),
                attributes=("sign_in_text", "help_text"),
            ),
            Names(where=Where.SETTING, names=("sign_in_text", "help_text")),
        ),
        after=(
            "Settings do not have sign_in_text and help_text. Requests that set them are rejected."
        ),
        replacement="Use the field description of the Appearance API, /application/appearance.",
        hosted=True,
    ),
    _change(
        id="jwks-alias",
        interface=Interface.OAUTH,
        kind=Kind.OPERATION_GONE,
        title="Alias /-/jwks of /oauth/discovery/keys removed",
        matches=(Call(methods=("GET",), path="/-/jwks"),),
        after="The URL no longer exists.",
        replacement="Use /oauth/discovery/keys.",
        hosted=True,
        status=404,
    ),
    _change(
        id="ci-job-jwt",
        interface=Interface.CI,
        kind=Kind.FIELD_GONE,
        title="ID token variables CI_JOB_JWT, CI_JOB_JWT_V1 and CI_JOB_JWT_V2 removed",
        matches=(
            Names(
                where=Where.CI_VARIABLE,
                names=("CI_JOB_JWT", "CI_JOB_JWT_V1", "CI_JOB_JWT_V2"),
            ),
        ),
        after="Jobs no longer have these variables.",
        replacement=(
            "Use ID tokens (id_tokens, since release 15.7). They follow OpenID Connect, and their "
            "iss claim is a fully qualified domain name."
        ),
    ),
    _change(
        id="graphql-token-types",
        interface=Interface.GRAPHQL,
        kind=Kind.LIMIT_APPLIED,
        title="GraphQL access only through documented token types",
        matches=(Names(where=Where.GRAPHQL_ENDPOINT, names=("deploy_token", "deploy-token")),),
        after="Requests with a token of another type are rejected.",
        replacement="Use a documented token type, such as a personal access token.",
        status=401,
        is_strict=True,
    ),
    _rest(
        id="runner-registration",
        kind=Kind.OPERATION_GONE,
        title="POST /runners with a registration token or runner arguments removed",
        matches=(Call(methods=("POST",), path=f"{API}/runners", when=Given(*_RUNNER_ARGUMENTS)),),
        after=(
            "Requests with a registration token, or with the runner arguments locked, access "
            "level, run untagged, maximum timeout, paused, tag list or maintenance note, return "
            "410 Gone."
        ),
        replacement=REGISTRATION_ENDED,
        hosted=True,
        status=410,
    ),
    _change(
        id="graphql-runner-projects-sort",
        interface=Interface.GRAPHQL,
        kind=Kind.DEFAULT_CHANGED,
        title="Default sort of CiRunner.projects changes from id_asc to id_desc",
        matches=(
            Names(
                where=Where.GRAPHQL_FIELD,
                names=("projects",),
                types=("CiRunner",),
                unless=("sort",),
            ),
        ),
        after="Projects of a runner are sorted by descending id.",
        replacement="Use sort: ID_ASC for the previous order.",
    ),
    _rest(
        id="group-member-roles",
        kind=Kind.OPERATION_GONE,
        title="Member roles of groups moved to the instance",
        matches=(
            Call(path=f"{GROUP}/member_roles"),
            Call(path=f"{GROUP}/member_roles/:member_role_id"),
        ),
        after="Member roles are managed for the whole instance.",
        replacement="Use /member_roles.",
        hosted=True,
        status=404,
    ),
    _change(
        id="public-download-events",
        interface=Interface.AUDIT,
        kind=Kind.DEFAULT_CHANGED,
        title="Downloads of public projects have a separate audit event",
        matches=(Names(where=Where.EVENT, names=("repository_download_operation",)),),
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
        kind=Kind.LIMIT_APPLIED,
        title="TLS 1.2 and keys with 112 bits of security required",
        matches=(Names(where=Where.PROTOCOL, names=("TLSv1", "TLSv1.0", "TLSv1.1")),),
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
