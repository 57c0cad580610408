"""What people may fill in: one file a page; the rules themselves are the domain's."""
