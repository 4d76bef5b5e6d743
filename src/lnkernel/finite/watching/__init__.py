"""Training that is watched: measurements of a network's tangent at chosen steps."""
