"""Finds usages that a release breaks, in traffic, documents and programs.

All functions are pure: they take text and return findings. Neither findings nor errors contain
values from the text.
"""
