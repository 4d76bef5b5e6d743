"""Kernels of one finite network, and their means over many."""
