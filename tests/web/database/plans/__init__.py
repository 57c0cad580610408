"""Tests that statements use indexes."""
