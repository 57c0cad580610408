"""Applications of the instance."""

from typing import Any, Literal

from domain.oauth.clients.applications import (
    ApplicationDetails,
    ApplicationView,
    RegisteredApplication,
)
from web.api.schemas.base import (
    Body,
    OffsetQuery,
    RequiredText,
    RequiredWords,
    Resource,
    SecretResource,
)


class ApplicationQuery(OffsetQuery):
    """A list of applications, the newest first."""

    order_by: Literal["id"] = "id"
    sort: Literal["desc"] = "desc"


class ApplicationBody(Body):
    """A new application."""

    name: RequiredText
    #: Separated by spaces or lines; empty for device codes and passwords alone.
    redirect_uri: str
    scopes: RequiredWords
    confidential: bool = True

    @property
    def details(self) -> ApplicationDetails:
        """The requested application of the instance."""
        return ApplicationDetails(
            name=self.name,
            redirect_uris=tuple(dict.fromkeys(self.redirect_uri.split())),
            scopes=" ".join(self.scopes),
            confidential=self.confidential,
            is_instance_wide=True,
        )


class Application(Resource):
    """An application of the instance."""

    id: int
    application_id: str
    application_name: str
    #: One a line.
    callback_url: str
    confidential: bool
    scopes: list[str]

    @classmethod
    def of(cls, view: ApplicationView) -> "Application":
        """Present an application."""
        return cls(**_fields(view))


class NewApplication(Application, SecretResource):
    """An application with its secret, which is shown once."""

    secret: str

    @classmethod
    def with_secret(cls, registered: RegisteredApplication) -> "NewApplication":
        """Present an application whose secret was made just now."""
        return cls(**_fields(registered.application), secret=registered.secret)


def _fields(view: ApplicationView) -> dict[str, Any]:
    return {
        "id": view.id,
        "application_id": view.uid,
        "application_name": view.name,
        "callback_url": "\n".join(view.redirect_uris),
        "confidential": view.confidential,
        "scopes": view.scopes,
    }
