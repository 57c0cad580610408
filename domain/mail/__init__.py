"""Letters by e-mail: written with what they tell of, sent by the worker."""
