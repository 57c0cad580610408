"""Code shared by the pages and the commands of administrators."""
