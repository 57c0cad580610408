"""python-gitlab creates a group with a project and members, archives it, and deletes everything."""

from typing import Any

import gitlab
import pytest
from gitlab.exceptions import GitlabGetError, GitlabUpdateError

from domain.accounts.users import get_user
from tests.stories.conftest import OpenGitlab
from tests.support.accounts.people import database_of, make_user, unique
from tests.support.accounts.personal_tokens import make_token
from tests.support.service.live import LiveGatebell

pytestmark = pytest.mark.one_database("postgres")


@pytest.fixture
def library(gatebell: LiveGatebell, open_gitlab: OpenGitlab) -> gitlab.Gitlab:
    """The library with the token of a new user."""
    return open_gitlab(make_token(gatebell, make_user(gatebell)).clear)


@pytest.mark.long
@pytest.mark.both_databases
@pytest.mark.spec("G1")
def test_a_script_creates_and_deletes_a_group_and_a_project(
    gatebell: LiveGatebell, library: gitlab.Gitlab
) -> None:
    bob = make_user(gatebell, name="bob")
    name = unique("acme")
    group = library.groups.create({"name": "Acme", "path": name})
    below = library.groups.create({"name": "Shops", "path": "shops", "parent_id": group.id})
    assert library.groups.get(f"{name}/shops").full_name == "Acme / Shops"
    assert [each.id for each in group.subgroups.list()] == [below.id]
    assert [each.id for each in library.namespaces.list(get_all=True)] == [group.id, below.id]
    assert library.namespaces.get(f"{name}/shops").parent_id == group.id
    library.auth()
    assert library.user is not None
    assert library.user.keys.list(get_all=True) == []

    project = library.projects.create({"name": "Web shop", "namespace_id": below.id})
    assert project.path_with_namespace == f"{name}/shops/web-shop"
    project.description = "Sells things"
    project.visibility = "internal"
    project.save()
    assert library.projects.get(project.id).description == "Sells things"

    bob_id = id_of(gatebell, bob.username)
    member = project.members.create({"user_id": bob_id, "access_level": 30})
    member.access_level = gitlab.const.AccessLevel.MAINTAINER
    member.save()
    assert project.members.get(bob_id).access_level == 40
    assert len(project.members_all.list(get_all=True)) == 2
    project.members.delete(bob_id)

    for number in range(5):
        library.projects.create({"name": f"p{number}", "namespace_id": group.id})
    walked = library.projects.list(
        iterator=True, owned=True, pagination="keyset", order_by="id", sort="asc", per_page=2
    )
    assert [each.id for each in walked] == sorted(
        each.id for each in library.projects.list(get_all=True, owned=True)
    )
    assert len(group.projects.list(get_all=True, include_subgroups=True)) == 6

    project.archive()
    project.name = "Closed"
    with pytest.raises(GitlabUpdateError, match="archived"):
        project.save()
    project.unarchive()
    project.delete()
    with pytest.raises(GitlabGetError, match="404"):
        library.projects.get(project.id)
    group.delete()
    with pytest.raises(GitlabGetError, match="404"):
        library.groups.get(below.id)


@pytest.mark.both_databases
def test_a_script_creates_a_personal_project_and_shares_it(library: gitlab.Gitlab) -> None:
    library.auth()
    assert library.user is not None
    own = library.projects.create({"name": "notes"})
    assert (own.namespace["kind"], own.namespace["path"]) == ("user", library.user.username)
    assert library.namespaces.get(library.user.username).id == own.namespace["id"]
    assert library.groups.list(get_all=True, owned=True) == []
    name = unique("ops")
    group = library.groups.create({"name": name, "path": name})
    own.share(group.id, gitlab.const.AccessLevel.DEVELOPER, expires_at="2126-01-01")
    (shared,) = library.projects.get(own.id).shared_with_groups
    assert (shared["group_id"], shared["group_access_level"]) == (group.id, 30)
    assert shared["expires_at"] == "2126-01-01"
    own.unshare(group.id)
    assert library.projects.get(own.id).shared_with_groups == []
    url = "https://hooks.invalid/in?key=of-the-bot"
    made: Any = library.http_post(f"/projects/{own.id}/webhooks", post_data={"url": url})
    (hook,) = own.hooks.list(get_all=True)
    assert (hook.id, hook.url, hook.project_id) == (made["id"], made["url"], own.id)
    assert hook.alert_status == "executable"
    # The API sends no events of GitLab's hooks, so no attribute names one.
    assert not [name for name in hook.attributes if name.endswith("_events")]
    paused = {"active": False}
    library.http_put(f"/projects/{own.id}/webhooks/{hook.id}", post_data=paused)
    assert own.hooks.get(hook.id).alert_status == "disabled"
    with pytest.raises(GitlabGetError, match="404"):
        own.hooks.get(hook.id + 1)
    own.transfer(group.id)
    assert library.projects.get(own.id).path_with_namespace == f"{name}/notes"


def id_of(gatebell: LiveGatebell, username: str) -> int:
    with database_of(gatebell) as session:
        return get_user(username, session=session).id
