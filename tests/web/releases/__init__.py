"""Tests of recorded API calls, and of the reports about them."""
