"""neural-tangents' layers that take parts of images, or make them larger or smaller."""

from __future__ import annotations

from collections.abc import Sequence
from types import EllipsisType
from typing import Any, NoReturn

from lnkernel import arch
from lnkernel.errors import ArchitectureError
from lnkernel.stax.layers import check_axes
from lnkernel.stax.triple import Layer, layer_of

Part = int | slice | EllipsisType
SAME = -1
# other words of `jax.image.resize` for the same methods
METHODS = {
    **dict.fromkeys(("bilinear", "trilinear", "triangle"), "linear"),
    **dict.fromkeys(("bicubic", "tricubic"), "cubic"),
}


def ImageResize(
    shape: Sequence[int],
    method: Any,
    antialias: bool = True,
    precision: Any = None,
    batch_axis: int = 0,
    channel_axis: int = -1,
) -> Layer:
    """Another number of positions, by interpolation: `lnkernel.Resize`.

    There only the methods "linear" and "nearest" have kernels; here "cubic", "lanczos3" and "lanczos5" have, too.

    Args:
        shape: that of all axes, (-1, height, width, -1); -1 leaves an axis as it is.
        method: "linear", "nearest", ... or a member of `jax.image.ResizeMethod`.
        antialias: whether smaller images take means over more positions.
        precision: of products there; here all is float64.
        batch_axis, channel_axis: 0 and -1.

    >>> from lnkernel import stax
    >>> stax.ImageResize((-1, 16, 16, -1), "bilinear").arch
    Resize(shape=(16, 16), method='linear', antialias=True)
    """
    check_axes("ImageResize", batch_axis, channel_axis)
    sizes = tuple(shape)
    if len(sizes) < 3 or (sizes[0], sizes[-1]) != (SAME, SAME):
        _refuse(
            "ImageResize",
            f"shape must have -1 for the inputs and for the channels, got {shape!r}",
            "Write e.g. (-1, 16, 16, -1) for images, (-1, 16, -1) for sequences",
        )
    word = str(getattr(method, "name", method)).lower()
    if set(sizes) == {SAME}:
        return layer_of(arch.Identity())
    return layer_of(arch.Resize(sizes[1:-1], METHODS.get(word, word), antialias))


class _Slice:
    """What stands between the brackets of `x[...]`, for `Index`.

    >>> from lnkernel import stax
    >>> stax.Slice[:, 1:4]
    (slice(None, None, None), slice(1, 4, None))
    """

    def __getitem__(self, idx: Any) -> Any:
        return idx


Slice = _Slice()


def Index(idx: Any, batch_axis: int = 0, channel_axis: int = -1) -> Layer:
    """Some of the positions, `x[idx]`: `lnkernel.Crop` for each axis.

    Args:
        idx: `stax.Slice[:, 1:4, ::2]`, for the inputs, height, width and channels; `...` stands for all others.
            A number takes an axis away, which is not here: write 3:4 for 3, and a filter of size 1 behind it.
        batch_axis, channel_axis: 0 and -1.

    >>> from lnkernel import stax
    >>> stax.Index(stax.Slice[:, :4, ::2]).arch
    serial(Crop(start=None, stop=4, step=None, axis=0), Crop(start=None, stop=None, step=2, axis=1))
    """
    check_axes("Index", batch_axis, channel_axis)
    parts = idx if isinstance(idx, tuple) else (idx,)
    wrong = [each for each in parts if not isinstance(each, slice | EllipsisType)]
    if wrong:
        _refuse(
            "Index",
            f"{wrong[0]!r} is neither a slice nor ...; a number would take an axis away, which is not in this library",
            "Write e.g. stax.Slice[:, 3:4, :] for position 3, and a filter of size 1 along this axis behind it",
        )
    dots = [place for place, each in enumerate(parts) if each is ...]
    if len(dots) > 1:
        _refuse("Index", "it has ... more than once", "Write : for single axes")
    split = dots[0] if dots else len(parts)
    ends: list[tuple[int, slice]] = [(axis - 1, each) for axis, each in enumerate(parts[:split])]
    tail = parts[split + 1 :]
    ends += [(place - len(tail) + 1, each) for place, each in enumerate(tail)]  # 0 is the channels
    crops: list[arch.Node] = []
    for number, (axis, each) in enumerate(ends):
        behind = number >= split
        if each == slice(None):
            continue
        if axis == (0 if behind else SAME):
            what = "channels, of which there are infinitely many" if behind else "inputs"
            remedy = "Write : there" if behind else "Write : there, and take some of the inputs"
            _refuse("Index", f"it takes a part of the {what}", remedy)
        crops.append(arch.Crop(each.start, each.stop, each.step, axis))
    if not crops:
        return layer_of(arch.Identity())
    return layer_of(crops[0] if len(crops) == 1 else arch.serial(*crops))


def _refuse(name: str, reason: str, remedy: str) -> NoReturn:
    raise ArchitectureError(f"stax.{name}", "", reason, remedy)
