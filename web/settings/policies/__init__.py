"""The domain's policies from the settings: a module for each part of the domain."""
