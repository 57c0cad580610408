"""The form that registers an application or changes one."""

from wtforms import BooleanField, SelectMultipleField, StringField, TextAreaField
from wtforms.validators import InputRequired, Length, ValidationError

from domain.oauth.redirect_uris import check_redirect_uri
from domain.oauth.scopes import BY_NAME, REGISTRABLE
from forms.base import Form, objections_beside_the_field, without_edges


class ApplicationForm(Form):
    """What the owner of an application chooses."""

    name = StringField(
        "Name",
        filters=[without_edges],
        validators=[
            InputRequired("Give the application a name that people will recognize."),
            Length(max=100, message="A name may have at most 100 characters."),
        ],
    )
    redirect_uris = TextAreaField(
        "Redirect URIs", validators=[InputRequired("At least one redirect URI is needed.")]
    )
    confidential = BooleanField("Confidential", default=True)
    require_pkce = BooleanField("Require PKCE")
    refresh_for_devices = BooleanField("Refresh tokens for devices and password sign-in")
    scopes = SelectMultipleField(
        "Scopes",
        choices=[(name, BY_NAME[name].title) for name in REGISTRABLE],
        validators=[InputRequired("Choose at least one scope.")],
    )

    @property
    def uris(self) -> tuple[str, ...]:
        """The redirect URIs, each once, in the order in which they were written."""
        return tuple(dict.fromkeys((self.redirect_uris.data or "").split()))

    def validate_redirect_uris(self, _field: TextAreaField) -> None:
        """Refuse a URI that may not be registered."""
        if not self.uris:
            raise ValidationError("At least one redirect URI is needed.")
        with objections_beside_the_field():
            for uri in self.uris:
                check_redirect_uri(uri)
