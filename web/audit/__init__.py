"""What pages, API and commands share about the audit log: files and destinations."""
