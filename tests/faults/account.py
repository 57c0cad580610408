"""What became of everything that was sent while something broke."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from tests.support.mail.mail_server import Mailbox


@dataclass(frozen=True, kw_only=True)
class Account:
    """What was sent was answered, reset or unheard; what was answered 200 is stored or lost."""

    sent: int
    #: Answers by status.
    answered: Counter[int]
    #: Connections that ended without an answer: nothing was promised there.
    reset: int
    #: Connections that nobody took.
    unheard: int
    stored: int
    #: Answered 200, and not stored.
    lost: int
    #: Stored more than once.
    doubled: int
    #: Seconds that the slowest answer took, whatever it said.
    longest_wait: float

    def __str__(self) -> str:
        statuses = " ".join(f"{status}:{count}" for status, count in sorted(self.answered.items()))
        return (
            f"sent {self.sent}, answered {statuses or 'none'}, reset {self.reset}, "
            f"unheard {self.unheard}, "
            f"stored {self.stored}, lost {self.lost}, doubled {self.doubled}, "
            f"longest wait {self.longest_wait:.2f} s"
        )


def doubled_in(titles: Iterable[str]) -> int:
    """Return how many were stored more often than once."""
    return sum(count - 1 for count in Counter(titles).values())


def assert_each_was_sent(mailbox: Mailbox, pages: int, *, kills: int) -> None:
    """Check the account of what the mail server took: a kill may double one message.

    A message about several alerts has their number in its subject. What was sent when a worker was
    killed leaves once more, as it was or in one message with what came later.
    """
    first = {str(each["Message-ID"]): str(each["Subject"]) for each in mailbox.messages}
    counts = [
        int(subject.split()[1]) if " alerts in " in subject else 1 for subject in first.values()
    ]
    # Of how many messages, and how many pages they have between them.
    doubled = {(0, 0)}
    for count in counts:
        doubled |= {(number + 1, sent + count) for number, sent in doubled if number < kills}
    assert sum(counts) - pages in {sent for _, sent in doubled}, first
    assert len(mailbox.messages) - len(first) <= kills
