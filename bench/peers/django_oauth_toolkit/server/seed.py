"""Stores tokens and codes with the library's own models, and writes them to a file."""

import json
import os
import sys
import uuid
from datetime import timedelta
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "settings")
django.setup()

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.utils import timezone
from oauth2_provider.models import AccessToken, Application, DeviceGrant, Grant, RefreshToken
from oauthlib.common import generate_token

CALLBACK = "https://client.example/callback"
SECRET = "a-secret-of-the-benchmark-which-is-long-enough"
AT_ONCE = 5_000


def pairs(count, application, user):
    end = timezone.now() + timedelta(days=1)
    access = AccessToken.objects.bulk_create(
        [
            AccessToken(
                user=user,
                application=application,
                token=generate_token(),
                expires=end,
                scope="read",
            )
            for _ in range(count)
        ],
        AT_ONCE,
    )
    refresh = RefreshToken.objects.bulk_create(
        [
            RefreshToken(
                user=user,
                application=application,
                token=generate_token(),
                access_token=each,
                token_family=uuid.uuid4(),
            )
            for each in access
        ],
        AT_ONCE,
    )
    return access, refresh


def codes(count, application, user):
    end = timezone.now() + timedelta(days=1)
    return Grant.objects.bulk_create(
        [
            Grant(
                user=user,
                application=application,
                code=generate_token(),
                expires=end,
                redirect_uri=CALLBACK,
                scope="read",
            )
            for _ in range(count)
        ],
        AT_ONCE,
    )


def device_codes(count, application):
    end = timezone.now() + timedelta(days=1)
    return DeviceGrant.objects.bulk_create(
        [
            DeviceGrant(
                client_id=application.client_id,
                device_code=generate_token(),
                user_code=generate_token(),
                scope="read",
                interval=5,
                expires=end,
            )
            for _ in range(count)
        ],
        AT_ONCE,
    )


def main(file, counts):
    call_command("migrate", verbosity=0)
    user = get_user_model().objects.create_user("alice")
    # With a secret hashed like a password, the server would answer seven requests per second.
    server = Application.objects.create(
        name="Server",
        user=user,
        client_type=Application.CLIENT_CONFIDENTIAL,
        authorization_grant_type=Application.GRANT_AUTHORIZATION_CODE,
        redirect_uris=CALLBACK,
        client_secret=SECRET,
        hash_client_secret=False,
    )
    device = Application.objects.create(
        name="Device",
        user=user,
        client_type=Application.CLIENT_PUBLIC,
        authorization_grant_type=Application.GRANT_DEVICE_CODE,
        client_secret="",
        hash_client_secret=False,
    )
    seed = {
        "client_id": server.client_id,
        "client_secret": SECRET,
        "device_client_id": device.client_id,
        "scope": "read",
        "access_tokens": [each.token for each in pairs(counts["access_tokens"], server, user)[0]],
        "refresh_tokens": [each.token for each in pairs(counts["refresh_tokens"], server, user)[1]],
        "codes": [each.code for each in codes(counts["codes"], server, user)],
        "device_codes": [each.device_code for each in device_codes(counts["device_codes"], device)],
    }
    Path(file).write_text(json.dumps(seed), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
