"""python-gitlab manages accounts, applications and settings as an administrator."""

from collections.abc import Callable

import gitlab
import pytest
from gitlab.exceptions import (
    GitlabAuthenticationError,
    GitlabCreateError,
    GitlabGetError,
    GitlabListError,
    GitlabUpdateError,
)

from tests.stories.conftest import OpenGitlab
from tests.support.accounts.administration import forget_settings
from tests.support.accounts.people import CALLBACK, Person, alice, make_user, unique
from tests.support.accounts.personal_tokens import make_token
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")
Open = Callable[[Person], gitlab.Gitlab]


@pytest.fixture
def connect(gatebell: LiveGatebell, open_gitlab: OpenGitlab) -> Open:
    """Opens the library with a user's token."""
    return lambda person: open_gitlab(make_token(gatebell, person).clear)


@pytest.fixture
def root(gatebell: LiveGatebell, connect: Open) -> gitlab.Gitlab:
    """The library with an administrator's token."""
    return connect(make_user(gatebell, name="root", admin=True))


@pytest.mark.both_databases
@pytest.mark.spec("G1", "G4")
def test_it_manages_an_account_from_creation_to_deletion(
    connect: Open, root: gitlab.Gitlab
) -> None:
    name = unique("joiner")
    user = root.users.create(
        {
            "email": f"{name}@people.example",
            "username": name,
            "name": "New Joiner",
            "password": "a guess takes longer than this",
            "skip_confirmation": True,
        }
    )
    (found,) = root.users.list(username=name, get_all=True)
    assert (found.id, found.name, found.state) == (user.id, "New Joiner", "active")

    user.name = "Jo Joiner"
    user.save()
    assert root.users.get(user.id).name == "Jo Joiner"
    person = Person(username=name, email=user.email, password="")
    theirs = connect(person)
    theirs.auth()
    assert theirs.user is not None
    assert theirs.user.name == "Jo Joiner"

    assert user.block() is True
    with pytest.raises(GitlabAuthenticationError):
        theirs.auth()
    assert root.users.list(username=name, blocked=True, get_all=True)[0].state == "blocked"
    assert user.unblock() is True
    theirs.auth()

    user.delete()
    with pytest.raises(GitlabGetError) as gone:
        root.users.get(user.id)
    assert gone.value.response_code == 404
    assert root.users.list(username=name, get_all=True) == []


@pytest.mark.spec("G1", "M2")
def test_it_follows_links_through_all_users(connect: Open, gatebell: LiveGatebell) -> None:
    made = {make_user(gatebell, name="walker").username for _ in range(5)}
    library = connect(alice(gatebell))
    walks = [
        library.users.list(iterator=True, per_page=2, search="walker"),
        library.users.list(
            iterator=True, per_page=2, search="walker", pagination="keyset", order_by="id"
        ),
    ]
    for walk in walks:
        assert {user.username for user in walk} == made
    with pytest.raises(GitlabListError) as refused:
        library.users.list(page=2, get_all=False)
    assert "keyset" in str(refused.value.response_body)


@pytest.mark.spec("G1")
def test_errors_name_the_parameter(
    root: gitlab.Gitlab, connect: Open, gatebell: LiveGatebell
) -> None:
    with pytest.raises(GitlabCreateError) as refused:
        root.users.create({"username": "a b", "email": "nowhere", "name": "x", "password": "short"})
    assert refused.value.response_code == 400
    taken = alice(gatebell)
    with pytest.raises(GitlabCreateError) as conflict:
        root.users.create(
            {
                "username": taken.username,
                "email": f"other-{taken.email}",
                "name": "x",
                "password": "a guess takes longer than this",
            }
        )
    assert conflict.value.response_code == 409
    with pytest.raises(GitlabCreateError) as forbidden:
        connect(taken).users.create({"username": "x", "email": "x@people.example", "name": "x"})
    assert forbidden.value.response_code == 403


@pytest.mark.spec("F1", "F2", "F4")
def test_it_keeps_applications_of_the_instance(root: gitlab.Gitlab) -> None:
    name = unique("Wiki")
    made = root.applications.create(
        {"name": name, "redirect_uri": CALLBACK, "scopes": "read_user", "confidential": True}
    )
    assert made.secret.startswith("gbs-")
    listed = {each.id: each for each in root.applications.list(get_all=True)}
    assert listed[made.id].application_name == name
    assert not hasattr(listed[made.id], "secret")
    root.applications.delete(made.id)
    assert made.id not in {each.id for each in root.applications.list(get_all=True)}
    with pytest.raises(GitlabCreateError) as refused:
        root.applications.create({"name": name, "redirect_uri": "nowhere", "scopes": "read_user"})
    assert refused.value.response_code == 400


def test_it_changes_settings_and_appearance(gatebell: LiveGatebell, root: gitlab.Gitlab) -> None:
    try:
        settings = root.settings.get()
        settings.minimum_password_length = 13
        settings.save()
        assert root.settings.get().minimum_password_length == 13
        with pytest.raises(GitlabUpdateError) as refused:
            root.settings.update(new_data={"minimum_password_length": 1})
        assert refused.value.response_code == 400

        appearance = root.appearance.get()
        appearance.title = "Acme"
        appearance.description = "Ask **Eve** for an account."
        appearance.save()
        seen = root.appearance.get()
        assert (seen.title, seen.description) == ("Acme", "Ask **Eve** for an account.")
    finally:
        forget_settings(gatebell)


def test_it_knows_the_release(root: gitlab.Gitlab) -> None:
    assert root.version() == ("18.0.0", "gatebell")
