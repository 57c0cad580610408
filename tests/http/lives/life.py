"""Describes resources: how each interface creates, changes and deletes a resource.

The API shows the result, so all interfaces must have the same effect. Texts in braces are replaced
with values of the test: `{project}` is the path of a project, `{id}` the resource.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Page:
    """A form of a page, with its address, its target and its values."""

    at: str
    #: The end of the form's target, which identifies the form on its page.
    to: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Life:
    """The steps from creation to deletion of a resource."""

    #: The URL of the resource's list in the API.
    at: str
    #: Values that the API is sent, and values that it shows afterwards.
    new: Mapping[str, Any] = field(default_factory=dict)
    shown: Mapping[str, Any] = field(default_factory=dict)
    change: Mapping[str, Any] | None = None
    changed: Mapping[str, Any] = field(default_factory=dict)
    #: Values that the API shows after the deletion; None if the resource is gone.
    ended: Mapping[str, Any] | None = None
    #: The field with the value that the URL contains.
    key: str = "id"
    #: The commands that create, change and delete the resource.
    commands: tuple[str, ...] = ()
    #: The forms that create, change and delete the resource.
    pages: tuple[Page | None, ...] = ()
    #: Whether the API shows the resource only in its list.
    is_only_listed: bool = False
    #: The interfaces that offer the resource.
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
