"""Tests of the setup, of the start of processes, and of the modules that processes load."""
