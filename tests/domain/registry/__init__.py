"""Tests of the container registry, without an app."""
