"""Compares request times over HTTP between small and large databases, with alternating requests."""

import json
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from http.client import HTTPConnection
from itertools import count
from statistics import median
from time import perf_counter
from urllib.parse import urlencode

from bench.alert_bodies import build_generic_alert
from bench.gatebell import RAISED_LIMITS
from bench.gatebell_seed import seed_gatebell
from bench.oauth_shots import CALLBACK_URL, DEVICE_GRANT, SeedData
from bench.processes import measure_processor_seconds
from bench.samples import CannotMeasureError
from bench.scale.large import SECRET_KEY, LargeDatabase
from bench.seed_counts import Counts
from tests.support.accounts.people import Person, open_browser
from tests.support.service.live import LiveGatebell

#: Number of requests of each kind to each database, after a few uncounted ones.
REQUEST_COUNT = 300
_WARM_UP_REQUESTS = 30
_FORM_TYPE = "application/x-www-form-urlencoded"
_JSON_TYPE = "application/json"
_PAGE_PATHS = {
    "page of open alerts": "/acme/large/-/alerts",
    "page of all alerts": "/acme/large/-/alerts?status=all",
    "page of a search": "/acme/large/-/alerts?status=all&search=4711",
    "page of a search for a common word": "/acme/large/-/alerts?status=all&search=disk",
    "page of an alert": "/acme/large/-/alerts/{newest}",
    "page of a project": "/acme/large",
    "page of incidents": "/acme/large/-/incidents",
    "page of open alerts of all projects": "/-/alerts",
    "home page": "/",
}


class _Client:
    """A client of a service with a persistent connection."""

    def __init__(self, live: LiveGatebell, database: LargeDatabase, seed: SeedData) -> None:
        """Connect to the service; `seed` has the tokens and codes to redeem."""
        self._live = live
        self._wire = HTTPConnection("127.0.0.1", live.port, timeout=60)
        self._database, self._seed = database, seed
        self._numbers = count(1)
        self._refresh = seed.refresh_tokens[0]
        self._codes, self._devices = iter(seed.codes), iter(seed.device_codes)
        basic = b64encode(f"{seed.client_id}:{seed.client_secret}".encode()).decode()
        self._basic = {"Authorization": f"Basic {basic}", "Content-Type": _FORM_TYPE}
        browser = open_browser(live, Person(username="alice", email="", password=""))
        self._cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())

    def processor_seconds(self) -> float:
        """Return the processor seconds of the service's processes."""
        return measure_processor_seconds(self._live.pid)

    def paths(self) -> Mapping[str, Callable[[], object]]:
        """Return functions that send each kind of request."""
        token = self._seed.access_tokens[0]
        intake = {"Authorization": f"Bearer {self._database.key}", "Content-Type": _JSON_TYPE}
        pages = {name: partial(self._page, path) for name, path in _PAGE_PATHS.items()}
        return {
            "token info": lambda: self._get(
                "/oauth/token/info", {"Authorization": f"Bearer {token}"}
            ),
            "introspection": lambda: self._form("/oauth/introspect", token=token),
            "refresh": self._refreshed,
            "code exchange": lambda: self._form(
                "/oauth/token",
                grant_type="authorization_code",
                code=next(self._codes),
                redirect_uri=CALLBACK_URL,
            ),
            "device authorization": lambda: self._ask(
                "POST",
                "/oauth/authorize_device",
                {"Content-Type": _FORM_TYPE},
                urlencode({"client_id": self._seed.device_client_id, "scope": "read_user"}),
            ),
            "device poll": self._polled,
            "new alert": lambda: self._ask(
                "POST",
                self._database.intake,
                intake,
                build_generic_alert(f"New disk {perf_counter()} {next(self._numbers)}"),
            ),
            "repeated alert": lambda: self._ask(
                "POST", self._database.intake, intake, build_generic_alert("Repeated")
            ),
            "API list of alerts": lambda: self._get(
                "/api/v4/projects/acme%2Flarge/alert_management_alerts",
                {"PRIVATE-TOKEN": self._database.token},
            ),
            **pages,
        }

    def _page(self, path: str) -> None:
        newest = self._database.sizes.alerts
        self._get(path.format(newest=newest), {"Cookie": self._cookie, "Accept": "text/html"})

    def _get(self, path: str, headers: Mapping[str, str]) -> None:
        self._ask("GET", path, headers)

    def _form(self, path: str, **values: str) -> str:
        return self._ask("POST", path, self._basic, urlencode(values))

    def _refreshed(self) -> None:
        answer = self._form("/oauth/token", grant_type="refresh_token", refresh_token=self._refresh)
        self._refresh = json.loads(answer)["refresh_token"]

    def _polled(self) -> None:
        form = {
            "grant_type": DEVICE_GRANT,
            "client_id": self._seed.device_client_id,
            "device_code": next(self._devices),
        }
        self._ask(
            "POST", "/oauth/token", {"Content-Type": _FORM_TYPE}, urlencode(form), expected=400
        )

    def _ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: str | None = None,
        *,
        expected: int = 200,
    ) -> str:
        self._wire.request(method, path, body, dict(headers))
        answer = self._wire.getresponse()
        text = answer.read().decode(errors="replace")
        if answer.status not in {expected, 201}:
            raise CannotMeasureError(f"{path}: {answer.status} {text[:200]}")
        return text


def measure_growth(
    databases: Sequence[LargeDatabase], *, times: int = REQUEST_COUNT
) -> Mapping[str, Sequence[float]]:
    """Return the median time of each kind of request for each database, in milliseconds."""
    with ExitStack() as stack:
        clients = [stack.enter_context(_serve_database(each, times)) for each in databases]
        kinds = [each.paths() for each in clients]
        return {
            name: _measure_medians([paths[name] for paths in kinds], times) for name in kinds[0]
        }


def _measure_medians(asks: Sequence[Callable[[], object]], times: int) -> Sequence[float]:
    taken: list[list[float]] = [[] for _ in asks]
    for number in range(-_WARM_UP_REQUESTS, times):
        for ask, found in zip(asks, taken, strict=True):
            began = perf_counter()
            ask()
            if number >= 0:
                found.append((perf_counter() - began) * 1000)
    return [median(each) if each else 0.0 for each in taken]


def measure_processor_growth(
    databases: Sequence[LargeDatabase], *, times: int
) -> Mapping[str, Sequence[float]]:
    """Return the web process's processor time for each kind of request, in milliseconds.

    On SQLite, this includes the database, and other load on the machine changes it little.
    """
    with ExitStack() as stack:
        clients = [stack.enter_context(_serve_database(each, times)) for each in databases]
        kinds = [each.paths() for each in clients]
        spent = {}
        for name in kinds[0]:
            # Pages take longer, so fewer requests are enough.
            each = times // 5 if name.startswith(("page", "home")) else times
            spent[name] = _measure_processor_time(clients, [paths[name] for paths in kinds], each)
        return spent


def _measure_processor_time(
    clients: Sequence[_Client], asks: Sequence[Callable[[], object]], times: int
) -> Sequence[float]:
    _measure_medians(asks, 0)
    before = [each.processor_seconds() for each in clients]
    for _ in range(times):
        for ask in asks:
            ask()
    return [
        (each.processor_seconds() - then) * 1000 / times
        for each, then in zip(clients, before, strict=True)
    ]


def measure_start_seconds(
    databases: Sequence[LargeDatabase], *, times: int
) -> Sequence[Sequence[float]]:
    """Return the times until the first response, for several starts with each database in turn."""
    taken: list[list[float]] = [[] for _ in databases]
    for _ in range(times):
        for database, found in zip(databases, taken, strict=True):
            live = _build_service(database)
            began = perf_counter()
            live.start()
            found.append(perf_counter() - began)
            live.stop()
    return taken


@contextmanager
def _serve_database(database: LargeDatabase, times: int) -> Iterator[_Client]:
    """Run a service on a database as operators do, with one web process."""
    live = _build_service(database, only="web", WEB_CONCURRENCY="1")
    each = times + _WARM_UP_REQUESTS
    counts = Counts(access_tokens=1, refresh_tokens=1, codes=each, device_codes=each)
    seed, _ = seed_gatebell(live, counts)
    live.start()
    try:
        yield _Client(live, database, seed)
    finally:
        live.stop()


def _build_service(database: LargeDatabase, **settings: str) -> LiveGatebell:
    return LiveGatebell(
        instance_path=database.directory,
        database_url=database.url,
        SECRET_KEY=SECRET_KEY,
        **RAISED_LIMITS,
        **settings,
    )
