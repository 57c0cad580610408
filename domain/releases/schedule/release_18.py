"""Changes in release 18.0."""

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
    PROJECT_LIST_PATHS,
    PROJECT_PATH,
    REGISTRATION_REPLACEMENT,
    build_get_call,
    build_post_call,
    build_put_call,
)

_build_change = partial(Change, release="18.0")
_build_rest_change = partial(_build_change, interface=Interface.REST)
_build_graphql_change = partial(_build_change, interface=Interface.GRAPHQL)


def _build_token_reset_removal(of: str, path: str) -> Change:
    """Return the change that removes an operation for resetting a registration token."""
    return _build_rest_change(
        id=f"{of}-runners-reset-registration-token",
        kind=ReleaseChangeKind.OPERATION_GONE,
        title=f"POST {path.removeprefix(API_PATH)}/reset_registration_token removed",
        matches=(build_post_call(path=f"{path}/reset_registration_token"),),
        after="The operation returns 410 Gone.",
        replacement=REGISTRATION_REPLACEMENT,
        hosted=True,
        status=410,
    )


RELEASE_18: Sequence[Change] = (
    _build_rest_change(
        id="ci-lint-ref",
        kind=ReleaseChangeKind.PARAMETER_REFUSED,
        title="Parameters ref and sha of GET /projects/:id/ci/lint removed",
        matches=(
            build_get_call(path=f"{PROJECT_PATH}/ci/lint", when=ParameterGiven("ref", "sha")),
        ),
        after="Requests with the parameters are rejected.",
        replacement="Use content_ref and dry_run_ref.",
    ),
    _build_token_reset_removal("instance", f"{API_PATH}/runners"),
    _build_token_reset_removal("project", f"{PROJECT_PATH}/runners"),
    _build_token_reset_removal("group", f"{GROUP_PATH}/runners"),
    _build_rest_change(
        id="registry-tags-offset-pagination",
        kind=ReleaseChangeKind.PARAMETER_REFUSED,
        title="Offset pagination of registry repository tags removed",
        matches=(
            build_get_call(
                path=f"{PROJECT_PATH}/registry/repositories/:repository_id/tags",
                when=NumberAboveOne("page"),
            ),
        ),
        after="Requests with page above 1 are rejected.",
        replacement="Use pagination=keyset and the URL with rel=next in Link.",
        hosted=True,
    ),
    _build_rest_change(
        id="require-password-to-approve",
        kind=ReleaseChangeKind.FIELD_GONE,
        title="Field require_password_to_approve removed",
        matches=(
            CallPattern(
                path=f"{PROJECT_PATH}/approvals",
                fields=("require_password_to_approve",),
                attributes=("require_password_to_approve",),
            ),
        ),
        after="Approval settings do not have require_password_to_approve.",
        replacement="Use require_reauthentication_to_approve.",
    ),
    _build_change(
        id="dependency-proxy-scopes",
        interface=Interface.CI,
        kind=ReleaseChangeKind.LIMIT_APPLIED,
        title="Dependency proxy checks the scopes of group and personal access tokens",
        matches=(
            NamePattern(
                where=ApiNameKind.CI_VARIABLE,
                names=(
                    "CI_DEPENDENCY_PROXY_SERVER",
                    "CI_DEPENDENCY_PROXY_GROUP_IMAGE_PREFIX",
                    "CI_DEPENDENCY_PROXY_DIRECT_GROUP_IMAGE_PREFIX",
                ),
            ),
            NamePattern(where=ApiNameKind.SCOPE, names=("dependency_proxy",)),
        ),
        after="Sign-ins and pulls with a token that lacks the required scopes fail.",
        replacement="Use a token with the scopes read_registry and write_registry.",
        status=403,
        is_strict=True,
    ),
    _build_change(
        id="protected-variables-downstream",
        interface=Interface.CI,
        kind=ReleaseChangeKind.LIMIT_APPLIED,
        title="Protected variables forwarded only inside their project or group",
        matches=(
            NamePattern(
                where=ApiNameKind.CI_KEYWORD, names=("trigger:forward:pipeline_variables",)
            ),
        ),
        after=(
            "Protected variables of a project are only forwarded to downstream pipelines of the "
            "same project, and protected variables of a group to pipelines of the same group."
        ),
        replacement="Define the variable in the downstream project or group.",
        is_strict=True,
    ),
    _build_graphql_change(
        id="graphql-runner-active",
        kind=ReleaseChangeKind.FIELD_GONE,
        title="Runner identifiers renamed from active to paused",
        matches=(
            NamePattern(where=ApiNameKind.GRAPHQL_FIELD, names=("active",), types=("CiRunner",)),
            NamePattern(
                where=ApiNameKind.GRAPHQL_ARGUMENT,
                names=("active",),
                types=("runners", "runnerUpdate", "RunnerUpdateInput"),
            ),
        ),
        after="Queries with active are rejected.",
        replacement="Use paused, with the opposite value.",
    ),
    _build_graphql_change(
        id="graphql-previous-stage-jobs-or-needs",
        kind=ReleaseChangeKind.FIELD_GONE,
        title="Field previousStageJobsOrNeeds removed",
        matches=(
            NamePattern(where=ApiNameKind.GRAPHQL_FIELD, names=("previousStageJobsOrNeeds",)),
        ),
        after="Queries with the field are rejected.",
        replacement="Use previousStageJobs or needs.",
    ),
    _build_graphql_change(
        id="graphql-add-on-purchase",
        kind=ReleaseChangeKind.FIELD_GONE,
        title="Field add_on_purchase replaced by add_on_purchases",
        matches=(
            NamePattern(
                where=ApiNameKind.GRAPHQL_FIELD, names=("addOnPurchase", "add_on_purchase")
            ),
        ),
        after="Queries with the field are rejected.",
        replacement="Use add_on_purchases (addOnPurchases).",
    ),
    _build_graphql_change(
        id="graphql-runner-setup",
        kind=ReleaseChangeKind.OPERATION_GONE,
        title="Queries runnerPlatforms and runnerSetup removed",
        matches=(
            NamePattern(where=ApiNameKind.GRAPHQL_FIELD, names=("runnerPlatforms", "runnerSetup")),
        ),
        after="The queries are rejected.",
        replacement="Read the installation guide of the runner.",
    ),
    _build_rest_change(
        id="notes-confidentiality",
        kind=ReleaseChangeKind.PARAMETER_REFUSED,
        title="Confidentiality of notes can no longer be toggled",
        matches=(
            build_put_call(
                path=f"{PROJECT_PATH}/:noteable/:iid/notes/:note_id",
                when=ParameterGiven("confidential", "internal"),
            ),
            NamePattern(
                where=ApiNameKind.GRAPHQL_ARGUMENT,
                names=("confidential", "internal"),
                types=("updateNote", "UpdateNoteInput"),
            ),
        ),
        after="Requests that change confidential or internal of a note are rejected.",
        replacement="Set internal when you create the note. To change it, delete the note and "
        "create it again.",
        hosted=True,
    ),
    _build_rest_change(
        id="api-rate-limits",
        kind=ReleaseChangeKind.LIMIT_APPLIED,
        title="Rate limits on common user, project and group endpoints enabled by default",
        matches=tuple(
            build_get_call(path=path)
            for path in (
                f"{API_PATH}/users",
                f"{API_PATH}/users/:id",
                *PROJECT_LIST_PATHS[:2],
                PROJECT_PATH,
                f"{API_PATH}/groups",
                GROUP_PATH,
            )
        ),
        after="Requests above the limit return 429 with rate limit headers.",
        replacement="Wait for the time in Retry-After, and request larger pages.",
        hosted=True,
        status=429,
        is_strict=True,
    ),
)
