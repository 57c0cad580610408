"""Proposes mappings for the messages of monitoring tools that the product does not know."""
