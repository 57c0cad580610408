"""Forms for web pages, with a module for each subject. The domain validates the values."""
