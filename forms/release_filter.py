"""The filter form of the release schedule."""

from flask import request
from wtforms import SelectField

from domain.releases.changes import Interface
from domain.releases.listing import ChangeFilter, State, releases_on_schedule
from domain.releases.version import parse_release
from forms.base import Form

_RELEASES = [(str(each), str(each)) for each in releases_on_schedule()]
_INTERFACES = [(each.value, each.label) for each in Interface]
_STATES = [(each.value, each.label) for each in State]


class ReleaseFilterForm(Form):
    """The filter of the release schedule; every field is optional."""

    release = SelectField("Release", choices=[("", "Any release"), *_RELEASES], default="")
    interface = SelectField("Interface", choices=[("", "Any interface"), *_INTERFACES], default="")
    state = SelectField("State", choices=[("", "Any state"), *_STATES], default="")
    #: For people who are signed in.
    used_by = SelectField(
        "Used by", choices=[("", "Anybody"), ("me", "Your tokens and applications")], default=""
    )

    def __init__(self) -> None:
        """Read the values from the query, without CSRF protection."""
        super().__init__(formdata=request.args, meta={"csrf": False})

    def wanted(self) -> ChangeFilter:
        """Return the filter."""
        return ChangeFilter(
            release=parse_release(self.release.data) if self.release.data else None,
            interface=Interface(self.interface.data) if self.interface.data else None,
            state=State(self.state.data) if self.state.data else None,
        )
