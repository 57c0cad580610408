"""Applications of the instance."""

from typing import Any, Literal

from domain.oauth.clients.applications import (
    ApplicationDetails,
    ApplicationView,
    RegisteredApplication,
)
from domain.oauth.setting_up.refusals import RefusalView
from domain.types.base import (
    Body,
    GitLabQuery,
    OffsetQuery,
    RequiredText,
    RequiredWords,
    Resource,
    SecretResource,
    Time,
)


class ApplicationQuery(OffsetQuery, GitLabQuery):
    """A list of applications, the newest first."""

    order_by: Literal["id"] = "id"
    sort: Literal["desc"] = "desc"


class RefusedRequestQuery(OffsetQuery):
    """A list of refused requests, the newest first."""

    order_by: Literal["id"] = "id"
    sort: Literal["desc"] = "desc"


class RefusedRequest(Resource):
    """A refused authorization or token request in the name of an application."""

    id: int
    refused_at: Time
    #: A word for the reason; the title says the same to people, the advice what to change.
    reason: str
    title: str
    advice: str
    #: The grant type, or the name of another endpoint.
    request: str
    error: str
    error_description: str
    #: What was sent in the place of a registered one, without values of parameters and passwords.
    redirect_uri: str | None
    #: Null for authorization requests, which come from people's browsers.
    ip_address: str | None
    user_agent: str | None
    #: How many more of this reason followed that are not listed.
    similar: int

    @classmethod
    def of(cls, view: RefusalView) -> "RefusedRequest":
        """Present a refused request."""
        return cls(
            id=view.id,
            refused_at=view.refused_at,
            reason=view.reason,
            title=view.title,
            advice=view.advice,
            request=view.request,
            error=view.error,
            error_description=view.description,
            redirect_uri=view.redirect_uri,
            ip_address=view.address,
            user_agent=view.user_agent,
            similar=view.skipped,
        )


class ApplicationBody(Body):
    """A new application."""

    name: RequiredText
    #: Separated by spaces or lines; empty for device codes and passwords alone.
    redirect_uri: str
    scopes: RequiredWords
    confidential: bool = True
    #: Written for GitLab: it gets no `iss` (RFC 9207) with codes and errors.
    omit_iss: bool = False

    @property
    def details(self) -> ApplicationDetails:
        """The requested application of the instance."""
        return ApplicationDetails(
            name=self.name,
            redirect_uris=tuple(dict.fromkeys(self.redirect_uri.split())),
            scopes=" ".join(self.scopes),
            confidential=self.confidential,
            omit_iss=self.omit_iss,
            is_instance_wide=True,
        )


class Application(Resource):
    """An instance-wide application."""

    id: int
    application_id: str
    application_name: str
    #: One a line.
    callback_url: str
    confidential: bool
    scopes: list[str]
    #: Whether it gets no `iss` (RFC 9207) with codes and errors.
    omit_iss: bool

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
        "omit_iss": view.omit_iss,
    }
