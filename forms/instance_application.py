"""The form of an application as administrators fill it in."""

from dataclasses import replace
from typing import Self

from wtforms import BooleanField

from domain.oauth.clients.applications import ApplicationDetails, ApplicationRow
from forms.application import ApplicationForm


class InstanceApplicationForm(ApplicationForm):
    """What the owner of an application chooses, and what only an administrator may."""

    #: Shown for an application of a user, which it takes from them.
    is_instance_wide = BooleanField("Instance-wide")
    trusted = BooleanField("Trusted")

    @classmethod
    def of(cls, application: ApplicationRow) -> Self:
        """Return the form filled in with what an application is now."""
        form = super().of(application)
        if not form.is_submitted():
            form.trusted.data = application.trusted
        return form

    @property
    def details(self) -> ApplicationDetails:
        """What was chosen."""
        return replace(
            super().details,
            trusted=self.trusted.data,
            is_instance_wide=self.is_instance_wide.data,
        )
