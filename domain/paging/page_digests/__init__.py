"""Digests of web pages, which change when the data on a page changes."""
