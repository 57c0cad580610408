"""Pages, commands and notices for the owners of applications."""
