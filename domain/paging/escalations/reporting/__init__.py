"""Read-only views of escalations: explanations, page outcomes, dry runs, and state tables."""
