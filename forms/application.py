"""Forms to register an application, change it, and renew its secret."""

from collections.abc import Iterable
from typing import Self

from wtforms import BooleanField, RadioField, SelectMultipleField, StringField, TextAreaField
from wtforms.validators import DataRequired, InputRequired, Length, ValidationError

from domain.access.scopes import ADMIN_MODE, BY_NAME, REGISTRABLE, ScopeView, in_order, views
from domain.grace_period import GracePeriod
from domain.oauth.clients.applications import ApplicationDetails, ApplicationView
from domain.oauth.clients.redirect_uris import problems_of
from forms.base import Form, without_edges


class ApplicationForm(Form):
    """The fields of an application."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            DataRequired("Enter a name that users will recognize."),
            Length(max=100, message="A name may have at most 100 characters."),
        ],
    )
    redirect_uris = TextAreaField("Redirect URIs")
    confidential = BooleanField("Confidential", default=True)
    require_pkce = BooleanField("Require PKCE")
    refresh_for_devices = BooleanField("Refresh tokens for devices and password sign-in")
    require_dpop = BooleanField("Tokens bound to a key (DPoP)")
    omit_iss = BooleanField("Written for GitLab: send no iss")
    scopes = SelectMultipleField(
        "Scopes",
        choices=[(name, BY_NAME[name].title) for name in REGISTRABLE if name != ADMIN_MODE],
        validators=[InputRequired("Choose at least one scope.")],
    )

    @classmethod
    def of(cls, application: ApplicationView) -> Self:
        """Return the form with the current values of an application."""
        form = cls(
            name=application.name,
            redirect_uris="\n".join(application.redirect_uris),
            confidential=application.confidential,
            require_pkce=application.require_pkce,
            refresh_for_devices=application.refresh_for_devices,
            require_dpop=application.require_dpop,
            omit_iss=application.omit_iss,
            scopes=application.scopes,
        )
        form._offer(application.scopes)
        return form

    def _offer(self, more: Iterable[str]) -> None:
        """Add the application's current scopes to the choices, so that saving keeps them."""
        offered = (choice[0] for choice in self.scopes.iter_choices())
        names = in_order({*offered, *more})
        self.scopes.choices = [(name, BY_NAME[name].title) for name in names]

    @property
    def scope_choices(self) -> tuple[ScopeView, ...]:
        """The available scopes with their descriptions."""
        return views(choice[0] for choice in self.scopes.iter_choices())

    @property
    def details(self) -> ApplicationDetails:
        """The details from the form."""
        return ApplicationDetails(
            name=self.name.data or "",
            redirect_uris=self.uris,
            scopes=" ".join(self.scopes.data or ()),
            confidential=self.confidential.data,
            require_pkce=self.require_pkce.data,
            refresh_for_devices=self.refresh_for_devices.data,
            require_dpop=self.require_dpop.data,
            omit_iss=self.omit_iss.data,
        )

    @property
    def uris(self) -> tuple[str, ...]:
        """The redirect URIs without duplicates, in the given order."""
        return tuple(dict.fromkeys((self.redirect_uris.data or "").split()))

    def validate_redirect_uris(self, field: TextAreaField) -> None:
        """Add an error for each redirect URI that cannot be registered."""
        *others, last = problems_of(self.uris, require_https=False) or (None,)
        field.errors = [*field.errors, *others]
        if last is not None:
            raise ValidationError(last)


class RenewalForm(Form):
    """The grace period of the old secret."""

    overlap = RadioField(
        "How long does the old secret stay valid?",
        choices=[(each.key, each.words) for each in GracePeriod],
        default=GracePeriod.NOW.key,
        validators=[InputRequired("Choose how long the old secret stays valid.")],
    )

    @property
    def chosen(self) -> GracePeriod:
        """The chosen grace period."""
        return GracePeriod.of(str(self.overlap.data))
