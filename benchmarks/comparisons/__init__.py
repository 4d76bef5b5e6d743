"""What `benchmarks/against_peers.py` measures, one file for each peer."""
