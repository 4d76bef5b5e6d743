"""Leading terms: how Θ(x, x) grows, exactly."""
