"""Resources and request bodies for absences, imported calendars, holidays and conflicts."""

from datetime import date
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from domain.accounts.profiles import UserReference
from domain.core.types.base import Body, Line, Name, RequestTime, Resource, Text, Time
from domain.core.types.pagination import PagedQuery

MAX_CALENDAR_NAME_LENGTH, MAX_NOTE_LENGTH = 100, 200


class AbsenceQuery(PagedQuery):
    """Query parameters for a list of absences."""

    order_by: Literal["id", "starts_at"] = Field(
        default="id", description="Field by which the list is sorted."
    )


class OnCallAbsence(Resource):
    """A period in which a user is absent."""

    id: int
    starts_at: Time
    ends_at: Time
    note: str = Field(description="Note that only the user sees.")
    calendar_id: int | None = Field(
        description="ID of the calendar that contains the absence. Null if the user entered it."
    )
    created_at: Time


class NewAbsence(Body):
    """Request body that creates an absence."""

    starts_at: RequestTime = Field(
        description="Start of the absence, such as 2027-05-31T12:00:00Z."
    )
    ends_at: RequestTime = Field(description="End of the absence, such as 2027-06-07T12:00:00Z.")
    note: Annotated[Line, Field(max_length=MAX_NOTE_LENGTH)] = Field(
        default="", description="Note that only the user sees."
    )


class ImportedCalendar(Resource):
    """A calendar from a URL, which is read every hour, or from a file, which is read once."""

    id: int
    name: str
    host: str | None = Field(description="Host of the secret URL. Null for a file.")
    event_count: int = Field(description="Number of current and future absences or holidays.")
    skipped_count: int = Field(description="Number of events that could not be read.")
    created_at: Time
    refreshed_at: Time | None = Field(description="Time of the last successful read.")
    last_error: str | None = Field(description="Reason for the last failure. Null after a success.")
    next_refresh_at: Time | None = Field(description="Time of the next read. Null for a file.")


class NewImportedCalendar(Body):
    """A new calendar, with either a URL or the content of a file."""

    name: Annotated[Name, Field(max_length=MAX_CALENDAR_NAME_LENGTH)]
    url: Text = Field(
        default="", description="Secret HTTPS URL of a calendar in the iCalendar format."
    )
    content: Text = Field(default="", description="Content of a file in the iCalendar format.")

    @model_validator(mode="after")
    def _check_source(self) -> Self:
        if bool(self.url) == bool(self.content):
            raise ValueError("Either `url` or `content` is required.")
        return self


class OnCallHoliday(Resource):
    """A holiday in a calendar of a schedule. Holidays do not change who is on call."""

    name: str
    first_day: date
    last_day: date


class OnCallConflict(Resource):
    """A period in which a user is both on call and absent. Absent users are still paged."""

    schedule_id: int
    user: UserReference
    starts_at: Time
    ends_at: Time
