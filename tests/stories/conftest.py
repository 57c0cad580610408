"""Fixtures of stories: clients that accept plain http on loopback, and closed connections."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gitlab
import pytest

from tests.stories.third_parties import KINDS, Addresses, ThirdParty
from tests.support.accounts.people import ClientCredentials, bob, make_application
from tests.support.alerts.monitoring import Alertmanager
from tests.support.service.live import LiveGatebell

Meet = Callable[..., ThirdParty]
Notify = Callable[..., Alertmanager]
OpenGitlab = Callable[..., gitlab.Gitlab]


@pytest.fixture(autouse=True)
def plain_http_is_fine_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")
    monkeypatch.setenv("OAUTHLIB_INSECURE_TRANSPORT", "1")


@pytest.fixture
def meet() -> Iterator[Meet]:
    """Creates clients of a kind, each with an application of Bob."""
    made: list[ThirdParty] = []

    def make(kind: type[ThirdParty], gatebell: LiveGatebell, **changes: object) -> ThirdParty:
        client: ClientCredentials = make_application(
            gatebell, bob(gatebell), **{**kind.registration, **changes}
        )
        made.append(kind(client, Addresses.written_down(gatebell)))
        return made[-1]

    yield make
    for each in made:
        each.session.close()


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def third_party(request: pytest.FixtureRequest, gatebell: LiveGatebell, meet: Meet) -> ThirdParty:
    """A client of each kind in turn."""
    return meet(request.param, gatebell)


@pytest.fixture
def open_gitlab(gatebell: LiveGatebell) -> Iterator[OpenGitlab]:
    """Opens python-gitlab with a token, and closes its connections at the end."""
    opened: list[gitlab.Gitlab] = []

    def connect(private_token: str | None = None, **others: Any) -> gitlab.Gitlab:
        opened.append(gitlab.Gitlab(gatebell.url, private_token=private_token, **others))
        opened[-1].session.trust_env = False  # Requests to loopback use no proxy.
        return opened[-1]

    yield connect
    for each in opened:
        each.session.close()


@pytest.fixture
def notify(tmp_path: Path) -> Iterator[Notify]:
    """Starts Alertmanagers, and stops them at the end."""
    started: list[Alertmanager] = []

    def start(*webhooks: dict[str, Any], **options: str) -> Alertmanager:
        made = Alertmanager(tmp_path / f"alertmanager-{len(started)}", *webhooks, **options)
        started.append(made)
        made.start()
        return made

    yield start
    for each in started:
        each.stop()
