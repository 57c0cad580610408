"""Marks of web pages, which change when the data of the pages changes."""
