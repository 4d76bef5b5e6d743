"""Arguments, checked where they enter: hyperparameters of layers, numbers, seeds, points, targets.

Every refusal says what was expected, what came, and what to do. What is not a plain number (a
tracer of `jax.grad`) passes where only its value could be wrong.
"""
