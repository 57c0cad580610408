"""The states of an escalation."""

from enum import StrEnum


class State(StrEnum):
    """How it stands with the paging for an alert; the value is stored."""

    #: The next step is due at `next_at`.
    RUNNING = "running"
    #: A silence or the like holds the next step back.
    HELD = "held"
    #: Somebody acknowledged or ignored the alert, or it was resolved.
    STOPPED = "stopped"
    #: All steps of all rounds were taken, and nobody answered yet.
    EXHAUSTED = "exhausted"
    #: No policy was chosen for the alert.
    NO_POLICY = "no_policy"
    POLICY_DELETED = "policy_deleted"
