"""Tests of faults of the database."""
