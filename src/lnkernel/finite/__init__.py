"""Networks of finite width beside their limit: Flax twins, training, empirical kernels."""

__all__: list[str] = []
