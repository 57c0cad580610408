"""python-gitlab and gitbeaker with four releases: which steps work, and which fail.

Both send `Platform-Release`, as a consumer does who rehearses a release.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gitlab
import pytest
from gitlab.exceptions import GitlabError, GitlabHttpError

from tests.stories.javascript import install, run_script
from tests.support.accounts.administration import get_shared_administrator
from tests.support.accounts.people import make_project, make_user, unique
from tests.support.accounts.personal_tokens import make_token
from tests.support.service.live import LiveGatebell

pytestmark = [pytest.mark.one_database("sqlite"), pytest.mark.spec("M2", "M5")]

FOLDER = Path(__file__).parents[1] / "gitbeaker"
SHA = "0123456789abcdef0123456789abcdef01234567"
RELEASES = ("15.11", "16.0", "17.0", "18.0")
WORKS = "works"

Step = Callable[[gitlab.Gitlab, Any], object]
#: Steps of a script of 2022, and the first release that rejects each step.
STEPS: Mapping[str, tuple[Step, str | None]] = {
    "account": (lambda api, _project: api.auth(), None),
    "users, by page": (lambda api, _project: api.users.list(page=2, per_page=1), "17.0"),
    "users, by key": (
        lambda api, _project: api.users.list(
            pagination="keyset", order_by="id", per_page=1, get_all=False
        ),
        None,
    ),
    "projects": (lambda api, _project: api.projects.list(membership=True, get_all=False), None),
    "one access level": (
        lambda api, project: api.projects.update(
            project.id, {"operations_access_level": "private"}
        ),
        "16.0",
    ),
    "job tokens": (
        lambda api, project: api.projects.update(project.id, {"ci_job_token_scope_enabled": True}),
        "17.0",
    ),
    "deployments by change": (
        lambda _api, project: project.deployments.list(
            updated_after="2027-01-01T00:00:00Z", get_all=False
        ),
        "16.0",
    ),
    "deployments by end": (
        lambda _api, project: project.deployments.list(
            finished_after="2027-01-01T00:00:00Z",
            order_by="finished_at",
            status="success",
            get_all=False,
        ),
        None,
    ),
    "environments like pr": (
        lambda _api, project: project.environments.list(search="pr", get_all=False),
        "16.0",
    ),
    "long status": (
        lambda _api, project: project.commits.get(SHA, lazy=True).statuses.create(
            {"state": "success", "description": "x" * 256}
        ),
        "16.0",
    ),
    "release": (
        lambda _api, project: project.releases.create({"tag_name": unique("v"), "description": ""}),
        None,
    ),
    "sign-in text": (
        lambda api, _project: _save(api.settings.get(), sign_in_text="Welcome"),
        "17.0",
    ),
    "lookup limit": (
        lambda api, _project: _save(api.settings.get(), user_email_lookup_limit=60),
        "16.7",
    ),
    "appearance": (
        lambda api, _project: _save(api.appearance.get(), description="Welcome"),
        None,
    ),
}


def _save(resource: Any, **values: Any) -> None:
    for name, value in values.items():
        setattr(resource, name, value)
    resource.save()


def _outcome(step: Step, api: gitlab.Gitlab, project: Any) -> str | int | None:
    try:
        step(api, project)
    except (GitlabError, GitlabHttpError) as error:
        return error.response_code
    return WORKS


def _is_before(release: str, end: str | None) -> bool:
    numbers = [tuple(map(int, each.split("."))) for each in (release, end or "1000.0")]
    return numbers[0] < numbers[1]


@pytest.mark.parametrize("release", RELEASES)
def test_a_script_of_python_gitlab_fails_according_to_the_schedule(
    gatebell: LiveGatebell, release: str
) -> None:
    owner = get_shared_administrator(gatebell)
    api = gitlab.Gitlab(gatebell.url, private_token=make_token(gatebell, owner).clear)
    api.session.trust_env = False
    api.headers["Platform-Release"] = release
    project = api.projects.get(make_project(gatebell, owner))
    outcomes = {name: _outcome(step, api, project) for name, (step, _end) in STEPS.items()}
    api.session.close()
    assert outcomes == {
        name: WORKS if _is_before(release, end) else 400 for name, (_step, end) in STEPS.items()
    }


@pytest.mark.long
@pytest.mark.parametrize("release", RELEASES)
def test_a_script_of_gitbeaker_fails_according_to_the_schedule(
    gatebell: LiveGatebell, release: str
) -> None:
    install(FOLDER)
    owner = make_user(gatebell)
    done = run_script(
        FOLDER,
        {
            "host": gatebell.url,
            "token": make_token(gatebell, owner).clear,
            "project": make_project(gatebell, owner),
            "release": release,
        },
        script="releases.mjs",
    )
    in_16, in_17 = _is_before(release, "16.0"), _is_before(release, "17.0")
    assert done == {
        "user": WORKS,
        "usersByPage": WORKS if in_17 else 400,
        "usersByKey": WORKS,
        "project": WORKS,
        "oneAccessLevel": WORKS if in_16 else 400,
        "deploymentsByChange": WORKS if in_16 else 400,
        "environmentsLikePr": WORKS if in_16 else 400,
        "linksAreExternal": in_16,
    }
