"""Personal data: the inventory of tables, the export and the erasure."""
