"""Tests of the setup and the start of processes, and of what they load."""
