"""Settings: their definitions, parsing, validation, changes and documentation."""
