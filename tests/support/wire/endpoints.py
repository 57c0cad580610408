"""Every endpoint of the authorization server and of the REST API, with all its parameters.

The endpoints are the operations of the stored OpenAPI document, and the endpoints that the document
omits.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from tests.support.wire.openapi import DescribedOperation, read_stored_operations

#: Beginnings of the paths.
PREFIXES = ("/oauth/", "/api/v4/", "/.well-known/", "/jwt/")
_LOGOUT = (
    *("id_token_hint", "logout_hint", "client_id", "post_logout_redirect_uri", "state"),
    *("ui_locales", "request", "decision"),
)
#: Parameters that the document omits because they are ignored or rejected.
_OF_AUTHORIZATION = (
    *("id_token_hint", "display", "ui_locales", "claims_locales", "claims", "acr_values"),
    *("request", "request_uri", "dpop_jkt", "resource"),
)
_OF_ALL_LISTS = ("page", "per_page", "pagination", "order_by", "sort", "id_after", "cursor")


class Operation(NamedTuple):
    """A method at a path, and its parameters."""

    method: str
    path: str
    parameters: tuple[str, ...] = ("access_token",)


#: Names of endpoints that the document omits, which are mostly pages, with their operations.
_UNDESCRIBED: tuple[tuple[str, Operation], ...] = (
    ("authorize.decide", Operation("POST", "/oauth/authorize/decision", ("request", "decision"))),
    ("device.enter", Operation("GET", "/oauth/device", ("user_code",))),
    ("device.open_request", Operation("POST", "/oauth/device", ("user_code",))),
    ("device.ask_for_phone", Operation("GET", "/oauth/device/phone", ("user_code",))),
    ("device.show_to_phone", Operation("POST", "/oauth/device/phone", ("user_code",))),
    ("device.redirect_after_sign_in", Operation("GET", "/oauth/device/decision", ("request",))),
    ("device.decide", Operation("POST", "/oauth/device/decision", ("request", "decision"))),
    ("logout.ask", Operation("GET", "/oauth/logout", _LOGOUT)),
    ("logout.decide", Operation("POST", "/oauth/logout", _LOGOUT)),
    ("registry.certificates", Operation("GET", "/jwt/certificates")),
    *(
        (f"metadata.{name}_below_path", Operation("GET", f"/.well-known/{path}"))
        for name, path in (
            ("authorization_server", "oauth-authorization-server/{issuer_path}"),
            ("openid_provider", "openid-configuration/{issuer_path}"),
            ("protected_resource", "oauth-protected-resource/{issuer_path}"),
            ("rest_api", "oauth-protected-resource/{issuer_path}/api/v4"),
        )
    ),
)
#: Parameters that the document omits, by the name of the endpoint.
_UNDESCRIBED_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "alert_lists.download_mine": _OF_ALL_LISTS,
    "alert_lists.download_of_group": _OF_ALL_LISTS,
    "alerts.download": _OF_ALL_LISTS,
    "oauth.authorize": _OF_AUTHORIZATION,
    "oauth.authorize_by_post": _OF_AUTHORIZATION,
    "oauth.push": _OF_AUTHORIZATION,
    "registration.create": ("client_id", "client_secret", "jwks", "jwks_uri"),
    "registration.change": ("jwks", "jwks_uri"),
    "registry.token": ("account", "client_id", "offline_token"),
    "registry.token_for_form": ("access_type", "client_id"),
    "runners.register": ("token", "locked", "tag_list"),
    "personal_access_tokens.create": ("access_level",),
    "members.change": ("user_id", "username"),
    "invitations.change": ("email",),
    "projects.create": ("operations_access_level",),
    "projects.change": ("operations_access_level",),
}


class Endpoint(NamedTuple):
    """An endpoint and its operations: one for each kind of owner, file type and method."""

    name: str
    operations: tuple[Operation, ...]


def _list_endpoints() -> Iterator[Endpoint]:
    """Yield all endpoints in the order of their names."""
    described = [
        (_get_endpoint_name(each), _add_undescribed_parameters(each))
        for each in read_stored_operations()
        if each.path.startswith(PREFIXES)
    ]
    in_order = sorted((*described, *_UNDESCRIBED))
    for name, found in groupby(in_order, key=lambda pair: pair[0]):
        yield Endpoint(name, tuple(operation for _, operation in found))


def _get_endpoint_name(described: DescribedOperation) -> str:
    """Return the name of an operation without the kind of its owner, its file type and method."""
    return ".".join(described.name.split(".")[:2])


def _add_undescribed_parameters(described: DescribedOperation) -> Operation:
    others = _UNDESCRIBED_PARAMETERS.get(_get_endpoint_name(described), ())
    if "per_page" in described.parameters:
        others += _OF_ALL_LISTS
    parameters = dict.fromkeys((*described.parameters, *others, "access_token"))
    return Operation(described.method, described.path, tuple(parameters))


ENDPOINTS = {each.name: each for each in _list_endpoints()}
