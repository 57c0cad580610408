"""Tests of Apprise messages: to local endpoints, and never to forbidden addresses or files."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from socket import socket
from threading import Thread
from time import monotonic, sleep

import pytest

from domain.core.errors import InvalidError
from domain.paging.notifications.contact_types.base import SendProblem
from tests.support.mail.mail_server import Mailbox, running_mail_server
from tests.support.service.message_receiver import Received, Receiver, running_telephone
from tests.support.service.ports import free_port
from web.outgoing.apprise_processes import AppriseProcesses, check_apprise_url
from web.settings.environment import Settings, parse_settings

LOOPBACK = "127.0.0.1:1-65535"
_SECRET = "s3cr3t-token-of-alice"


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Return default settings, which allow only public addresses."""
    return parse_settings({"INSTANCE_PATH": str(tmp_path_factory.mktemp("instance"))})


@pytest.fixture(scope="module")
def local(private: Settings) -> Settings:
    """Return settings that allow every port of loopback."""
    return replace(private, outgoing_contact_hosts=LOOPBACK)


@pytest.fixture(scope="module")
def processes(local: Settings) -> Iterator[AppriseProcesses]:
    running = AppriseProcesses(local)
    yield running
    running.end_children()


@pytest.fixture(scope="module")
def strict(private: Settings) -> Iterator[AppriseProcesses]:
    running = AppriseProcesses(private)
    yield running
    running.end_children()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_telephone() as running:
        yield running


def send(
    processes: AppriseProcesses, url: str, body: str = "at 98%", *, deadline: float = 20
) -> SendProblem | None:
    return processes.send_message(
        *(url, "Disk full 磁盘", body), short_body="in short", is_alarm=True, deadline=deadline
    )


@pytest.mark.parametrize(
    ("url", "length", "said"),
    [
        # This service accepts only short texts.
        ("misskey://s3cr3ttoken12345@127.0.0.1:{port}", 50, "in short"),
        # This service accepts 4,000 characters, so the text is not cut.
        ("mmost://127.0.0.1:{port}/3ccdd113474722377935511fc85d3dd4", 3_990, "x" * 3_990),
        (
            "mmost://127.0.0.1:{port}/3ccdd113474722377935511fc85d3dd4",
            9_000,
            "x" * 3_989 + "…\n\nin short",
        ),
    ],
)
def test_a_service_gets_a_text_within_its_length_limit(
    processes: AppriseProcesses, receiver: Receiver, url: str, length: int, said: str
) -> None:
    assert send(processes, url.format(port=receiver.port), "x" * length) is None
    (message,) = receiver.received
    assert json.loads(message.body)["text"].endswith(f"\n{said}")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("ntfy://127.0.0.1:{port}/alerts", "/"),
        ("gotify://127.0.0.1:{port}/s3cr3ttoken12345", "/message"),
        (
            "mmost://127.0.0.1:{port}/3ccdd113474722377935511fc85d3dd4",
            "/hooks/3ccdd113474722377935511fc85d3dd4",
        ),
    ],
)
def test_services_receive_messages(
    processes: AppriseProcesses, receiver: Receiver, url: str, path: str
) -> None:
    assert send(processes, url.format(port=receiver.port)) is None
    (taken,) = receiver.received
    assert taken.path == path
    body = taken.body.decode("unicode_escape")
    assert "98%" in body or "98%25" in body


@pytest.mark.long
def test_one_process_sends_many_messages_concurrently(
    processes: AppriseProcesses, receiver: Receiver
) -> None:
    def slowly(_request: Received) -> tuple[int, Mapping[str, str]]:
        sleep(0.05)
        return 200, {}

    receiver.answer = slowly
    url = receiver.contact_url
    results: list[SendProblem | None] = []
    threads = [Thread(target=lambda: results.append(send(processes, url))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [None] * 12
    assert len(receiver.received) == 12
    assert len(processes.process_ids) == 1


def test_a_timeout_is_reported_differently_from_a_refused_connection(
    processes: AppriseProcesses,
) -> None:
    with socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        url = f"ntfy://127.0.0.1:{silent.getsockname()[1]}/topic?rto=0.3&cto=5"
        problem = send(processes, url)
    assert problem is not None
    assert problem.reason == "ntfy did not respond in time"


def test_an_error_of_a_service_is_reported_without_the_secret(
    processes: AppriseProcesses, receiver: Receiver
) -> None:
    receiver.answer = lambda _request: (403, {})
    problem = send(processes, f"ntfy://alice:{_SECRET}@127.0.0.1:{receiver.port}/{_SECRET}")
    assert problem is not None
    assert problem.reason == "ntfy returned 403 Forbidden"
    assert "403" in problem.words
    assert _SECRET not in repr(problem)
    problem = send(processes, f"ntfy://127.0.0.1:{free_port()}/{_SECRET}")
    assert problem is not None
    assert problem.reason == "ntfy could not be reached"
    assert "refused" in problem.words
    assert _SECRET not in repr(problem)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("ntfy://127.0.0.1:{port}/topic", "loopback"),
        ("ntfy://localhost:{port}/topic", "loopback"),
        ("ntfy://[::1]:{port}/topic", "loopback"),
        ("ntfy://2130706433:{port}/topic", "loopback"),
        ("mailto://127.0.0.1:{port}/?from=a@b.example&to=c@d.example", "loopback"),
        ("rsyslog://127.0.0.1:{port}", "loopback"),
        ("gotify://169.254.169.254/latest/s3cr3ttoken12345", "link-local"),
        ("ntfy://10.1.2.3/topic", "private"),
        ("ntfy://0.0.0.0:{port}/topic", "unspecified"),
    ],
)
def test_messages_to_non_public_addresses_are_rejected(
    strict: AppriseProcesses, receiver: Receiver, url: str, kind: str
) -> None:
    problem = send(strict, url.format(port=receiver.port))
    assert problem is not None
    assert kind in problem.reason
    assert "OUTGOING_CONTACT_HOSTS" in problem.reason
    assert receiver.received == []


@pytest.mark.parametrize("path", ["{port}/topic", "{port}/topic?redirect=yes"])
def test_redirects_are_not_followed(
    processes: AppriseProcesses, receiver: Receiver, path: str
) -> None:
    asked: list[str] = []

    def redirecting(request: Received) -> tuple[int, Mapping[str, str]]:
        asked.append(request.path)
        return 307, {"Location": f"http://127.0.0.1:{receiver.port}/inside"}

    receiver.answer = redirecting
    problem = send(processes, f"ntfy://127.0.0.1:{path.format(port=receiver.port)}")
    assert problem is not None
    assert "redirects are not followed" in problem.reason
    assert asked == ["/"]


@pytest.mark.parametrize("scheme", ["json", "xml", "form"])
def test_generic_services_cannot_reach_allowed_private_hosts(
    processes: AppriseProcesses, receiver: Receiver, scheme: str
) -> None:
    problem = send(processes, f"{scheme}://127.0.0.1:{receiver.port}/hook")
    assert problem is not None
    assert problem.reason == (
        "127.0.0.1 is a loopback address; JSON, XML and form URLs reach public addresses only"
    )
    assert receiver.received == []


@pytest.mark.long
@pytest.mark.parametrize(
    ("named", "reached"),
    [
        ("127.0.0.1:{port}", 1),
        ("LOCALHOST.:{port}", 1),
        ("localhost:{other}", 0),
        ("127.0.0.2:{port}", 0),
        ("localhost.example:{port}, 127.0.0.2:1-65535", 0),
    ],
)
def test_an_allowed_host_has_to_match_name_and_port(
    private: Settings, receiver: Receiver, named: str, reached: int
) -> None:
    hosts = named.format(port=receiver.port, other=receiver.port ^ 1)
    settings = parse_settings(
        {"INSTANCE_PATH": str(private.instance_path), "OUTGOING_CONTACT_HOSTS": hosts}
    )
    running = AppriseProcesses(settings)
    try:
        problem = send(running, f"ntfy://localhost:{receiver.port}/topic")
    finally:
        running.end_children()
    assert (problem is None) is bool(reached)
    assert len(receiver.received) == reached


@pytest.mark.long
def test_another_name_of_an_allowed_address_is_rejected(
    private: Settings, receiver: Receiver
) -> None:
    running = AppriseProcesses(
        replace(private, outgoing_contact_hosts=f"localhost:{receiver.port}")
    )
    try:
        assert send(running, f"ntfy://localhost:{receiver.port}/topic") is None
        for other in ("127.0.0.1", "2130706433", "0x7f000001"):
            problem = send(running, f"ntfy://{other}:{receiver.port}/topic")
            assert problem is not None
            assert "OUTGOING_CONTACT_HOSTS" in problem.reason
    finally:
        running.end_children()
    assert len(receiver.received) == 1


OF_REQUESTS = (
    ("json://hooks.example/?method=DELETE", "sets a method"),
    ("form://hooks.example/?method=get", "sets a method"),
    ("json://hooks.example/?+X-Admin=1", "sets a header"),
    ("xml://hooks.example/?+Host=inside.example", "sets a header"),
    ("apprise://127.0.0.1/token?+Authorization=Basic%20YTpi", "sets a header"),
)


@pytest.mark.parametrize(("url", "words"), OF_REQUESTS)
def test_urls_cannot_set_the_method_or_headers_of_a_request(
    processes: AppriseProcesses, url: str, words: str
) -> None:
    problem = send(processes, url)
    assert problem is not None
    assert words in problem.reason


OF_FILES = (
    "workflows://127.0.0.1:1/abcdefgh/ijkl/?template={file}",
    "fcm://project@apikeyapikey/token/?mode=oauth2&keyfile={file}",
)


@pytest.mark.parametrize("url", OF_FILES)
def test_local_files_are_not_read(processes: AppriseProcesses, tmp_path: Path, url: str) -> None:
    file = tmp_path / "secret.json"
    file.write_text('{"type": "message", "text": "inside"}', encoding="utf-8")
    problem = send(processes, url.format(file=file))
    assert problem is not None
    assert problem.reason == "the service tried to open a local file"


def test_a_process_has_an_empty_environment(
    processes: AppriseProcesses, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(processes, receiver.contact_url)
    for number in processes.process_ids:
        environment = Path(f"/proc/{number}/environ")
        if environment.exists():  # The file exists only on Linux.
            assert environment.read_bytes() == b""
    del monkeypatch


@pytest.mark.long
@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("syslog://", "acts on the sending host"),
        ("file:///etc/passwd", "cannot parse this URL"),
        ("", "Enter a URL"),
        ("json://a\nb", "Enter a URL"),
        ("json://" + 1_100 * "a", "Enter a URL"),
        ("mailto://a:b@gmail.com?to=x@example.org,y@example.org", "several targets"),
        (OF_FILES[0].format(file="/t.json"), "refers to a file"),
        (OF_FILES[0].format(file="https://files.example/t.json"), "refers to a file"),
        (OF_FILES[1].format(file="/key.json"), "refers to a file"),
        *OF_REQUESTS,
        ("mailto://a:b@gmail.com?to=x@example.org&pgp=encrypt&pgppub=/key", "refers to a file"),
    ],
)
def test_unusable_urls_are_rejected(local: Settings, url: str, words: str) -> None:
    with pytest.raises(InvalidError, match=words):
        check_apprise_url(url, local)


@pytest.mark.long
@pytest.mark.parametrize(
    ("url", "name", "shown", "lane"),
    [
        (
            f"json://alice:{_SECRET}@hooks.example:8443/{_SECRET}?x={_SECRET}",
            "JSON",
            "json://hooks.example:8443/…",
            "custom_json hooks.example:8443",
        ),
        (
            "https://hooks.slack.com/services/T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ",
            "Slack",
            "slack://…",
            "slack",
        ),
        ("ntfys://our-secret-topic", "ntfy", "ntfys://…", "ntfy"),
    ],
)
def test_a_url_is_shown_without_its_secrets(
    local: Settings, url: str, name: str, shown: str, lane: str
) -> None:
    assert check_apprise_url(url, local) == (name, shown, lane)


@pytest.mark.long
def test_a_service_that_hangs_times_out_and_does_not_block_others(
    local: Settings, receiver: Receiver
) -> None:
    running = AppriseProcesses(local)
    try:
        with socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            hanging = f"ntfy://127.0.0.1:{silent.getsockname()[1]}/topic?rto=60&cto=60"
            good = receiver.contact_url
            assert send(running, good) is None
            (first,) = running.process_ids
            problem = send(running, hanging, deadline=0.3)
            assert problem == SendProblem("no response was received within 0 seconds")
            assert send(running, good) is None
            assert first not in running.process_ids
    finally:
        running.end_children()
    assert running.process_ids == []


@pytest.mark.long
def test_an_idle_process_ends(local: Settings, receiver: Receiver) -> None:
    running = AppriseProcesses(local, idle_seconds=1.0)
    try:
        running.start_child()
        running.start_child()
        (prepared,) = running.process_ids
        assert send(running, receiver.contact_url) is None
        assert running.process_ids == [prepared]
        end = monotonic() + 20
        while running.process_ids and monotonic() < end:
            sleep(0.01)
        assert running.process_ids == []
    finally:
        running.end_children()


def test_alert_texts_cannot_mention_users_or_channels(
    processes: AppriseProcesses, receiver: Receiver
) -> None:
    send(processes, receiver.contact_url, body="@everyone <!channel> <@U123> a@b.c")
    assert receiver.received[0].event["message"] == (
        "@\u200beveryone <\u200b!channel> <\u200b@U123> a@b.c"
    )


def test_messages_can_be_sent_by_a_user_s_mail_server(processes: AppriseProcesses) -> None:
    mailbox = Mailbox()
    with running_mail_server(mailbox) as port:
        url = f"mailto://127.0.0.1:{port}/?from=a@b.example&to=c@d.example&mode=insecure"
        assert send(processes, url) is None
    assert mailbox.recipients == [["c@d.example"]]
