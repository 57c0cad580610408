"""python-gitlab manages access tokens of projects and groups."""

from datetime import timedelta
from typing import Any

import gitlab
import pytest
from gitlab.exceptions import GitlabAuthenticationError, GitlabCreateError, GitlabGetError

from tests.stories.conftest import OpenGitlab
from tests.support.accounts.people import Person, make_project, make_user, now
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.resource_tokens import Namespace, get_namespace
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("sqlite")


@pytest.fixture
def alice(gatebell: LiveGatebell) -> Person:
    """The owner of a group with a project."""
    return make_user(gatebell)


@pytest.fixture(params=["projects", "groups"])
def namespace(request: pytest.FixtureRequest, gatebell: LiveGatebell, alice: Person) -> Namespace:
    """The project, and its group."""
    return get_namespace(gatebell, request.param, make_project(gatebell, alice))


def seen(library: gitlab.Gitlab, namespace: Namespace, reference: Any) -> Any:
    """Return the library's object of a namespace without a request."""
    manager = library.projects if namespace.kind == "projects" else library.groups
    return manager.get(reference, lazy=True)


@pytest.mark.spec("G4")
@pytest.mark.parametrize("by", ["number", "path"])
def test_it_creates_lists_rotates_and_revokes_tokens_of_a_namespace(
    gatebell: LiveGatebell, open_gitlab: OpenGitlab, alice: Person, namespace: Namespace, by: str
) -> None:
    library = open_gitlab(make_token(gatebell, alice).clear)
    tokens = seen(
        library, namespace, namespace.id if by == "number" else namespace.path
    ).access_tokens
    until = (now() + timedelta(days=60)).date().isoformat()

    made = tokens.create(
        {"name": "deploy", "scopes": ["api"], "access_level": 30, "expires_at": until}
    )

    assert (made.access_level, made.active, made.expires_at) == (30, True, until)
    bot = open_gitlab(made.token)
    bot.auth()
    assert bot.user is not None
    assert bot.user.id == made.user_id
    assert [token.id for token in tokens.list(get_all=True)] == [made.id]

    token = tokens.get(made.id)
    assert token.last_used_at is not None
    token.rotate(expires_at=until)
    with pytest.raises(GitlabAuthenticationError):
        bot.auth()
    open_gitlab(token.token).auth()
    assert [each.id for each in tokens.list(get_all=True, state="active")] == [token.id]

    token.delete()
    with pytest.raises(GitlabAuthenticationError):
        open_gitlab(token.token).auth()
    assert tokens.get(token.id).revoked
    with pytest.raises(GitlabGetError) as refused:
        tokens.get(999_999_999)
    assert refused.value.response_code == 404


@pytest.mark.spec("G4")
def test_a_token_of_a_namespace_rotates_itself(
    gatebell: LiveGatebell, open_gitlab: OpenGitlab, alice: Person, namespace: Namespace
) -> None:
    library = open_gitlab(make_token(gatebell, alice).clear)
    made = seen(library, namespace, namespace.id).access_tokens.create(
        {"name": "nightly", "scopes": ["api"], "access_level": 40}
    )
    own = seen(open_gitlab(made.token), namespace, namespace.path).access_tokens

    new = own.rotate("self")

    assert new["user_id"] == made.user_id
    with pytest.raises(GitlabAuthenticationError):
        own.rotate("self")  # The old value was used, so the new one ends too.
    with pytest.raises(GitlabAuthenticationError):
        open_gitlab(new["token"]).auth()


@pytest.mark.spec("G4")
def test_it_gets_errors_for_forbidden_requests(
    gatebell: LiveGatebell, open_gitlab: OpenGitlab, alice: Person, namespace: Namespace
) -> None:
    library = open_gitlab(make_token(gatebell, alice).clear)
    tokens = seen(library, namespace, namespace.id).access_tokens

    with pytest.raises(GitlabCreateError) as refused:
        tokens.create({"name": "x", "scopes": ["root"]})
    assert refused.value.response_code == 400
    stranger = open_gitlab(make_token(gatebell, make_user(gatebell, name="bob")).clear)
    with pytest.raises(GitlabCreateError) as hidden:
        seen(stranger, namespace, namespace.id).access_tokens.create(
            {"name": "x", "scopes": ["api"]}
        )
    assert hidden.value.response_code == 404
