"""Marks for a test in whose answer the database has no part: one service is asked."""

import pytest

ON_SQLITE = pytest.mark.one_database("sqlite")
ON_POSTGRES = pytest.mark.one_database("postgres")
