"""Creation, change and deletion of each resource through each interface, with the same result."""

import shlex
from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
import requests

from tests.http.lives.life import Life, Page
from tests.http.lives.paging_lives import PAGING_LIVES
from tests.http.lives.project_lives import PROJECT_LIVES
from tests.support.accounts.administration import find_user_id
from tests.support.accounts.people import (
    Person,
    bob,
    make_project,
    make_user,
    now,
    open_browser,
)
from tests.support.accounts.personal_tokens import make_token
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import form_to, submit

LIVES = {**PAGING_LIVES, **PROJECT_LIVES}
_CASES = [(name, each) for name, life in LIVES.items() for each in life.interfaces]


class Scene:
    """A project with the objects that resources refer to, and an administrator who owns it."""

    def __init__(self, gatebell: LiveGatebell, life: Life) -> None:
        """Create the project and the objects that the resource refers to."""
        self.gatebell = gatebell
        self.person: Person = make_user(gatebell, name="owner", admin=True)
        project = make_project(gatebell, self.person)
        other = bob(gatebell)
        self.token = make_token(gatebell, self.person, scopes="api").clear
        self.http = gatebell.http()
        found = self.ask("GET", f"/projects/{project.replace('/', '%2F')}")
        self.words: dict[str, Any] = {
            "project": project,
            "project_id": found["id"],
            "group": project.partition("/")[0],
            "group_id": found["namespace"]["id"],
            "user": self.person.username,
            "user_id": find_user_id(gatebell, self.person),
            "other": other.username,
            "other_id": find_user_id(gatebell, other),
            "later": in_days(2),
            "still_later": in_days(5),
            "later_local": in_days(2)[:16],
            "still_later_local": in_days(5)[:16],
            "next_month": (now() + timedelta(days=30)).date().isoformat(),
        }
        self._create_referenced_objects(str(life))

    def _create_referenced_objects(self, life: str) -> None:
        at, user = f"/projects/{self.words['project_id']}", self.person.username
        if "{policy_id}" in life:
            policy = {"name": "Any", "steps": [f"0s user:{user}"]}
            made = self.ask("POST", f"{at}/escalation_policies", policy)
            self.words["policy_id"] = made["id"]
        if "{schedule_id}" in life:
            schedule = {"name": "Any", "time_zone": "UTC"}
            made = self.ask("POST", f"{at}/on_call/schedules", schedule)
            self.words["schedule_id"] = made["id"]
        if "{incident}" in life:
            self.words["incident"] = self.ask("POST", f"{at}/incidents", {"title": "Any"})["iid"]
        if "v0.1" in life:
            self.ask("POST", f"{at}/releases", {"tag_name": "v0.1", "ref": "main"})

    def ask(self, method: str, path: str, body: Any = None, *, absent: bool = False) -> Any:
        """Send a request to the API, and return its JSON."""
        answer = self.http.request(
            method,
            f"{self.gatebell.url}/api/v4{path}",
            json=body,
            headers={"PRIVATE-TOKEN": self.token},
            timeout=60,
        )
        if absent and answer.status_code == 404:
            return None
        assert answer.ok, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def filled(self, value: Any) -> Any:
        """Return a value with its words in braces replaced."""
        if isinstance(value, str):
            name = value.removeprefix("{").removesuffix("}")
            if value == f"{{{name}}}" and name in self.words:
                return self.words[name]
            return value.format_map(self.words)
        if isinstance(value, Mapping):
            return {name: self.filled(each) for name, each in value.items()}
        return [self.filled(each) for each in value] if isinstance(value, list) else value


def in_days(days: int) -> str:
    """Return a time in the API's format."""
    later = (now() + timedelta(days=days)).replace(microsecond=0)
    return later.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Interface(ABC):
    """The actions on a resource through one interface."""

    def __init__(self, scene: Scene, life: Life) -> None:
        """Store the scene and the description of the resource."""
        self.scene, self.life = scene, life

    @abstractmethod
    def create(self) -> None:
        """Create the resource."""

    @abstractmethod
    def change(self) -> None:
        """Change everything that can be changed."""

    @abstractmethod
    def end(self) -> None:
        """Delete or end the resource."""


class Api(Interface):
    """The REST API."""

    def create(self) -> None:
        self.scene.ask("POST", self.scene.filled(self.life.at), self.scene.filled(self.life.new))

    def change(self) -> None:
        self.scene.ask("PUT", self._one(), self.scene.filled(self.life.change))

    def end(self) -> None:
        self.scene.ask("DELETE", self._one())

    def _one(self) -> str:
        return str(self.scene.filled(f"{self.life.at}/{{id}}"))


class Commands(Interface):
    """The command line."""

    def create(self) -> None:
        self._run(0)

    def change(self) -> None:
        self._run(1)

    def end(self) -> None:
        self._run(2)

    def assert_prints_as_api(self) -> None:
        """Check that `list` and `show` print the same values as the API."""
        key, made = self.life.key, self.scene.words["id"]
        words = shlex.split(self.scene.filled(self.life.commands[2]))
        group, owner, argument = words[0], words[2:-1], words[-1]
        output = self.scene.gatebell.cli(group, "list", *owner)
        printed = next(each for each in output.values() if isinstance(each, list))
        (expected,) = [each for each in listed(self.scene, self.life) if each[key] == made]
        assert [each for each in printed if each[key] == made] == [expected]
        if not self.life.is_only_listed:
            shown = self.scene.gatebell.cli(group, "show", *owner, argument)
            assert shown == one(self.scene, self.life)

    def _run(self, number: int) -> None:
        self.scene.gatebell.cli(*shlex.split(self.scene.filled(self.life.commands[number])))


class Pages(Interface):
    """The pages."""

    def __init__(self, scene: Scene, life: Life) -> None:
        super().__init__(scene, life)
        self._browser = open_browser(scene.gatebell, scene.person)

    def create(self) -> None:
        self._send(0)

    def change(self) -> None:
        self._send(1)

    def end(self) -> None:
        self._send(2)

    def _send(self, number: int) -> None:
        given = self.life.pages[number]
        assert isinstance(given, Page)
        page = self._browser.get(self.scene.gatebell.url + self.scene.filled(given.at), timeout=60)
        form = form_to(page, self.scene.filled(given.to))
        fields = {name: _texts(each) for name, each in self.scene.filled(given.fields).items()}
        answer = submit(self._browser, page, form, **fields)
        assert answer.status_code in {302, 303} or "secret" in answer.text, _errors(answer)


def _texts(value: Any) -> Any:
    return str(value) if isinstance(value, int) else value


def _errors(answer: requests.Response) -> str:
    lines = [line for line in answer.text.splitlines() if "error" in line or "alert" in line]
    return f"{answer.status_code} {answer.url}\n" + "\n".join(lines)


_INTERFACES: Mapping[str, type[Interface]] = {"api": Api, "commands": Commands, "pages": Pages}


@pytest.mark.parametrize(("name", "interface"), _CASES, ids=[f"{n}: {i}" for n, i in _CASES])
def test_a_resource_is_created_changed_and_ended(
    gatebell: LiveGatebell, name: str, interface: str
) -> None:
    life = LIVES[name]
    scene = Scene(gatebell, life)
    through = _INTERFACES[interface](scene, life)
    before = {each[life.key] for each in listed(scene, life)}
    through.create()
    (made,) = [each for each in listed(scene, life) if each[life.key] not in before]
    scene.words["id"] = made[life.key]
    assert_shows(scene, life, life.shown)
    if isinstance(through, Commands):
        through.assert_prints_as_api()
    if life.change is not None:
        through.change()
        assert_shows(scene, life, life.changed)
    through.end()
    ended = one(scene, life)
    if life.ended is None:
        assert ended is None
    else:
        assert_shows(scene, life, life.ended)


def listed(scene: Scene, life: Life) -> list[dict[str, Any]]:
    found = scene.ask("GET", f"{scene.filled(life.at)}?per_page=100")
    assert isinstance(found, list)
    return found


def one(scene: Scene, life: Life) -> dict[str, Any] | None:
    """Return the resource as the API shows it, or None if it is gone."""
    if life.is_only_listed:
        identity = scene.words["id"]
        return next((each for each in listed(scene, life) if each[life.key] == identity), None)
    found: dict[str, Any] | None = scene.ask("GET", scene.filled(f"{life.at}/{{id}}"), absent=True)
    return found


def assert_shows(scene: Scene, life: Life, wanted: Mapping[str, Any]) -> None:
    found = one(scene, life)
    assert found is not None
    differing = {
        name: (found.get(name), value)
        for name, value in scene.filled(wanted).items()
        if not is_same(found.get(name), value)
    }
    assert differing == {}


def is_same(found: Any, wanted: Any) -> bool:
    """Return whether two values are equal; pages round times, so half an hour may differ."""
    try:
        apart = datetime.fromisoformat(found) - datetime.fromisoformat(wanted)
    except (TypeError, ValueError):
        return bool(found == wanted)
    return abs(apart) < timedelta(minutes=30)
