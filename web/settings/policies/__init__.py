"""Domain policies derived from the settings, with a module for each part of the domain."""
