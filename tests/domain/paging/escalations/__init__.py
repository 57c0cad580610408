"""Tests of decisions of escalations that need no database."""
