"""Pages at /help: guides, documents, and their search."""
