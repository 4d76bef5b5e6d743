"""Full-batch steps in blocks of rows: the same training, block sizes that divide the rows or not."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import optax
import pytest

import lnkernel as lnk
from lnkernel.finite.training import blocks, ensemble, program

ARCH = lnk.mlp(hidden=1, width=8, norm="first")
X = np.linspace(-2, 2, 12)[:, None]
Y = np.sin(X[:, 0])


@pytest.mark.parametrize("rows", [1, 4, 5, 11])
def test_blocks_change_nothing(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def trained(size: int | None) -> lnk.finite.Ensemble:
        monkeypatch.setattr(ensemble, "rows_at_a_time", lambda networks: size)
        return lnk.finite.train_ensemble(ARCH, X, Y, 2, optax.adam(0.01), 20, dtype=jnp.float64)

    seen: list[int] = []

    def sum_over_blocks(part, x, y, rows):  # type: ignore[no-untyped-def]
        seen.append(rows)
        return blocks.sum_over_blocks(part, x, y, rows)

    monkeypatch.setattr(program, "sum_over_blocks", sum_over_blocks)
    whole, parts = trained(None), trained(rows)
    assert seen == [rows]
    np.testing.assert_allclose(parts.losses, whole.losses, rtol=1e-9)
    np.testing.assert_allclose(parts.mean([[0.5], [9.0]]), whole.mean([[0.5], [9.0]]), rtol=1e-9)


def test_more_networks_take_fewer_rows_each() -> None:
    sizes = [blocks.rows_at_a_time(networks) for networks in (1, 4, 10**6)]
    assert sizes in ([4096, 1024, 1], [None, None, None])
