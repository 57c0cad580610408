"""The WSGI application for gunicorn: a Flask app with Authlib's grants, as documented."""

import time

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.integrations.sqla_oauth2 import (
    create_query_client_func,
    create_query_token_func,
    create_save_token_func,
)
from authlib.oauth2.rfc6749 import grants
from authlib.oauth2.rfc7662 import IntrospectionEndpoint
from authlib.oauth2.rfc8628 import DeviceAuthorizationEndpoint, DeviceCodeGrant
from flask import Flask

from models import AuthorizationCode, Client, DeviceCredential, Token, User, session

application = Flask(__name__)
application.config.update(
    OAUTH2_REFRESH_TOKEN_GENERATOR=True,
    OAUTH2_TOKEN_EXPIRES_IN={"authorization_code": 86_400, "refresh_token": 86_400},
)
server = AuthorizationServer(
    application,
    query_client=create_query_client_func(session, Client),
    save_token=create_save_token_func(session, Token),
)
_query_token = create_query_token_func(session, Token)


@application.teardown_appcontext
def close_session(_error):
    session.remove()


class CodeGrant(grants.AuthorizationCodeGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic"]

    def query_authorization_code(self, code, client):
        found = (
            session.query(AuthorizationCode)
            .filter_by(code=code, client_id=client.client_id)
            .first()
        )
        return found if found and not found.is_expired() else None

    def delete_authorization_code(self, authorization_code):
        session.delete(authorization_code)
        session.commit()

    def authenticate_user(self, authorization_code):
        return session.get(User, authorization_code.user_id)


class RefreshGrant(grants.RefreshTokenGrant):
    INCLUDE_NEW_REFRESH_TOKEN = True
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_basic"]

    def authenticate_refresh_token(self, refresh_token):
        found = session.query(Token).filter_by(refresh_token=refresh_token).first()
        return found if found and not found.is_revoked() else None

    def authenticate_user(self, refresh_token):
        return session.get(User, refresh_token.user_id)

    def revoke_old_credential(self, refresh_token):
        refresh_token.access_token_revoked_at = int(time.time())
        refresh_token.refresh_token_revoked_at = int(time.time())
        session.commit()


class DeviceGrant(DeviceCodeGrant):
    def query_device_credential(self, device_code):
        return session.query(DeviceCredential).filter_by(device_code=device_code).first()

    def query_user_grant(self, user_code):
        found = session.query(DeviceCredential).filter_by(user_code=user_code).first()
        return (session.get(User, found.user_id), True) if found.user_id else None

    def should_slow_down(self, credential):
        last, credential.last_polled_at = credential.last_polled_at, int(time.time())
        session.commit()
        return credential.last_polled_at < last + credential.interval


class DeviceEndpoint(DeviceAuthorizationEndpoint):
    def get_verification_uri(self):
        return "http://127.0.0.1/device"

    def save_device_credential(self, client_id, scope, data):
        session.add(
            DeviceCredential(
                client_id=client_id,
                scope=scope,
                device_code=data["device_code"],
                user_code=data["user_code"],
                interval=data["interval"],
                expires_at=int(time.time()) + data["expires_in"],
            )
        )
        session.commit()


class Introspection(IntrospectionEndpoint):
    def query_token(self, token_string, token_type_hint):
        return _query_token(token_string, token_type_hint)

    def check_permission(self, token, client, _request):
        return token.client_id == client.client_id

    def introspect_token(self, token):
        return {
            "active": not token.is_revoked() and not token.is_expired(),
            "client_id": token.client_id,
            "token_type": token.token_type,
            "username": token.user.username,
            "scope": token.get_scope(),
            "sub": str(token.user_id),
            "exp": token.issued_at + token.expires_in,
            "iat": token.issued_at,
        }


for _grant in (CodeGrant, RefreshGrant, DeviceGrant):
    server.register_grant(_grant)
for _endpoint in (DeviceEndpoint, Introspection):
    server.register_endpoint(_endpoint)


@application.post("/oauth/token")
def token():
    return server.create_token_response()


@application.post("/oauth/introspect")
def introspect():
    return server.create_endpoint_response(Introspection.ENDPOINT_NAME)


@application.post("/oauth/device")
def device():
    return server.create_endpoint_response(DeviceEndpoint.ENDPOINT_NAME)
