"""Stores tokens and codes, and writes them to a file."""

import json
import sys
import time
from pathlib import Path

from authlib.common.security import generate_token
from sqlalchemy import insert

from models import AuthorizationCode, Base, Client, DeviceCredential, Token, User, engine, session

CALLBACK = "https://client.example/callback"
SECRET = "a-secret-of-the-benchmark-which-is-long-enough"
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
DAY = 86_400


def add_client(name, secret, grants, method):
    client = Client(client_id=name, client_secret=secret)
    client.set_client_metadata(
        {
            "grant_types": grants,
            "redirect_uris": [CALLBACK],
            "response_types": ["code"],
            "scope": "read",
            "token_endpoint_auth_method": method,
        }
    )
    session.add(client)


def pairs(count, user_id):
    rows = [
        {
            "client_id": "server",
            "user_id": user_id,
            "token_type": "Bearer",
            "access_token": generate_token(42),
            "refresh_token": generate_token(48),
            "scope": "read",
            "issued_at": int(time.time()),
            "expires_in": DAY,
        }
        for _ in range(count)
    ]
    session.execute(insert(Token), rows)
    return rows


def codes(count, user_id):
    rows = [
        {
            "client_id": "server",
            "user_id": user_id,
            "code": generate_token(48),
            "redirect_uri": CALLBACK,
            "response_type": "code",
            "scope": "read",
            # A code is valid for five minutes from this time.
            "auth_time": int(time.time()) + DAY,
        }
        for _ in range(count)
    ]
    session.execute(insert(AuthorizationCode), rows)
    return [row["code"] for row in rows]


def device_codes(count):
    rows = [
        {
            "client_id": "device",
            "device_code": generate_token(42),
            "user_code": generate_token(20),
            "scope": "read",
            "expires_at": int(time.time()) + DAY,
        }
        for _ in range(count)
    ]
    session.execute(insert(DeviceCredential), rows)
    return [row["device_code"] for row in rows]


def main(file, counts):
    Base.metadata.create_all(engine)
    user = User(username="alice")
    session.add(user)
    add_client("server", SECRET, ["authorization_code", "refresh_token"], "client_secret_basic")
    add_client("device", "", [DEVICE_GRANT], "none")
    session.flush()
    seed = {
        "client_id": "server",
        "client_secret": SECRET,
        "device_client_id": "device",
        "scope": "read",
        "access_tokens": [row["access_token"] for row in pairs(counts["access_tokens"], user.id)],
        "refresh_tokens": [
            row["refresh_token"] for row in pairs(counts["refresh_tokens"], user.id)
        ],
        "codes": codes(counts["codes"], user.id),
        "device_codes": device_codes(counts["device_codes"]),
    }
    session.commit()
    Path(file).write_text(json.dumps(seed), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
