"""What the life of a resource is: how each interface creates, changes and ends one.

The API shows the result, so all interfaces have to bring about the same. Texts in braces are
replaced by what a test has: `{project}` is the path of a project, `{id}` the resource.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Page:
    """A form of a page: where it is, where it is sent, and what is filled in."""

    at: str
    #: The ending of the address that the form is sent to: of several forms the right one.
    to: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Life:
    """The life of a resource."""

    #: The URL of its list in the API.
    at: str
    #: What the API is sent, and what it shows afterwards.
    new: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)
    change: Mapping[str, Any] | None = None
    changed: Mapping[str, Any] = field(default_factory=dict)
    #: What the API shows after the end; None if it is gone.
    ended: Mapping[str, Any] | None = None
    #: The field whose value is in the URL.
    key: str = "id"
    #: The commands that create, change and end it, as one types them.
    commands: tuple[str, ...] = ()
    #: The pages that do.
    pages: tuple[Page | None, ...] = ()
    #: Whether its list is read to show one: it has no URL to GET.
    is_only_listed: bool = False
    #: The interfaces that have it.
    interfaces: tuple[str, ...] = ("api", "commands", "pages")


PROJECT = "/projects/{project_id}"
SCHEDULES = f"{PROJECT}/on_call/schedules"
LATER, STILL_LATER = "{later}", "{still_later}"

CONDITIONS = {
    "severities": ["critical", "high"],
    "environments": ["production"],
    "services": ["checkout"],
    "labels": ['team="web"'],
}
OTHER_CONDITIONS = {
    "severities": ["low"],
    "environments": ["staging"],
    "services": ["search"],
    "labels": ['team="db"'],
}
CONDITION_OPTIONS = (
    "--severity critical --severity high --environment production --service checkout"
    " --matcher 'team=\"web\"'"
)
OTHER_CONDITION_OPTIONS = (
    "--severity low --environment staging --service search --matcher 'team=\"db\"'"
)
CONDITION_FIELDS = {
    "severities": ["critical", "high"],
    "environments": "production",
    "services": "checkout",
    "labels": 'team="web"',
}
OTHER_CONDITION_FIELDS = {
    "severities": ["low"],
    "environments": "staging",
    "services": "search",
    "labels": 'team="db"',
}
