"""Known monitoring tools, each in its own module with the marks and the mapping of its bodies."""
