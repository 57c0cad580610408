"""All endpoints with their parameters, forms of pages, and unusual values."""
