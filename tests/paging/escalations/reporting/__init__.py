"""Tests of what pages and reports show about escalations."""
