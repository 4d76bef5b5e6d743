"""A Flax network read as an architecture."""
