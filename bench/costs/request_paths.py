"""Lists the project's functions that a request calls: `python -m bench.costs.request_paths`.

One request of each kind is served in this process, with an empty SQLite database. Earlier requests
of the same kind have filled the caches.
"""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from flask.testing import FlaskClient

from app import create_app
from bench.alert_bodies import build_generic_alert
from bench.gatebell_seed import seed_gatebell
from bench.oauth_shots import CALLBACK_URL, SeedData
from bench.seed_counts import Counts
from tests.support.accounts.people import Person
from tests.support.service.commands import operate
from tests.support.service.live import LiveGatebell
from tests.support.wire.html_forms import forms_in
from web.database.schema import migrate_to_newest
from web.settings.environment import parse_settings

_ROOT = Path(__file__).parents[2]
_OWN_PACKAGES = ("blueprints", "domain", "forms", "models", "templates", "web")
#: Suffixes of functions that Python creates for comprehensions, up to 3.11.
_COMPREHENSION_SUFFIXES = ("comp>", "<genexpr>")
_WARM_UP_REQUESTS = 3
_CODE_COUNT = 10
_COUNTS = Counts(
    access_tokens=_CODE_COUNT, refresh_tokens=_CODE_COUNT, codes=_CODE_COUNT, device_codes=1
)

SendFunction = Callable[[], Any]


def main() -> None:
    """Print the functions that each kind of request calls, in the order of the first calls."""
    with TemporaryDirectory() as directory, _build_requests(Path(directory)) as requests:
        for name, send in requests.items():
            passed = _list_called_functions(send)
            sys.stdout.write(f"\n## {name}: {len(passed)} functions\n")
            for module, function in passed:
                sys.stdout.write(f"{module} {function}\n")


@contextmanager
def _build_requests(directory: Path) -> Iterator[Mapping[str, SendFunction]]:
    gatebell = LiveGatebell(instance_path=directory, database_url="", only="web")
    gatebell.environment["BASE_URL"] = "http://localhost"
    settings = parse_settings(gatebell.environment)
    migrate_to_newest(settings)
    seed, person = seed_gatebell(gatebell, _COUNTS)
    app = create_app(settings)
    operate(app, "groups", "create", "acme")
    operate(app, "projects", "create", "acme/shop")
    made = operate(app, "integrations", "create", "acme/shop", "--type", "http", "--name", "Hook")
    client = app.test_client()
    yield {
        "Code exchange": partial(_exchange_code, client, seed, iter(seed.codes)),
        "Bearer check": partial(_call_api, client, seed),
        "Alert": partial(_send_alert, client, made, count(1)),
        "Authorize": partial(_authorize_application, _sign_in(app.test_client(), person), seed),
    }


def _exchange_code(client: FlaskClient, seed: SeedData, codes: Iterator[str]) -> None:
    form = {
        "grant_type": "authorization_code",
        "code": next(codes),
        "redirect_uri": CALLBACK_URL,
    }
    answer = client.post("/oauth/token", data=form, auth=(seed.client_id, seed.client_secret))
    _require_status(answer.status_code, 200)


def _call_api(client: FlaskClient, seed: SeedData) -> None:
    headers = {"Authorization": f"Bearer {seed.access_tokens[0]}"}
    _require_status(client.get("/api/v4/user", headers=headers).status_code, 200)


def _send_alert(
    client: FlaskClient, integration: Mapping[str, Any], numbers: Iterator[int]
) -> None:
    url = integration["url"].removeprefix("http://localhost")
    headers = {"Authorization": f"Bearer {integration['key']}", "Content-Type": "application/json"}
    answer = client.post(
        url, data=build_generic_alert(f"Disk full {next(numbers)}"), headers=headers
    )
    _require_status(answer.status_code, 200)


def _sign_in(client: FlaskClient, person: Person) -> FlaskClient:
    (form,) = [each for each in forms_in(client.get("/users/sign_in").text) if each.has("login")]
    fields = form.filled(login=person.username, password=person.password)
    _require_status(client.post("/users/sign_in", data=dict(fields)).status_code, 302)
    return client


def _authorize_application(client: FlaskClient, seed: SeedData) -> None:
    asked = {
        "client_id": seed.client_id,
        "redirect_uri": CALLBACK_URL,
        "response_type": "code",
        "scope": "read_user",
        "state": "s",
    }
    _require_status(client.get("/oauth/authorize", query_string=asked).status_code, 200)


def _require_status(status: int, wanted: int) -> None:
    if status != wanted:
        message = f"The response has status {status} instead of {wanted}."
        raise RuntimeError(message)


def _list_called_functions(send: SendFunction) -> list[tuple[str, str]]:
    for _ in range(_WARM_UP_REQUESTS):
        send()
    passed: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, _arg: Any) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(_ROOT):
            module, name = path.relative_to(_ROOT), frame.f_code.co_qualname
            if module.parts[0] in _OWN_PACKAGES and not name.endswith(_COMPREHENSION_SUFFIXES):
                passed[str(module), name] = None

    sys.setprofile(note)
    try:
        send()
    finally:
        sys.setprofile(None)
    return list(passed)


if __name__ == "__main__":
    main()
