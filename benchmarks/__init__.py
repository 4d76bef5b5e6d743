"""One claim a script, measured and asserted."""
