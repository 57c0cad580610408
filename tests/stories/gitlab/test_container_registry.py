"""Real processes of Docker's registry and skopeo: push, pull, denied access, and deletion."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import gitlab
import pytest
from gitlab.exceptions import GitlabError, GitlabGetError
from sqlalchemy import update

from domain.access.roles import Role
from models import RegistryKey
from tests.support.accounts.administration import find_last_event
from tests.support.accounts.api_caller import api_caller
from tests.support.accounts.people import alice, database_of, make_application, make_project, now
from tests.support.accounts.personal_tokens import make_token
from tests.support.accounts.resource_tokens import (
    create_member_script,
    get_namespace,
    make_bot_token,
    script_of,
)
from tests.support.accounts.team import browser_of
from tests.support.alerts.monitoring import wait_until
from tests.support.oauth.oauth_wire import new_pair
from tests.support.registry.images import Image, make_image
from tests.support.registry.listed import tags_of, wait_for_tags, work
from tests.support.registry.programs import Registry, is_installed
from tests.support.service.live import LiveGatebell, NewService, running
from tests.support.wire.html_forms import form_to, submit
from web.jobs.retention import remove_deleted_data
from web.settings.environment import parse_settings

pytestmark = [
    pytest.mark.skipif(not is_installed(), reason="scripts/ensure-registry could not fetch them"),
    pytest.mark.one_database("sqlite"),
]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    return Registry(tmp_path_factory.mktemp("registry") / "registry")


@pytest.fixture(scope="module")
def service(new_service: NewService, registry: Registry) -> Iterator[LiveGatebell]:
    """A service and a registry that are connected with each other."""
    made = new_service("sqlite", only="web", REGISTRY_URL=registry.url)
    with running(made) as live:
        registry.connect(live, live.cli("registry", "configuration")["configuration"])
        registry.start()
        try:
            yield live
        finally:
            registry.stop()


@pytest.fixture
def project(service: LiveGatebell) -> str:
    """A private project of Alice."""
    return make_project(service, alice(service))


@pytest.fixture
def push_token(service: LiveGatebell, project: str) -> str:
    """A token of the project that may push."""
    namespace = get_namespace(service, "projects", project)
    script = script_of(service, alice(service))
    return make_bot_token(script, namespace, scopes=["write_registry"]).clear


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return make_image(tmp_path / "image")


def oauth_token_of(service: LiveGatebell) -> str:
    """Let Alice authorize an application for all scopes; return its token."""
    application = make_application(service, alice(service), scopes="api")
    return new_pair(service, application, scope="api").access


@pytest.fixture
def library(service: LiveGatebell) -> Iterator[gitlab.Gitlab]:
    """python-gitlab with an OAuth token of Alice."""
    made = gitlab.Gitlab(service.url, oauth_token=oauth_token_of(service))
    made.session.trust_env = False  # Requests to loopback use no proxy.
    yield made
    made.session.close()


Listed = Callable[[], Any]


@pytest.fixture
def repository(library: gitlab.Gitlab, project: str) -> Listed:
    """Waits until the API has a repository of the project, and returns it."""

    def get() -> Any:
        wait_until(
            lambda: bool(library.projects.get(project, lazy=True).repositories.list(get_all=True)),
            "the API has a repository",
        )
        return library.projects.get(project, lazy=True).repositories.list(get_all=True)[0]

    return get


@pytest.mark.spec("G3", "K4")
def test_a_project_token_pushes_and_an_oauth_token_deletes_through_the_api(
    service: LiveGatebell,
    registry: Registry,
    project: str,
    push_token: str,
    image: Image,
    repository: Listed,
) -> None:
    pushed = registry.push(image, f"{project}:v1", push_token)
    assert pushed.is_done, pushed.said
    listed = repository()
    wait_for_tags(listed, "v1")
    tag = listed.tags.get("v1")
    assert tag.digest == image.digest
    assert tag.total_size == image.total_size
    assert tag.revision == image.config_digest.partition(":")[2]
    assert tag.location == f"{registry.host}/{project}:v1"

    listed.tags.delete("v1")

    assert not registry.inspect(f"{project}:v1", push_token).is_done
    assert tags_of(listed) == []
    event = find_last_event(service, f"{project}:v1")
    assert (event.kind, event.details) == (
        "registry_tags.removed",
        {"project": project, "digest": image.digest},
    )
    with pytest.raises(GitlabGetError) as gone:
        listed.tags.get("v1")
    assert gone.value.response_code == 404
    # A deleted tag can be pushed again.
    assert registry.push(image, f"{project}:v1", push_token).is_done
    wait_for_tags(listed, "v1")


@pytest.mark.long
def test_a_maintainer_deletes_a_tag_and_a_repository_on_the_page(
    service: LiveGatebell,
    registry: Registry,
    project: str,
    push_token: str,
    image: Image,
    repository: Listed,
) -> None:
    for tag in ("v1", "v2"):
        assert registry.push(image, f"{project}:{tag}", push_token).is_done
    listed = repository()
    wait_for_tags(listed, "v1", "v2")
    browser = browser_of(service, project, Role.MAINTAINER)
    page = browser.get(f"{service.url}/{project}/-/container_registry/{listed.id}")
    developer = browser_of(service, project, Role.DEVELOPER).get(page.url)
    assert "/delete" not in developer.text

    answer = submit(browser, page, form_to(page, "/tags/v1/delete"))
    assert answer.status_code == 302
    page = browser.get(page.url)
    assert "The tag v1 was deleted." in page.text
    assert find_last_event(service, f"{project}:v1").kind == "registry_tags.removed"
    assert not registry.inspect(f"{project}:v1", push_token).is_done
    assert registry.inspect(f"{project}:v2", push_token).is_done

    registry.stop()
    try:
        assert submit(browser, page, form_to(page, "/tags/v2/delete")).status_code == 302
        page = browser.get(page.url)
        assert "The tag v2 was not deleted. The container registry cannot be reached" in page.text
        assert tags_of(listed) == ["v2"]
    finally:
        registry.start()

    answer = submit(browser, page, form_to(page, f"/{listed.id}/delete"))
    assert (
        "and all its images are being deleted."
        in browser.get(service.url + answer.headers["Location"]).text
    )
    assert "/delete" not in browser.get(page.url).text
    assert work(service) >= 1
    assert not registry.inspect(f"{project}:v2", push_token).is_done
    assert browser.get(page.url).status_code == 404
    assert find_last_event(service, project).kind == "registry_repository.removed"


@pytest.mark.long
@pytest.mark.spec("G3")
def test_an_oauth_token_cannot_sign_in_and_the_client_shows_the_reason(
    service: LiveGatebell, registry: Registry, project: str, push_token: str, image: Image
) -> None:
    assert registry.push(image, f"{project}:v1", push_token).is_done
    oauth = oauth_token_of(service)
    for attempt in (
        registry.push(image, f"{project}:v2", oauth),
        registry.inspect(f"{project}:v1", oauth),
    ):
        assert not attempt.is_done
        assert "OAuth access tokens cannot sign in to the container registry" in attempt.said
        assert "personal, project or group access token" in attempt.said


@pytest.mark.long
@pytest.mark.spec("G4")
def test_pull_and_push_require_scopes_and_roles(
    service: LiveGatebell, registry: Registry, project: str, push_token: str, image: Image
) -> None:
    name = f"{project}/worker"
    assert registry.push(image, f"{name}:v1", push_token).is_done
    group = get_namespace(service, "groups", project)
    here = get_namespace(service, "projects", project)
    owner = script_of(service, alice(service))
    reader = make_token(service, alice(service), scopes="read_registry").clear
    reporter = create_member_script(service, here, Role.REPORTER).token
    guest = create_member_script(service, here, Role.GUEST).token
    group_token = make_bot_token(
        owner, group, scopes=["read_registry", "write_registry"], access_level=30
    ).clear
    for token, may_pull, may_push in (
        (reader, True, False),
        (group_token, True, True),
        (reporter, True, False),
        (guest, False, False),
        (None, False, False),
        ("wrong", False, False),
    ):
        assert registry.inspect(f"{name}:v1", token).is_done == may_pull
        assert registry.push(image, f"{name}:v2", token).is_done == may_push


@pytest.mark.long
def test_a_public_project_can_be_pulled_without_a_token(
    service: LiveGatebell, registry: Registry, image: Image
) -> None:
    project = make_project(service, alice(service), visibility="public")
    token = make_token(service, alice(service), scopes="write_registry").clear
    assert registry.push(image, f"{project}:v1", token).is_done
    assert registry.inspect(f"{project}:v1", None).is_done
    assert not registry.push(image, f"{project}:v2", None).is_done


@pytest.mark.long
def test_deleting_a_tag_keeps_other_tags_of_the_same_image(
    registry: Registry, project: str, push_token: str, image: Image, repository: Listed
) -> None:
    for tag in ("v1", "v2"):
        assert registry.push(image, f"{project}:{tag}", push_token).is_done
    listed = repository()
    wait_for_tags(listed, "v1", "v2")

    listed.tags.delete("v1")

    assert not registry.inspect(f"{project}:v1", push_token).is_done
    assert registry.inspect(f"{project}:v2", push_token).is_done
    wait_for_tags(listed, "v2")


@pytest.mark.long
def test_the_worker_removes_matching_tags_and_whole_repositories(
    service: LiveGatebell,
    registry: Registry,
    project: str,
    push_token: str,
    tmp_path: Path,
    repository: Listed,
) -> None:
    # Two tags of each image show that the removal of a tag keeps the other one.
    images = {name: make_image(tmp_path / name, content=name) for name in ("a", "b")}
    for tag, content in {"dev-1": "a", "dev-2": "b", "v1": "a", "latest": "b"}.items():
        assert registry.push(images[content], f"{project}:{tag}", push_token).is_done
    listed = repository()
    wait_for_tags(listed, "dev-1", "dev-2", "latest", "v1")

    listed.tags.delete_in_bulk(name_regex_delete="dev-.*|latest")
    assert work(service) >= 1

    wait_for_tags(listed, "latest", "v1")
    for tag in ("latest", "v1"):
        assert registry.inspect(f"{project}:{tag}", push_token).is_done
    listed.delete()
    assert work(service) >= 1
    assert not registry.inspect(f"{project}:latest", push_token).is_done
    with pytest.raises(GitlabError) as gone:
        tags_of(listed)
    assert gone.value.response_code == 404


@pytest.mark.long
def test_deleting_a_project_deletes_its_images(
    service: LiveGatebell,
    registry: Registry,
    project: str,
    push_token: str,
    image: Image,
    repository: Listed,
) -> None:
    assert registry.push(image, f"{project}:v1", push_token).is_done
    wait_for_tags(repository(), "v1")
    owner, (group, _, name) = api_caller(service, alice(service)), project.rpartition("/")
    owner.done("DELETE", f"/projects/{project.replace('/', '%2F')}", status=202)
    group_id = owner.done("GET", f"/groups/{group}")["id"]
    owner.done("POST", "/projects", json={"name": name, "namespace_id": group_id}, status=201)
    script = script_of(service, alice(service))
    token = make_bot_token(
        script, get_namespace(service, "projects", project), scopes=["write_registry"]
    ).clear
    settings = parse_settings(service.environment)
    remove_deleted_data(settings)
    assert not registry.inspect(f"{project}:v1", token).is_done
    assert not registry.push(image, f"{project}:v2", token).is_done
    assert work(service) >= 1
    assert remove_deleted_data(settings)["projects"] == 1

    assert registry.push(image, f"{project}:v2", token).is_done
    assert registry.inspect(f"{project}:v2", token).is_done
    assert not registry.inspect(f"{project}:v1", token).is_done


@pytest.mark.long
def test_deletions_are_retried_while_the_registry_is_unavailable(
    service: LiveGatebell,
    registry: Registry,
    project: str,
    push_token: str,
    image: Image,
    repository: Listed,
) -> None:
    assert registry.push(image, f"{project}:v1", push_token).is_done
    listed = repository()
    wait_for_tags(listed, "v1")
    registry.stop()
    try:
        with pytest.raises(GitlabError) as away:
            listed.tags.delete("v1")
        assert away.value.response_code == 503
        assert "cannot be reached" in str(away.value)
        listed.tags.delete_in_bulk(name_regex_delete="v1")
        assert work(service) == 0
        assert tags_of(listed) == ["v1"]
    finally:
        registry.start()
    # The bulk removal waits for a minute.
    listed.tags.delete("v1")
    assert not registry.inspect(f"{project}:v1", push_token).is_done


@pytest.mark.long
def test_a_key_is_rotated_with_an_overlap(
    service: LiveGatebell,
    registry: Registry,
    project: str,
    push_token: str,
    image: Image,
    repository: Listed,
) -> None:
    service.cli("registry", "rotate-key", "--notice-hours", "2")
    # The new key is not used yet, so the registry still accepts tokens.
    assert registry.push(image, f"{project}:v1", push_token).is_done
    listed = repository()
    wait_for_tags(listed, "v1")
    with database_of(service) as session:  # Two hours pass.
        session.execute(
            update(RegistryKey)
            .where(RegistryKey.signs_from > now())
            .values(signs_from=now() - timedelta(seconds=1))
        )
    # A registry without the new key rejects tokens, and the API explains the remedy.
    assert not registry.inspect(f"{project}:v1", push_token).is_done
    with pytest.raises(GitlabError) as refused:
        listed.tags.delete("v1")
    assert refused.value.response_code == 502
    assert "install the current certificates" in str(refused.value)

    registry.stop()
    registry.connect(service, service.cli("registry", "configuration")["configuration"])
    registry.start()
    assert registry.inspect(f"{project}:v1", push_token).is_done
    listed.tags.delete("v1")


@pytest.mark.long
def test_a_registry_without_deletion_is_recognized(
    service: LiveGatebell,
    registry: Registry,
    project: str,
    push_token: str,
    image: Image,
    repository: Listed,
) -> None:
    assert registry.push(image, f"{project}:v1", push_token).is_done
    listed = repository()
    wait_for_tags(listed, "v1")
    configuration = service.cli("registry", "configuration")["configuration"]
    registry.stop()
    registry.connect(service, configuration, deletes=False)
    registry.start()
    try:
        with pytest.raises(GitlabError) as refused:
            listed.tags.delete("v1")
        assert refused.value.response_code == 502
        assert "storage.delete.enabled" in str(refused.value)
        assert tags_of(listed) == ["v1"]
    finally:
        registry.stop()
        registry.connect(service, configuration)
        registry.start()
