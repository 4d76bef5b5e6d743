"""Training of networks by optax: data, batches, the compiled program, the run, its checkpoints."""
