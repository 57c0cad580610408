"""The typed rows have the columns that the statements select, in the same order."""

from typing import Any

import pytest
from sqlalchemy import Select, select

from domain.accounts.profiles import PROFILE, FoundProfile
from domain.alerts.receiving.receivers import INTEGRATION, FoundIntegration
from domain.alerts.storing.follow_ups import OPEN, OpenAlert
from domain.alerts.storing.sqlite_batch import EXISTING, FoundAlert
from domain.heartbeats.settling import ONE, FoundHeartbeat
from domain.oauth.clients import credential_lookup
from domain.oauth.clients.credential_lookup import CLIENT_ALONE, CredentialLookup
from domain.oauth.clients.found_rows import FoundClient, FoundDevice, FoundGrant, FoundPair
from domain.oauth.presented_tokens import bearer

#: The last field is the grant, which has columns of its own.
OF_DEVICE = (*FoundDevice._fields[:-1], *FoundGrant._fields)


def test_a_client_is_read_as_it_is_selected() -> None:
    assert tuple(CLIENT_ALONE.selected_columns.keys()) == FoundClient._fields


@pytest.mark.parametrize(
    ("lookup", "fields"),
    [
        (credential_lookup.ASKED_ACCESS_TOKEN, FoundPair._fields),
        (credential_lookup.ASKED_REFRESH_TOKEN, FoundPair._fields),
        (credential_lookup.REFRESH_TOKEN, FoundPair._fields),
        (credential_lookup.AUTHORIZATION_CODE, FoundGrant._fields),
        (credential_lookup.DEVICE_CODE, OF_DEVICE),
    ],
)
def test_a_credential_is_read_as_it_is_selected(
    lookup: CredentialLookup[Any], fields: tuple[str, ...]
) -> None:
    selected = tuple(lookup.statement.selected_columns.keys())
    assert selected == (*FoundClient._fields, *fields)


@pytest.mark.parametrize(
    ("statement", "fields"),
    [
        (bearer.ACCESS_TOKEN, (*FoundProfile._fields, *bearer.FoundAccessToken._fields)),
        (bearer.PERSONAL_TOKEN, (*FoundProfile._fields, *bearer.FoundPersonalToken._fields)),
        (select(*PROFILE), FoundProfile._fields),
        (INTEGRATION, FoundIntegration._fields),
        (EXISTING, FoundAlert._fields),
        (ONE, FoundHeartbeat._fields),
        (OPEN, OpenAlert._fields),
    ],
)
def test_a_row_is_read_as_it_is_selected(statement: Select[Any], fields: tuple[str, ...]) -> None:
    assert tuple(statement.selected_columns.keys()) == fields
