"""Finds in traffic, documents and programs what breaks in a release.

All of it is pure: a text goes in, findings come out. No value of the text is in a finding or in an
error.
"""
