"""Finds usages in traffic, documents and programs that break in a release.

All functions are pure: they take a text and return findings. Neither findings nor errors contain
values from the text.
"""
