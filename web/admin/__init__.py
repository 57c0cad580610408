"""What several pages and commands of the administration share."""
