"""Tests of escalations, each in its own database."""
