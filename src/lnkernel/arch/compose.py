"""Composition: one layer after another, and sums of branches."""

from __future__ import annotations

from lnkernel.arch.activations import Activation, Identity, Relu
from lnkernel.arch.dense import Dense
from lnkernel.arch.node import Node, node
from lnkernel.arch.norms import LayerNorm, RMSNorm
from lnkernel.errors import ArchitectureError


@node
class Serial(Node):
    """Layers one after another. Build it with `serial`, which checks it."""

    layers: tuple[Node, ...]

    def __repr__(self) -> str:
        return f"serial({', '.join(map(repr, self.layers))})"


@node
class Parallel(Node):
    """The sum of branches that start from the same state. Build it with `parallel`."""

    branches: tuple[Node, ...]

    def __repr__(self) -> str:
        if len(self.branches) == 2 and isinstance(self.branches[0], Identity):
            return f"residual({self.branches[1]!r})"
        return f"parallel({', '.join(map(repr, self.branches))})"


def serial(*layers: Node) -> Serial:
    r"""The composition $f_L \circ \dots \circ f_1$ of its arguments, first argument first.

    Nested compositions are flattened, so `serial(serial(a, b), c) == serial(a, b, c)`.
    What has no infinite-width limit or no closed form raises `ArchitectureError`.

    >>> import lnkernel as lnk
    >>> arch = lnk.serial(lnk.Dense(64), lnk.LayerNorm(), lnk.Relu(), lnk.Dense(1))
    >>> lnk.serial(lnk.serial(*arch.layers[:2]), *arch.layers[2:]) == arch
    True
    >>> eval(repr(arch), vars(lnk)) == arch
    True
    """
    from lnkernel.arch.flow import check_block

    if not layers:
        raise ArchitectureError("serial", "", "it needs at least one layer", "Name one, e.g. Dense")
    flat: list[Node] = []
    for place, layer in enumerate(layers):
        _expect_node("serial", place, layer)
        flat.extend(layer.layers if isinstance(layer, Serial) else (layer,))
    return check_block(Serial(tuple(flat)))


def parallel(*branches: Node) -> Parallel:
    r"""The sum $f_1(x) + \dots + f_k(x)$ of branches that start from the same state.

    Each branch needs a Dense of its own, except at most one: otherwise the branches
    share their randomness, and their kernels do not add.

    >>> import lnkernel as lnk
    >>> wide = lnk.serial(lnk.Dense(64), lnk.Relu(), lnk.Dense(64))
    >>> arch = lnk.serial(lnk.parallel(wide, lnk.Dense(64)), lnk.LayerNorm(), lnk.Dense(1))
    >>> round(float(lnk.nngp(arch).diagonal([[3.0]])[0]), 12)
    1.0
    """
    from lnkernel.arch.flow import check_block

    if len(branches) < 2:
        raise ArchitectureError("parallel", "", "it needs at least two branches", "Use serial")
    for place, branch in enumerate(branches):
        _expect_node("parallel", place, branch)
    return check_block(Parallel(tuple(branches)))


def residual(*branch: Node) -> Parallel:
    r"""The residual block $x + f(x)$; several arguments are composed first, as in `serial`.

    >>> import lnkernel as lnk
    >>> block = lnk.residual(lnk.LayerNorm(), lnk.Relu(), lnk.Dense(64))
    >>> arch = lnk.serial(lnk.Dense(64), block, lnk.LayerNorm(), lnk.Dense(1))
    >>> block == lnk.parallel(lnk.Identity(), lnk.serial(*block.branches[1].layers))
    True
    """
    if not branch:
        raise ArchitectureError("residual", "", "it needs a branch", "Name one, e.g. Dense(64)")
    return parallel(Identity(), branch[0] if len(branch) == 1 else serial(*branch))


def mlp(
    hidden: int = 2,
    width: int = 128,
    *,
    norm: str | None = None,
    activation: Activation | None = None,
    W_std: float = 2**0.5,
    b_std: float = 0.1,
    outputs: int = 1,
    norm_layer: LayerNorm | RMSNorm | None = None,
) -> Serial:
    r"""A multilayer perceptron: `hidden` times (Dense, [norm], activation), then a Dense.

    Args:
        hidden: number of hidden layers.
        width: their width.
        norm: which hidden layers are normalised, between Dense and activation:
            None, "first", "last" or "all".
        activation: any activation of this library; `Relu()` by default.
        W_std, b_std: of every Dense.
        outputs: width of the last Dense.
        norm_layer: the normalisation; `LayerNorm()` by default.

    >>> import lnkernel as lnk
    >>> lnk.mlp(hidden=1, width=64, norm="first", W_std=1.5, b_std=0.0)
    serial(Dense(width=64, W_std=1.5, b_std=0.0), LayerNorm(eps=0.0, scale=False, bias=False),
           Relu(), Dense(width=1, W_std=1.5, b_std=0.0))
    """
    if isinstance(hidden, bool) or not isinstance(hidden, int) or hidden < 1:
        raise ArchitectureError(
            "mlp", "", f"hidden must be an integer >= 1, got {hidden!r}", "Name at least one layer"
        )
    if norm is not None and norm not in ("first", "last", "all"):
        raise ArchitectureError(
            "mlp", "", f"norm={norm!r} is not known", 'Use None, "first", "last" or "all"'
        )
    chosen = {None: (), "first": range(1), "last": range(hidden - 1, hidden), "all": range(hidden)}
    activation = Relu() if activation is None else activation
    norm_layer = LayerNorm() if norm_layer is None else norm_layer
    layers: list[Node] = []
    for block in range(hidden):
        layers.append(Dense(width, W_std=W_std, b_std=b_std))
        layers.extend([norm_layer] if block in chosen[norm] else [])
        layers.append(activation)
    return serial(*layers, Dense(outputs, W_std=W_std, b_std=b_std))


def _expect_node(name: str, place: int, layer: object) -> None:
    if not isinstance(layer, Node):
        raise ArchitectureError(
            name,
            f"argument {place}",
            f"expected a layer, got {layer!r} of type {type(layer).__name__}",
            "Write e.g. lnkernel.Relu(), with the brackets",
        )
