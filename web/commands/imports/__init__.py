"""Commands that import data from other on-call tools."""
