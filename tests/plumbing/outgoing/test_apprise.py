"""Messages through apprise: to real endpoints, and to nothing that only this machine may reach."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from socket import socket
from threading import Thread
from time import monotonic, sleep

import pytest

from domain.errors import InvalidError
from tests.support.mail.mail_server import Mailbox, closed_port, running_mail_server
from tests.support.service.receiver import Received, Receiver, running_receiver
from web.outgoing.apprise_processes import AppriseProblem, AppriseProcesses, check_apprise_url
from web.settings.reader import Settings, read_settings

LOOPBACK = "127.0.0.0/8"
_SECRET = "s3cr3t-token-of-alice"


@pytest.fixture(scope="module")
def private(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings that allow nothing but public addresses, as they are without a word of anybody."""
    return read_settings({"INSTANCE_PATH": str(tmp_path_factory.mktemp("instance"))})


@pytest.fixture(scope="module")
def local(private: Settings) -> Settings:
    """Settings that allow addresses on loopback."""
    return replace(private, outgoing_private_addresses=LOOPBACK)


@pytest.fixture(scope="module")
def processes(local: Settings) -> Iterator[AppriseProcesses]:
    running = AppriseProcesses(local)
    yield running
    running.close()


@pytest.fixture(scope="module")
def strict(private: Settings) -> Iterator[AppriseProcesses]:
    running = AppriseProcesses(private)
    yield running
    running.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as running:
        yield running


def send(
    processes: AppriseProcesses, url: str, body: str = "at 98%", *, deadline: float = 20
) -> AppriseProblem | None:
    return processes.send(url, "Disk full 磁盘", body, is_alarm=True, deadline=deadline)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("json://127.0.0.1:{port}/hook", "/hook"),
        ("xml://127.0.0.1:{port}/hook", "/hook"),
        ("form://127.0.0.1:{port}/hook", "/hook"),
        ("ntfy://127.0.0.1:{port}/alerts", "/"),
        ("gotify://127.0.0.1:{port}/s3cr3ttoken12345", "/message"),
        (
            "mmost://127.0.0.1:{port}/3ccdd113474722377935511fc85d3dd4",
            "/hooks/3ccdd113474722377935511fc85d3dd4",
        ),
    ],
)
def test_services_take_messages(
    processes: AppriseProcesses, receiver: Receiver, url: str, path: str
) -> None:
    receiver.answer = lambda _request: (200, {})
    assert send(processes, url.format(port=receiver.port)) is None
    (taken,) = receiver.received
    assert taken.path == path
    body = taken.body.decode("unicode_escape")
    assert "98%" in body or "98%25" in body


def test_one_process_serves_many_messages_at_once(
    processes: AppriseProcesses, receiver: Receiver
) -> None:
    def slowly(_request: Received) -> tuple[int, Mapping[str, str]]:
        sleep(0.05)
        return 200, {}

    receiver.answer = slowly
    url = f"json://127.0.0.1:{receiver.port}/"
    results: list[AppriseProblem | None] = []
    threads = [Thread(target=lambda: results.append(send(processes, url))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [None] * 12
    assert len(receiver.received) == 12
    assert len(processes.process_ids) == 1


def test_what_a_service_says_is_told_without_the_secret(
    processes: AppriseProcesses, receiver: Receiver
) -> None:
    receiver.answer = lambda _request: (403, {})
    problem = send(processes, f"json://alice:{_SECRET}@127.0.0.1:{receiver.port}/{_SECRET}/x")
    assert problem is not None
    assert problem.reason == "JSON did not accept it"
    assert "403" in problem.words
    assert _SECRET not in repr(problem)
    problem = send(processes, f"json://127.0.0.1:{closed_port()}/{_SECRET}")
    assert problem is not None
    assert "refused" in problem.words
    assert _SECRET not in repr(problem)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("json://127.0.0.1:{port}/", "loopback"),
        ("json://localhost:{port}/", "loopback"),
        ("json://[::1]:{port}/", "loopback"),
        ("json://2130706433:{port}/", "loopback"),
        ("ntfy://127.0.0.1:{port}/topic", "loopback"),
        ("mailto://127.0.0.1:{port}/?from=a@b.example&to=c@d.example", "loopback"),
        ("rsyslog://127.0.0.1:{port}", "loopback"),
        ("json://169.254.169.254/latest/meta-data", "link-local"),
        ("json://10.1.2.3/", "private"),
        ("json://0.0.0.0:{port}/", "unspecified"),
    ],
)
def test_nothing_reaches_addresses_that_are_not_public(
    strict: AppriseProcesses, receiver: Receiver, url: str, kind: str
) -> None:
    problem = send(strict, url.format(port=receiver.port))
    assert problem is not None
    assert kind in problem.reason
    assert "OUTGOING_PRIVATE_ADDRESSES" in problem.reason
    assert receiver.received == []


def test_a_redirect_leads_to_nothing_that_is_refused(local: Settings, receiver: Receiver) -> None:
    receiver.answer = lambda _request: (307, {"Location": "http://127.0.0.2:1/inside"})
    running = AppriseProcesses(replace(local, outgoing_private_addresses="127.0.0.1/32"))
    try:
        problem = send(running, f"json://127.0.0.1:{receiver.port}/")
    finally:
        running.close()
    assert problem is not None
    assert "127.0.0.2, which is loopback" in problem.reason


OF_FILES = (
    "workflows://127.0.0.1:1/abcdefgh/ijkl/?template={file}",
    "fcm://project@apikeyapikey/token/?mode=oauth2&keyfile={file}",
)


@pytest.mark.parametrize("url", OF_FILES)
def test_no_file_of_this_machine_is_read(
    processes: AppriseProcesses, tmp_path: Path, url: str
) -> None:
    file = tmp_path / "secret.json"
    file.write_text('{"type": "message", "text": "inside"}', encoding="utf-8")
    problem = send(processes, url.format(file=file))
    assert problem is not None
    assert problem.reason == "it wanted to open a file of this machine"


def test_a_process_has_nothing_of_the_environment(
    processes: AppriseProcesses, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(processes, f"json://127.0.0.1:{receiver.port}/")
    for number in processes.process_ids:
        environment = Path(f"/proc/{number}/environ")
        if environment.exists():  # on Linux
            assert environment.read_bytes() == b""
    del monkeypatch


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("syslog://", "acts on the machine"),
        ("file:///etc/passwd", "cannot read this URL"),
        ("", "Enter a URL"),
        ("json://a\nb", "Enter a URL"),
        ("json://" + 1_100 * "a", "Enter a URL"),
        ("mailto://a:b@gmail.com?to=x@example.org,y@example.org", "several targets"),
        (OF_FILES[0].format(file="/t.json"), "names a file"),
        (OF_FILES[0].format(file="https://files.example/t.json"), "names a file"),
        (OF_FILES[1].format(file="/key.json"), "names a file"),
        ("mailto://a:b@gmail.com?to=x@example.org&pgp=encrypt&pgppub=/key", "names a file"),
    ],
)
def test_urls_that_cannot_be_used_are_refused(local: Settings, url: str, words: str) -> None:
    with pytest.raises(InvalidError, match=words):
        check_apprise_url(url, local)


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


def test_a_service_that_hangs_is_given_up_and_stops_no_other(
    local: Settings, receiver: Receiver
) -> None:
    running = AppriseProcesses(local)
    try:
        with socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            hanging = f"json://127.0.0.1:{silent.getsockname()[1]}/?rto=60&cto=60"
            good = f"json://127.0.0.1:{receiver.port}/"
            assert send(running, good) is None
            (first,) = running.process_ids
            problem = send(running, hanging, deadline=0.3)
            assert problem == ("no answer came within 0 seconds", "")
            assert send(running, good) is None
            assert first not in running.process_ids
    finally:
        running.close()
    assert running.process_ids == []


def test_a_process_without_work_ends(local: Settings, receiver: Receiver) -> None:
    running = AppriseProcesses(local, idle_seconds=1.0)
    try:
        running.prepare()
        running.prepare()
        (prepared,) = running.process_ids
        assert send(running, f"json://127.0.0.1:{receiver.port}/") is None
        assert running.process_ids == [prepared]
        end = monotonic() + 20
        while running.process_ids and monotonic() < end:
            sleep(0.01)
        assert running.process_ids == []
    finally:
        running.close()


def test_nobody_calls_everybody_by_the_title_of_an_alert(
    processes: AppriseProcesses, receiver: Receiver
) -> None:
    send(processes, f"json://127.0.0.1:{receiver.port}/", body="@everyone <!channel> <@U123> a@b.c")
    assert receiver.received[0].event["message"] == (
        "@\u200beveryone <\u200b!channel> <\u200b@U123> a@b.c"
    )


def test_mail_servers_of_people_are_reached_as_well(processes: AppriseProcesses) -> None:
    mailbox = Mailbox()
    with running_mail_server(mailbox) as port:
        url = f"mailto://127.0.0.1:{port}/?from=a@b.example&to=c@d.example&mode=insecure"
        assert send(processes, url) is None
    assert mailbox.recipients == [["c@d.example"]]
