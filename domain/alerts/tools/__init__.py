"""Known monitoring tools, one per module, with rules for recognizing and mapping bodies."""
