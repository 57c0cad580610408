"""Deliberate breaks of the product, and which tests see them."""
