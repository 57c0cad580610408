"""Changes of release 18.0."""

from collections.abc import Sequence
from functools import partial

from domain.releases.changes import Call, Change, Interface, Kind, Names, Where
from domain.releases.conditions import AboveOne, Given
from domain.releases.schedule.calls import (
    API,
    GROUP,
    PROJECT,
    PROJECT_LISTS,
    REGISTRATION_ENDED,
)

_change = partial(Change, release="18.0")
_rest = partial(_change, interface=Interface.REST)


def _reset(of: str, path: str) -> Change:
    """Return the removal of an operation that resets a registration token."""
    return _rest(
        id=f"{of}-runners-reset-registration-token",
        kind=Kind.OPERATION_GONE,
        title=f"POST {path.removeprefix(API)}/reset_registration_token removed",
        matches=(Call(methods=("POST",), path=f"{path}/reset_registration_token"),),
        after="The operation returns 410 Gone.",
        replacement=REGISTRATION_ENDED,
        hosted=True,
        status=410,
    )


RELEASE_18: Sequence[Change] = (
    _rest(
        id="ci-lint-ref",
        kind=Kind.PARAMETER_REFUSED,
        title="Parameters ref and sha of GET /projects/:id/ci/lint removed",
        matches=(Call(methods=("GET",), path=f"{PROJECT}/ci/lint", when=Given("ref", "sha")),),
        after="Requests with the parameters are rejected.",
        replacement="Use content_ref and dry_run_ref.",
    ),
    _reset("instance", f"{API}/runners"),
    _reset("project", f"{PROJECT}/runners"),
    _reset("group", f"{GROUP}/runners"),
    _rest(
        id="registry-tags-offset-pagination",
        kind=Kind.PARAMETER_REFUSED,
        title="Offset pagination of registry repository tags removed",
        matches=(
            Call(
                methods=("GET",),
                path=f"{PROJECT}/registry/repositories/:repository_id/tags",
                when=AboveOne("page"),
            ),
        ),
        after="Requests with page above 1 are rejected.",
        replacement="Use pagination=keyset and the URL with rel=next in Link.",
        hosted=True,
    ),
    _rest(
        id="require-password-to-approve",
        kind=Kind.FIELD_GONE,
        title="Field require_password_to_approve removed",
        matches=(
            Call(
                path=f"{PROJECT}/approvals",
                fields=("require_password_to_approve",),
                attributes=("require_password_to_approve",),
            ),
        ),
        after="Approval settings do not have require_password_to_approve.",
        replacement="Use require_reauthentication_to_approve.",
    ),
    _change(
        id="dependency-proxy-scopes",
        interface=Interface.CI,
        kind=Kind.LIMIT_APPLIED,
        title="Dependency proxy checks the scopes of group and personal access tokens",
        matches=(
            Names(
                where=Where.CI_VARIABLE,
                names=(
                    "CI_DEPENDENCY_PROXY_SERVER",
                    "CI_DEPENDENCY_PROXY_GROUP_IMAGE_PREFIX",
                    "CI_DEPENDENCY_PROXY_DIRECT_GROUP_IMAGE_PREFIX",
                ),
            ),
            Names(where=Where.SCOPE, names=("dependency_proxy",)),
        ),
        after="Sign-ins and pulls with a token that lacks the required scopes fail.",
        replacement="Use a token with the scopes read_registry and write_registry.",
        status=403,
        is_strict=True,
    ),
    _change(
        id="protected-variables-downstream",
        interface=Interface.CI,
        kind=Kind.LIMIT_APPLIED,
        title="Protected variables forwarded only inside their project or group",
        matches=(Names(where=Where.CI_KEYWORD, names=("trigger:forward:pipeline_variables",)),),
        after=(
            "Protected variables of a project are only forwarded to downstream pipelines of the "
            "same project, and protected variables of a group to pipelines of the same group."
        ),
        replacement="Define the variable in the downstream project or group.",
        is_strict=True,
    ),
    _change(
        id="graphql-runner-active",
        interface=Interface.GRAPHQL,
        kind=Kind.FIELD_GONE,
        title="Runner identifiers renamed from active to paused",
        matches=(
            Names(where=Where.GRAPHQL_FIELD, names=("active",), types=("CiRunner",)),
            Names(
                where=Where.GRAPHQL_ARGUMENT,
                names=("active",),
                types=("runners", "runnerUpdate", "RunnerUpdateInput"),
            ),
        ),
        after="Queries with active are rejected.",
        replacement="Use paused, with the opposite value.",
    ),
    _change(
        id="graphql-previous-stage-jobs-or-needs",
        interface=Interface.GRAPHQL,
        kind=Kind.FIELD_GONE,
        title="Field previousStageJobsOrNeeds removed",
        matches=(Names(where=Where.GRAPHQL_FIELD, names=("previousStageJobsOrNeeds",)),),
        after="Queries with the field are rejected.",
        replacement="Use previousStageJobs or needs.",
    ),
    _change(
        id="graphql-add-on-purchase",
        interface=Interface.GRAPHQL,
        kind=Kind.FIELD_GONE,
        title="Field add_on_purchase replaced by add_on_purchases",
        matches=(Names(where=Where.GRAPHQL_FIELD, names=("addOnPurchase", "add_on_purchase")),),
        after="Queries with the field are rejected.",
        replacement="Use add_on_purchases (addOnPurchases).",
    ),
    _change(
        id="graphql-runner-setup",
        interface=Interface.GRAPHQL,
        kind=Kind.OPERATION_GONE,
        title="Queries runnerPlatforms and runnerSetup removed",
        matches=(Names(where=Where.GRAPHQL_FIELD, names=("runnerPlatforms", "runnerSetup")),),
        after="The queries are rejected.",
        replacement="Read the installation guide of the runner.",
    ),
    _rest(
        id="notes-confidentiality",
        kind=Kind.PARAMETER_REFUSED,
        title="Confidentiality of notes can no longer be toggled",
        matches=(
            Call(
                methods=("PUT",),
                path=f"{PROJECT}/:noteable/:iid/notes/:note_id",
                when=Given("confidential", "internal"),
            ),
            Names(
                where=Where.GRAPHQL_ARGUMENT,
                names=("confidential", "internal"),
                types=("updateNote", "UpdateNoteInput"),
            ),
        ),
        after="Requests that change confidential or internal of a note are rejected.",
        replacement="Set internal when you create the note. To change it, delete the note and "
        "create it again.",
        hosted=True,
    ),
    _rest(
        id="api-rate-limits",
        kind=Kind.LIMIT_APPLIED,
        title="Rate limits on common user, project and group endpoints enabled by default",
        matches=tuple(
            Call(methods=("GET",), path=path)
            for path in (
                f"{API}/users",
                f"{API}/users/:id",
                *PROJECT_LISTS[:2],
                PROJECT,
                f"{API}/groups",
                GROUP,
            )
        ),
        after="Requests above the limit return 429 with rate limit headers.",
        replacement="Wait for the time in Retry-After, and request larger pages.",
        hosted=True,
        status=429,
        is_strict=True,
    ),
)
