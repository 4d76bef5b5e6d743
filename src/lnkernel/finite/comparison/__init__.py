"""Trained networks beside the theory."""
