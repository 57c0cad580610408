"""The form of an application, for administrators."""

from dataclasses import replace
from typing import Any, Self

from wtforms import BooleanField

from domain.oauth.clients.applications import ApplicationDetails, ApplicationView
from domain.oauth.scopes import REGISTRABLE
from forms.application import ApplicationForm


class InstanceApplicationForm(ApplicationForm):
    """The fields of an application, with those for administrators."""

    #: Only for applications of users; the owner loses the ownership.
    is_instance_wide = BooleanField("Instance-wide")
    trusted = BooleanField("Trusted")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Offer all scopes."""
        super().__init__(*args, **kwargs)
        self._offer(REGISTRABLE)

    @classmethod
    def of(cls, application: ApplicationView) -> Self:
        """Return the form with the current values of an application."""
        form = super().of(application)
        if not form.is_submitted():
            form.trusted.data = application.trusted
        return form

    @property
    def details(self) -> ApplicationDetails:
        """The details from the form."""
        return replace(
            super().details,
            trusted=self.trusted.data,
            is_instance_wide=self.is_instance_wide.data,
        )
