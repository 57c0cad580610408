"""Actions, lists and notices for the owners of applications."""
