"""Code shared by the pages and commands for administrators."""
