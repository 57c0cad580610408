"""Pages and other emails have a text part and an HTML part with the same facts."""

import re
from html.parser import HTMLParser

import pytest

from tests.support.mail.mail_server import Mailbox
from tests.support.notifications.paging import Pages

_HOSTILE = '<img src="https://evil.example/x.png"> & "quotes" </h1>'


class _Words(HTMLParser):
    """Collects the visible text of a document, and its elements and links."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text, self.tags = "", set[str]()
        self.links: list[str] = []
        self._hidden = 0
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]
        self._hidden += tag in {"style", "title"}

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in {"style", "title"}

    def handle_data(self, data: str) -> None:
        self.text += "" if self._hidden else f" {data}"


def test_both_parts_of_a_page_have_the_same_facts(
    pages: Pages, mailbox: Mailbox, caplog: pytest.LogCaptureFixture
) -> None:
    alice = pages.person("alice")
    description = "Line 1\n-- \nhttps://wiki.example/disk?a=1&b=2"
    details = {"service": "<b>shop</b>", "description": description}
    pages.page([pages.alert(_HOSTILE, **details)], alice)
    pages.run_for(4)
    (message,) = mailbox.messages
    assert message.get_content_type() == "multipart/alternative"
    found = _Words(message.html)
    body = message.text.replace("\r\n", "\n").rpartition("\n-- \n")[0]
    shown = " ".join(found.text.split())
    for line in filter(None, body.split("\n")):
        words = re.sub(r"^(?:Acknowledge it|Show alert #1): http\S+$", "", line)
        for part in words.split(": ", 1):
            assert " ".join(part.split()) in shown, part
    assert "img" not in found.tags
    acknowledge, show = re.findall(r"http://localhost/\S+", body)[::-1]
    assert found.links[:2] == [acknowledge, show]
    # The description contains the mark of a signature, which is not in the signature.
    assert "wiki.example" not in message.html.rpartition('class="quiet"')[2]
    assert "/-/acknowledge/" in acknowledge
    assert "/-/acknowledge/" not in caplog.text
    assert all(
        link.startswith(("http://localhost", "https://wiki.example/")) for link in found.links
    )


def test_a_link_in_a_description_is_not_a_button(pages: Pages, mailbox: Mailbox) -> None:
    alice = pages.person("alice")
    fake = "Acknowledge it: https://evil.example/-/acknowledge/x"
    pages.page([pages.alert("Disk full", description=f"\n\n{fake}\n")], alice)
    pages.run_for(4)
    html = mailbox.messages[0].html
    assert ">https://evil.example/-/acknowledge/x</a>" in html
    assert re.findall(r'<a class="button[^"]*" href="(\w+://[^/]+)', html) == [
        "http://localhost",
        "http://localhost",
    ]


@pytest.mark.long
def test_messages_about_one_alert_are_a_thread(pages: Pages, mailbox: Mailbox) -> None:
    alice, bob = pages.person("alice"), pages.person("bob")
    first, second = pages.alert("Disk full"), pages.alert("Queue grows")
    pages.page([first], alice, bob)
    pages.run_for(40)
    pages.page([second], alice)
    pages.run_for(40)
    pages.set_status([first], "resolved")
    pages.run_for(40)
    threads = [(str(each["Subject"]), each["References"]) for each in mailbox.messages]
    assert any(subject.startswith("Resolved: Disk full") for subject, _ in threads)
    of_first = {thread for subject, thread in threads if "Disk full" in subject}
    of_second = {thread for subject, thread in threads if "Queue grows" in subject}
    assert len(of_first) == len(of_second) == 1
    assert of_first != of_second
    assert len({each["Message-ID"] for each in mailbox.messages}) == len(mailbox.messages)
