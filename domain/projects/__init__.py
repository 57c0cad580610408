"""Groups, the projects in them, and who is a member."""
