"""Integrations: where a project receives alerts, with their keys, mappings and test alerts."""
