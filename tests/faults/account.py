"""What became of everything that was sent while something broke."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tests.support.mail.mail_server import Mailbox

#: 0.1.0 named no project.
_SEVERAL = re.compile(r"\[\w+\] (\d+) alerts(?: in |: )")


@dataclass(frozen=True, kw_only=True)
class Account:
    """What was sent was answered, reset or unheard; what was answered 200 is stored or lost."""

    database: str
    #: Who sends what, and how.
    load: str
    sent: int
    #: Answers by status.
    answered: Counter[int]
    #: Connections that ended without an answer: nothing was promised there.
    reset: int
    #: Connections that nobody took.
    unheard: int
    #: None where requests of many kinds were sent, which leave different things.
    stored: int | None
    #: Answered 200, and not stored.
    lost: int
    #: Stored more than once.
    doubled: int
    #: Seconds that the slowest answer took, whatever it said.
    longest_wait: float
    #: The same of somebody who asked for a page meanwhile; None where nobody did.
    others_wait: float | None
    #: Seconds from the end of the fault to the next alert that was accepted, the longest of them;
    #: None where the fault lasted as long as the load.
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
    """What people were sent while those who send were killed."""

    kills: int
    pages: int
    messages: int
    lost: int
    #: Messages that left once more, as they were or with what came later.
    doubled: int


@dataclass
class Kept:
    """What the running test has counted, for the document about all of them."""

    accounts: list[Account] = field(default_factory=list)
    pages: list[Pages] = field(default_factory=list)

    def clear(self) -> None:
        """Begin with another test."""
        self.accounts.clear()
        self.pages.clear()


#: Of the test that runs: tests/faults/conftest.py empties it.
KEPT = Kept()


def doubled_in(titles: Iterable[str]) -> int:
    """Return how many were stored more often than once."""
    return sum(count - 1 for count in Counter(titles).values())


def assert_each_was_sent(mailbox: Mailbox, pages: int, *, kills: int) -> None:
    """Check the account of what the mail server took: a kill may double one message.

    A message about several alerts has their number in its subject. What was sent when a worker was
    killed leaves once more, as it was or in one message with what came later.
    """
    # A long subject begins on the line after its name.
    first = {str(each["Message-ID"]): str(each["Subject"]).strip() for each in mailbox.messages}
    counts = [
        int(found[1]) if (found := _SEVERAL.match(subject)) else 1 for subject in first.values()
    ]
    # Of how many messages, and how many pages they have between them.
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
