"""Fields of messaging services become URLs that Apprise parses, and are read back from URLs."""

from collections.abc import Mapping
from typing import Any

import apprise
import pytest

from domain.core.errors import InvalidError
from domain.paging.contacts.services.registry import SERVICES, find_service, parse_address

_PHONES = {"sender": "+15551234567", "to": "+4915123456789"}
_HEX = "0123456789abcdef0123456789abcdef"
_FLOW = (
    f"https://prod-12.westeurope.logic.azure.com:443/workflows/{_HEX}/triggers/manual/paths/invoke"
    "?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=abcDEF_gh-ijk0123456789012345"
)
_SERVER = "https://push.example:8443"
_TELEGRAM = "123456789:AAbbccddeeffgghhiijjkkllmmnnooppqqr"
_KEY = "aBcDeFgHiJkLmNoPqRsTuVwXyZ0123"
#: Values of the fields of each service, and the beginning of the URL.
_VALUES: Mapping[str, tuple[Mapping[str, str], str]] = {
    "ntfy": ({"server": _SERVER, "topic": "night", "token": "tk_abc"}, "ntfys://tk_abc@push"),
    "pushover": ({"user": _KEY, "token": _KEY[::-1]}, f"pover://{_KEY}@"),
    "gotify": ({"server": _SERVER, "token": "AWp3MtrXjLMuVh9"}, "gotifys://push.example:8443/AW"),
    "twilio": ({"account": f"AC{_HEX}", "token": _HEX, **_PHONES}, f"twilio://AC{_HEX}:"),
    "vonage": ({"key": "a1b2c3d4", "secret": "A1b2C3d4E5f6G7h8", **_PHONES}, "vonage://a1b2c3d4:"),
    "signal": ({"server": _SERVER, **_PHONES}, "signals://push.example:8443/+1555"),
    "slack": (
        {
            "webhook": "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"
        },
        "slack://T1JJ3T3L2/A1BRTD4JD/",
    ),
    "teams": ({"webhook": _FLOW}, _FLOW),
    "discord": ({"webhook": "https://discord.com/api/webhooks/4174/JHZ7lQ_x-1"}, "discord://4174/"),
    "telegram": ({"token": _TELEGRAM, "chat": "-1001234567890"}, f"tgram://{_TELEGRAM}/-100"),
    "mattermost": (
        {"webhook": "https://chat.example/hooks/3ccdd113474722377935511fc85d"},
        "mmosts:",
    ),
    "webhook": ({"webhook": "https://hooks.example/a?key=x&y=1"}, "jsons://hooks.example/a?-key=x"),
    "email": ({"address": "alice@example.org"}, "alice@example.org"),
    "apprise": ({"address": "matrixs://t@matrix.example/!room"}, "matrixs://"),
}


def test_every_service_has_values_here() -> None:
    assert [*_VALUES] == [*SERVICES]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the services that Apprise loads
@pytest.mark.parametrize("slug", _VALUES)
def test_fields_become_a_url_and_are_read_back(slug: str) -> None:
    service, (values, beginning) = SERVICES[slug], _VALUES[slug]
    url = service.build_url(values)
    assert url.startswith(beginning)
    assert service.parse_url(url) == values
    if slug == "email":
        return
    found: Any = apprise.Apprise.instantiate(url)
    assert found is not None
    scheme = found.url(privacy=True).partition(":")[0]
    shown = f"{scheme}://…"
    assert find_service("apprise", shown) is service
    assert parse_address("apprise", shown, url) == (service, values)


def test_a_phone_number_may_have_spaces_and_an_optional_field_may_be_empty() -> None:
    values = {"server": _SERVER, "sender": "+1 (555) 123-4567", "to": "+49 151 23456789"}
    url = SERVICES["signal"].build_url(values)
    assert url == "signals://push.example:8443/+15551234567/+4915123456789"
    url = SERVICES["ntfy"].build_url({"server": "http://10.1.2.3/", "topic": "night"})
    assert url == "ntfy://10.1.2.3/night"


@pytest.mark.parametrize("address", ["ntfys://night", "ntfys://ntfy.sh/night/"])
def test_a_url_for_the_public_server_is_read_back(address: str) -> None:
    wanted = {"server": "https://ntfy.sh", "topic": "night", "token": ""}
    assert parse_address("apprise", "ntfys://…", address) == (SERVICES["ntfy"], wanted)


@pytest.mark.parametrize(
    "address",
    [
        "ntfys://alice:secret@ntfy.sh/night",
        "ntfys://ntfy.sh/a/b",
        "ntfys://ntfy.sh/a?priority=max",
        "jsons://hooks.example/a?format=markdown",
        "jsons://hooks.example/a?-key=x&format=markdown",
    ],
)
def test_a_url_that_fields_cannot_express_is_changed_as_a_whole(address: str) -> None:
    shown = f"{address.partition(':')[0]}://…"
    assert parse_address("apprise", shown, address) == (
        SERVICES["apprise"],
        {"address": address},
    )


@pytest.mark.parametrize(
    ("slug", "field", "value", "sentence"),
    [
        ("telegram", "token", "x", "This is not a bot token. Expected format: 123456:ABC…"),
        ("telegram", "token", "", "Enter a bot token."),
        ("ntfy", "topic", "a/b", "This is not a topic. Expected format: gatebell-k3v9…"),
        (
            "gotify",
            "server",
            "push.example",
            "This is not the URL of a server. Expected format: https",
        ),
        ("gotify", "server", "https://a@b.example", "This is not the URL of a server"),
        ("twilio", "to", "12", "This is not a phone number with its country code"),
        (
            "apprise",
            "address",
            "topic",
            "This is not an Apprise URL. Expected format: ntfys://topic.",
        ),
    ],
)
def test_an_error_names_the_format_of_its_field(
    slug: str, field: str, value: str, sentence: str
) -> None:
    with pytest.raises(InvalidError) as caught:
        SERVICES[slug].build_url({**_VALUES[slug][0], field: value})
    assert caught.value.field == field
    assert str(caught.value).startswith(sentence)
