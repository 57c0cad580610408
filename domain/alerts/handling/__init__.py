"""What people do with an alert, and everything that is known of one."""
