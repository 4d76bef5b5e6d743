"""Kernels of networks written as a user of neural-tangents writes them, for a test of `lnkernel.stax`.

    .venv-peers/bin/python benchmarks/peers/inside/neural_tangents_stax.py tests/peers/neural_tangents_stax.npz

The file holds `words` (n, length, channels), `images` (n, height, width, channels), `points` (n, d), and for each
network (nngp, ntk) as "words: ", "images: " or "points: " and its text, which both libraries read.
"""

from __future__ import annotations

import sys
import warnings

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp  # noqa: E402  # x64 is set before
import neural_tangents  # noqa: E402  # x64 is set before
from neural_tangents import stax  # noqa: E402  # x64 is set before

LOCAL = "stax.ConvLocal(8, (2, 3), (2, 1), 'SAME', 1.4, 0.2)"
SQUARE = "stax.ConvLocal(8, (2, 2), (1, 1), 'SAME', 1.4, 0.2)"
CONV = "stax.Conv(8, (2, 3), padding='SAME', b_std=0.2), stax.Relu()"
D, END = "stax.Dense(8, 1.3, 0.2)", "stax.GlobalAvgPool(), stax.Dense(1, 1.2)"
LOOK = "stax.GlobalSelfAttention(8, 4, 4, 2, "
NEAR = "pos_emb_decay_fn=lambda d: jnp.exp(-d / 3), pos_emb_p_norm=1, W_pos_emb_std=0.7"
WORDS = [
    f"{D}, stax.Relu(), stax.Conv(8, (2,)), stax.Relu(), stax.Flatten(), stax.Dense(1, 1.2, 0.1)",
    f"{D}, stax.Relu(), stax.AvgPool((2,)), {D}, stax.Relu(), stax.GlobalSumPool()",
    f"{D}, stax.LayerNorm(axis=(1, 2), eps=0.1), stax.Relu(), {END}",
    f"{D}, stax.LayerNorm(), stax.Relu(), stax.SumPool((3,), (2,), 'SAME'), {D}, stax.Relu(), {END}",
    f"{LOOK}), stax.Relu(), {END}",
    f"{D}, {LOOK}W_key_std=0.5, W_query_std=1.5, W_value_std=2.0, W_out_std=0.6, b_std=0.3), {END}",
    f"{D}, {LOOK}linear_scaling=False, attention_mechanism='IDENTITY'), stax.Relu(), {END}",
    f"{D}, {LOOK}attention_mechanism='RELU', pos_emb_type='SUM', {NEAR}), stax.Relu(), {END}",
    f"{D}, {LOOK}pos_emb_type='CONCAT', W_pos_emb_std=0.7), stax.Relu(), {END}",
    f"{D}, {LOOK}pos_emb_type='CONCAT', val_pos_emb=True, {NEAR}), stax.Relu(), {END}",
    f"{D}, {LOOK}pos_emb_type='SUM', val_pos_emb=True, {NEAR}), stax.Relu(), {END}",
    f"{D}, {LOOK}linear_scaling=False, attention_mechanism='IDENTITY', pos_emb_type='CONCAT', {NEAR}), {END}",
    f"{D}, {LOOK}linear_scaling=False, attention_mechanism='IDENTITY', pos_emb_type='CONCAT', val_pos_emb=True, "
    f"{NEAR}), {END}",
]
IMAGES = [
    f"{CONV}, stax.FanOut(2), stax.parallel(stax.Conv(8, (2, 2), padding='SAME'), stax.serial({CONV})), "
    "stax.FanInConcat(), stax.AvgPool((2, 1)), stax.Conv(8, (2, 2), b_std=0.4), stax.Relu(), "
    f"stax.Dropout(0.9, mode='test'), {END}",
    f"{CONV}, stax.FanOut(2), stax.parallel(stax.Identity(), stax.serial(stax.Dense(24, 0.9), stax.Erf())), "
    "stax.FanInConcat(-1), stax.Flatten(), stax.Dense(8, 1.2, 0.3), stax.Relu(), stax.Dense(1)",
    f"{LOCAL}, stax.Relu(), stax.Flatten(), stax.Dense(1, 1.2)",
    f"{LOCAL}, stax.Relu(), stax.ConvLocal(8, (2, 2), padding='CIRCULAR'), stax.LayerNorm(), stax.Relu(), {END}",
    f"stax.ConvTranspose(8, (3, 2), (2, 3), 'SAME', 1.4, 0.2), stax.Relu(), {END}",
    "stax.ConvTranspose(8, (2, 3), (3, 2)), stax.Relu(), stax.Flatten(), stax.Dense(1)",
    f"stax.Conv(8, (2, 2), b_std=0.3), stax.Relu(), stax.ConvTranspose(8, (3, 3), (2, 2), 'CIRCULAR', 1.4), "
    f"stax.LayerNorm(), stax.Relu(), {END}",
    "stax.Conv(8, (2, 2)), stax.Relu(), stax.ConvTranspose(8, (3, 2), (2, 1), 'CIRCULAR'), stax.Relu(), "
    "stax.Flatten(), stax.Dense(1)",
    f"stax.Conv(8, (2, 2), b_std=0.3), stax.Relu(), stax.ImageResize((-1, 5, 5, -1), 'linear'), {CONV}, {END}",
    f"stax.Conv(8, (2, 2), b_std=0.3), stax.Relu(), {CONV}, stax.ImageResize((-1, 2, -1, -1), 'bilinear'), {END}",
    f"stax.ImageResize((-1, 2, 5, -1), 'linear', False), {CONV}, {END}",
    "stax.ImageResize((-1, 6, 2, -1), 'nearest'), stax.Conv(8, (2, 2)), stax.Relu(), stax.Flatten(), stax.Dense(1)",
    f"{CONV}, stax.Index(stax.Slice[:, :2, ::-1]), stax.Conv(8, (2, 2)), stax.Relu(), stax.Flatten(), stax.Dense(1)",
    f"stax.Index(stax.Slice[..., ::2, :]), {CONV}, stax.Index(stax.Slice[:, 1:]), {END}",
    # behind a Conv, where all positions are compared, it exchanges the axes of a ConvLocal's filter: a square one
    f"stax.Conv(8, (2, 2), b_std=0.3), stax.Relu(), {SQUARE}, stax.Relu(), stax.Conv(8, (1, 2)), stax.Relu(), {END}",
    f"stax.Conv(8, (2, 3), (2, 1), 'SAME', 1.4, 0.2), stax.Relu(), {END}",
    f"stax.Conv(8, (2, 2)), stax.LayerNorm(axis=(1, 2, 3), eps=0.1), stax.Relu(), {END}",
    "stax.Conv(8, (2, 2), padding='CIRCULAR', dimension_numbers=('NHWC', 'HWIO', 'NHWC')), stax.FanOut(2), "
    "stax.parallel(stax.Identity(), stax.serial(stax.Relu(), stax.Conv(8, (3, 3), padding='SAME'))), "
    "stax.FanInSum(), stax.Relu(), stax.Flatten(), stax.Dense(1)",
    "stax.Flatten(), stax.Dense(8), stax.Relu(), stax.Dense(1)",
]
# activations with parameters: one layer, two layers, behind a LayerNorm
ACTIVATIONS = [
    "stax.Erf(1.5, 0.7)",
    "stax.Erf(-0.8, -1.2, 0.6)",
    "stax.Sigmoid_like()",
    "stax.Sin(0.7, 1.3, 0.4)",
    "stax.Cos(-1.4, 0.9)",
    "stax.Cos(1.4, 0.9, 0.3)",
    "stax.Rbf()",
    "stax.Rbf(0.3)",
    "stax.Gaussian(0.6, -0.4)",
    "stax.Gaussian(-2.0, -1.0)",
    "stax.Exp(0.7, -0.4)",
    "stax.Gabor()",
    "stax.Elementwise(jax.scipy.special.erf, lambda k, q1, q2: "
    "2 / jnp.pi * jnp.arcsin(2 * k / jnp.sqrt((1 + 2 * q1) * (1 + 2 * q2))))",
]
OTHERS = [
    f"{D}, stax.Exp()",
    f"{D}, stax.LayerNorm(), stax.Exp(), {D}",
    # which lnkernel has behind a LayerNorm alone, as another function
    f"{D}, stax.LayerNorm(), stax.ExpNormalized(), {D}",
    f"{D}, stax.LayerNorm(), stax.ExpNormalized(0.6, 0.5), {D}",
]
POINTS = [
    text
    for act in ACTIVATIONS
    for text in (f"{D}, {act}", f"{D}, stax.LayerNorm(), {act}, {D}, {act}, {D}")
] + OTHERS


def main(path: str) -> None:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(4)
    given = {"words": rng.normal(size=(3, 5, 2)), "images": rng.normal(size=(3, 4, 3, 2))}
    given["points"] = rng.normal(size=(4, 3))
    found = {}
    for kind, texts in (("words", WORDS), ("images", IMAGES), ("points", POINTS)):
        for text in texts:
            kernel_fn = eval(f"stax.serial({text})", {"stax": stax, "jnp": jnp, "jax": jax})[2]
            both = kernel_fn(given[kind], None, ("nngp", "ntk"))
            found[f"{kind}: {text}"] = np.stack([np.asarray(both.nngp), np.asarray(both.ntk)])
    about = f"neural-tangents {neural_tangents.__version__}, jax {jax.__version__}"
    np.savez_compressed(path, **given, **found, about=np.array(about))
    print(f"{len(found)} networks: {path}")


if __name__ == "__main__":
    main(sys.argv[1])
