"""Marks of web pages. A mark is a digest that changes when the data on the page changes."""
