"""Integrations through which projects receive alerts, with their keys, mappings and test alerts."""
