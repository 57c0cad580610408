"""Counts what happened to everything that was sent during a fault."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.support.mail.mail_server import Mailbox

#: Release 0.1.0 did not name the project.
_SEVERAL = re.compile(r"\[\w+\] (\d+) alerts(?: in |: )")


@dataclass(frozen=True, kw_only=True)
class Account:
    """Counts the results of a load: answered, reset, unheard, stored and lost requests."""

    database: str
    #: The senders, and their kind of connection.
    load: str
    sent: int
    #: Number of responses by status.
    answered: Counter[int]
    #: Connections that ended without a response, so that the alert may be stored or not.
    reset: int
    #: Connections that were not accepted.
    unheard: int
    #: Number of stored alerts; None if requests of many kinds were sent.
    stored: int | None
    #: Alerts that were answered with 200 but are not stored.
    lost: int
    #: Alerts that are stored more than once.
    doubled: int
    #: Seconds of the slowest response, with any status.
    longest_wait: float
    #: The longest wait of a visitor of a page meanwhile; None if there was no visitor.
    others_wait: float | None
    #: Longest time in seconds from the end of a fault to the next accepted alert; None if the fault
    #: lasted as long as the load.
    recovery: float | None

    def __str__(self) -> str:
        statuses = " ".join(f"{status}:{count}" for status, count in sorted(self.answered.items()))
        return (
            f"sent {self.sent}, answered {statuses or 'none'}, reset {self.reset}, "
            f"unheard {self.unheard}, "
            f"stored {self.stored}, lost {self.lost}, doubled {self.doubled}, "
            f"longest wait {self.longest_wait:.2f} s, of others {self.others_wait or 0:.2f} s"
        )


@dataclass(frozen=True, kw_only=True)
class Pages:
    """Counts the messages that users got while workers were killed."""

    kills: int
    pages: int
    messages: int
    lost: int
    #: Messages that were sent again, unchanged or combined with later pages.
    doubled: int


@dataclass
class Kept:
    """Collects the counts of the running test, for the document about all faults."""

    accounts: list[Account] = field(default_factory=list)
    pages: list[Pages] = field(default_factory=list)

    def clear(self) -> None:
        """Reset the counts for the next test."""
        self.accounts.clear()
        self.pages.clear()


#: Counts of the running test; tests/faults/conftest.py resets them.
KEPT = Kept()


def doubled_in(titles: Iterable[str]) -> int:
    """Return the number of duplicates."""
    return sum(count - 1 for count in Counter(titles).values())


def assert_each_was_sent(mailbox: Mailbox, pages: int, *, kills: int) -> None:
    """Check the messages that the mail server got: a kill can double one message.

    A message about several alerts has their number in its subject. Messages that were being sent
    when a worker was killed are sent again, unchanged or combined with later pages.
    """
    # A long subject starts on the line after its header name.
    first = {str(each["Message-ID"]): str(each["Subject"]).strip() for each in mailbox.messages}
    counts = [
        int(found[1]) if (found := _SEVERAL.match(subject)) else 1 for subject in first.values()
    ]
    # Numbers of messages, with the number of pages in them.
    doubled = {(0, 0)}
    for count in counts:
        doubled |= {(number + 1, sent + count) for number, sent in doubled if number < kills}
    again, more = len(mailbox.messages) - len(first), sum(counts) - pages
    assert more in {sent for _, sent in doubled}, first
    assert again <= kills
    kept = Pages(
        kills=kills,
        pages=pages,
        messages=len(mailbox.messages),
        lost=max(0, -more),
        doubled=again + max(0, more),
    )
    KEPT.pages.append(kept)
