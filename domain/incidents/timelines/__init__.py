"""Timelines of alerts and incidents, merged from several sources."""
