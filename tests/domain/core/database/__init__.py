"""Tests of lists and their pages, without an app."""
