"""Proposes mappings for messages from unknown monitoring tools."""
