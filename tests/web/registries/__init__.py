"""Tests of registries, each extended by one line with a made-up entry."""
