"""Resources and request bodies for contacts, channels and paging preferences."""

from typing import Annotated, Literal

from pydantic import Field

from domain.core.types.base import Body, Option, RequiredText, Resource, Text
from domain.core.types.pagination import IncludeAncestorGroups, OffsetQuery
from domain.paging.notifications.contact_types.registry import ADDRESS_WORDS, ENTERED_CONTACT_TYPES
from domain.paging.notifications.contacts import Contact
from domain.paging.notifications.recipients import (
    PagingPreferences,
    QuietHours,
    format_minutes_of_day,
    parse_minutes_of_day,
)


class ContactQuery(OffsetQuery):
    """Query parameters for a list of contacts, sorted from oldest to newest."""

    order_by: Literal["id"] = "id"
    sort: Literal["asc"] = "asc"


class ChannelQuery(ContactQuery):
    """Query parameters for a list of channels, sorted from oldest to newest."""

    include_ancestor_groups: IncludeAncestorGroups = False


class Channel(Contact):
    """A contact of a project or group, which escalation policies can page."""

    group: str | None = Field(
        description="Path of the group that owns the channel. Null if a project owns it."
    )


class ContactBody(Body):
    """Request body that creates a contact or a channel."""

    type: Literal[*(each.name for each in ENTERED_CONTACT_TYPES)]  # type: ignore[valid-type]
    address: RequiredText = Field(description=f"Address of the contact, such as {ADDRESS_WORDS}.")
    label: Annotated[Text, Option("--name", former="--label")] = Field(
        default="", max_length=100, description="Display name. The default is the address."
    )


class ContactChange(Body):
    """Changes to a contact or channel, except its type. Omitted fields keep their values."""

    address: Text | None = Field(
        default=None,
        description="New address. A user's contact has to be confirmed again after the change.",
    )
    label: Annotated[Text | None, Option("--name")] = Field(
        default=None, max_length=100, description="Display name."
    )


class ContactCodeBody(Body):
    """The confirmation code that was sent to a contact."""

    code: RequiredText


class ContactTest(Resource):
    """The result of a test message."""

    delivered: bool | None = Field(
        description="True if the message was delivered. Null while it is queued."
    )
    error: str | None = Field(description="Reason why the message was not delivered.")


class QuietHoursBody(Body):
    """Daily period in which a user is not paged."""

    starts_at: RequiredText = Field(description="Start of the quiet hours, such as 22:00.")
    ends_at: RequiredText = Field(
        description="End of the quiet hours on the same or the next day, such as 07:00."
    )
    time_zone: RequiredText = Field(
        description="Time zone of the quiet hours, such as Europe/Berlin."
    )
    critical_breaks_quiet_hours: bool = Field(
        default=True, description="True to send pages about critical alerts during quiet hours."
    )

    @property
    def quiet_hours(self) -> QuietHours:
        """The quiet hours that the request body specifies.

        Raise InvalidError if a time is invalid.
        """
        return QuietHours(
            time_zone=self.time_zone,
            starts=parse_minutes_of_day(self.starts_at, field="starts_at"),
            ends=parse_minutes_of_day(self.ends_at, field="ends_at"),
            lets_critical_through=self.critical_breaks_quiet_hours,
        )


class ContactPreferencesBody(Body):
    """Changes to the paging preferences of a user. Omitted fields are kept."""

    quiet_hours: QuietHoursBody | None = Field(
        default=None, description="Quiet hours. Null to remove them."
    )
    follow_ups: bool | None = Field(
        default=None,
        description="True to notify the user when someone else acknowledges an alert, when the "
        "alert ends, and when an alert or incident is assigned to the user.",
    )

    def apply_to_preferences(self, paging_preferences: PagingPreferences) -> PagingPreferences:
        """Return the given preferences with the requested changes.

        Omitted fields are kept. Raise InvalidError if the quiet hours are invalid.
        """
        hours = self.quiet_hours.quiet_hours if self.quiet_hours is not None else None
        return PagingPreferences(
            quiet_hours=hours
            if "quiet_hours" in self.given_values
            else paging_preferences.quiet_hours,
            wants_follow_ups=(
                paging_preferences.wants_follow_ups if self.follow_ups is None else self.follow_ups
            ),
        )


class QuietHoursView(Resource):
    """Daily period in which a user is not paged."""

    starts_at: str
    ends_at: str
    time_zone: str
    critical_breaks_quiet_hours: bool


class ContactPreferences(Resource):
    """The quiet hours and the follow-up setting of a user."""

    quiet_hours: QuietHoursView | None
    follow_ups: bool

    @classmethod
    def from_preferences(cls, preferences: PagingPreferences) -> "ContactPreferences":
        """Return the resource for paging preferences."""
        quiet, hours = None, preferences.quiet_hours
        if hours is not None:
            quiet = QuietHoursView(
                starts_at=format_minutes_of_day(hours.starts),
                ends_at=format_minutes_of_day(hours.ends),
                time_zone=hours.time_zone,
                critical_breaks_quiet_hours=hours.lets_critical_through,
            )
        return cls(quiet_hours=quiet, follow_ups=preferences.wants_follow_ups)
