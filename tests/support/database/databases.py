"""Marks of tests that are independent of the database and therefore need only one service."""

import pytest

ON_SQLITE = pytest.mark.one_database("sqlite")
ON_POSTGRES = pytest.mark.one_database("postgres")
