"""Marks for tests that are independent of the database, so one service is enough."""

import pytest

ON_SQLITE = pytest.mark.one_database("sqlite")
ON_POSTGRES = pytest.mark.one_database("postgres")
