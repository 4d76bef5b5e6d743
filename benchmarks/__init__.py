"""One claim for each script, measured and asserted."""
