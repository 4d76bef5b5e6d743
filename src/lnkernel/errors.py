"""Every exception of the library: what was expected, what came, the likely cause, the remedy."""

from __future__ import annotations

import dis
import inspect
import math
from collections.abc import Sequence
from typing import Any


def _open(sentence: str) -> str:
    """Without its full stop, which a message of others may bring along; an ellipsis stays."""
    ends = sentence.endswith(".") and not sentence.endswith("..")
    return sentence[:-1] if ends else sentence


class LnkernelError(Exception):
    """The common ancestor, to catch whatever this library raises on purpose.

    >>> import lnkernel as lnk
    >>> try:
    ...     lnk.Dense(0)
    ... except lnk.errors.LnkernelError as problem:
    ...     print(problem)
    Dense: width must be an integer, at least 1, got 0. Choose width = 1 or more.
    """


class ArchitectureError(LnkernelError, ValueError):
    """An architecture that has no closed form or no infinite-width limit.

    >>> import lnkernel as lnk
    >>> lnk.serial(lnk.Dense(8), lnk.Relu(), lnk.Relu())
    Traceback (most recent call last):
    ...
    lnkernel.errors.ArchitectureError: Relu at layer 2: its input is not Gaussian, because Relu at \
layer 1 stands between it and the last Dense, so its kernel has no closed form. Put a Dense \
between them.
    """

    def __init__(self, layer: str, position: str, reason: str, remedy: str):
        where = f"{layer} at {position}" if position else layer
        super().__init__(f"{where}: {_open(reason)}. {_open(remedy)}.")
        self.layer, self.position, self.reason, self.remedy = layer, position, reason, remedy


class ArchitectureTextError(LnkernelError, ValueError):
    """A text that describes no architecture; the message points to the place.

    >>> import lnkernel as lnk
    >>> lnk.parse("mlp(hiden=2)")
    Traceback (most recent call last):
    ...
    lnkernel.errors.ArchitectureTextError: architecture text: mlp has no argument 'hiden'
        mlp(hiden=2)
            ^^^^^^^
    It is mlp(hidden=2, width=128, ...
    """

    def __init__(
        self,
        problem: str,
        remedy: str,
        text: str = "",
        place: tuple[int, int, int] | None = None,
    ):
        shown = ""
        if place is not None and text:
            line, start, end = place  # the line from 1 on, and characters in it
            # a long line is cut to the part around the place
            before, width = max(0, start - 40), 100
            part = text.splitlines()[line - 1][before : before + width]
            marks = "^" * max(1, min(end - before, len(part)) - (start - before))
            shown = f"\n    {part}\n    {' ' * (start - before)}{marks}"
        super().__init__(
            f"architecture text: {problem}{shown}" + (f"\n{remedy}." if remedy else "")
        )
        self.problem, self.place = problem, place


class MissingLayerError(LnkernelError, AttributeError):
    """A layer or another name, of neural-tangents or of common networks, that this library does not have.

    >>> import lnkernel as lnk
    >>> lnk.MaxPool((2, 2))
    Traceback (most recent call last):
    ...
    lnkernel.errors.MissingLayerError: lnkernel has no MaxPool: the largest of several correlated \
    features ...
    """

    def __init__(self, name: str, reason: str, remedy: str, module: str = "lnkernel.stax"):
        super().__init__(f"{module} has no {name}: {reason}. {remedy}.", name=name)


class MissingImportError(LnkernelError, ImportError):
    """The same, where `from lnkernel import ...` asks for the name.

    >>> from lnkernel import MaxPool
    Traceback (most recent call last):
    ...
    lnkernel.errors.MissingImportError: lnkernel has no MaxPool: the largest of several correlated \
    features ...
    """

    def __init__(self, problem: MissingLayerError, module: str):
        super().__init__(str(problem), name=module)


def missing_layer(
    name: str, reason: str, remedy: str, module: str
) -> MissingLayerError | MissingImportError:
    """The error for whichever asks for the name: an attribute, or `from ... import`."""
    problem = MissingLayerError(name, reason, remedy, module)
    return MissingImportError(problem, module) if _imports(module, name) else problem


def _imports(module: str, name: str) -> bool:
    """Whether `from module import name` is at work, which asks by `hasattr`.

    That statement puts Python's own text in the place of an AttributeError, and hands on an ImportError, which
    nobody else is to get: to others `hasattr` is False.
    """
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            asked = frame.f_locals.get("module"), frame.f_locals.get("fromlist") or ()
            if getattr(asked[0], "__name__", "") == module and name in asked[1]:
                return True
        code, here = frame.f_code, frame.f_lasti
        opcode = code.co_code[here] if here >= 0 else None
        # of a module that is no package the statement itself asks
        if name in code.co_names and opcode == dis.opmap["IMPORT_FROM"]:
            return True
        frame = frame.f_back
    return False


class MissingFunctionError(LnkernelError, NotImplementedError):
    """A layer needs a function that one of the number systems does not have: where balls lack it, for
    example, there is no certificate for this function, and the kernels in float64 work all the same.
    """

    def __init__(self, function: str, meaning: str, system: str, purpose: str, type_name: str):
        said = f" ({meaning})" if meaning else ""
        proof = purpose.startswith("certificate")
        super().__init__(
            f"there is no {purpose} for this function: `{function}`{said} has no version for {system}. "
            f"Register one: @{function}.register({type_name})."
            + (" Without certify the same numbers are computed in float64." if proof else "")
        )


class InputError(LnkernelError, ValueError):
    """Data that a kernel cannot be evaluated on.

    >>> import lnkernel as lnk
    >>> lnk.ntk(lnk.mlp())([1.0, 2.0])
    Traceback (most recent call last):
    ...
    lnkernel.errors.InputError: x: expected a 2-D array of shape (points, dimension), got shape \
(2,). For one point write x[None, :]; for points on a line write x[:, None].
    """

    def __init__(self, name: str, expected: str, got: str, remedy: str):
        super().__init__(f"{name}: expected {expected}, got {_open(got)}. {_open(remedy)}.")


class DataFileError(LnkernelError, ValueError):
    """A file of data that cannot be used as it is; the message tells the lines.

    >>> import pathlib, tempfile
    >>> from lnkernel.cli import table
    >>> path = pathlib.Path(tempfile.mkdtemp(), "data.csv")
    >>> _ = path.write_text("x,y\\n1,2\\n3,\\n")
    >>> table.read(path)
    Traceback (most recent call last):
    ...
    lnkernel.errors.DataFileError: ...data.csv: expected a finite number in every cell, got
        line 3: y is empty
    Correct these cells, or leave their lines out with --drop-nan.
    """

    MOST = 10  # problems that are listed

    def __init__(self, path: Any, expected: str, problems: list[str], remedy: str):
        listed = "".join(f"\n    {problem}" for problem in problems[: self.MOST])
        more = len(problems) - self.MOST
        listed += f"\n    and {more} more" if more > 0 else ""
        super().__init__(f"{path}: {expected}, got{listed}\n{remedy}.")
        self.problems = problems


class MissingDataError(LnkernelError, FileNotFoundError):
    """Data that are nowhere to be found; the message tells what to put where.

    >>> import lnkernel as lnk
    >>> lnk.datasets.utkface("no/such/features.npz")
    Traceback (most recent call last):
    ...
    lnkernel.errors.MissingDataError: the data of utkface are missing. There is no file
        no/such/features.npz
    Correct the path, or omit it to search for the file.
    """

    def __init__(self, name: str, looked: Sequence[Any], remedy: str):
        listed = "".join(f"\n    {path}" for path in looked)
        super().__init__(f"the data of {name} are missing. There is no file{listed}\n{remedy}.")
        self.looked = list(looked)


class MissingPackageError(LnkernelError, ImportError):
    """A part of the library that needs a package of an extra that is not installed.

    >>> import lnkernel as lnk
    >>> raise lnk.errors.MissingPackageError("lnkernel.sklearn", "scikit-learn", "sklearn")
    Traceback (most recent call last):
    ...
    lnkernel.errors.MissingPackageError: lnkernel.sklearn needs scikit-learn, which is not \
    installed. Install it by `pip install 'lnkernel[sklearn]'`.
    """

    def __init__(self, part: str, package: str, extra: str):
        super().__init__(
            f"{part} needs {package}, which is not installed. Install it by "
            f"`pip install 'lnkernel[{extra}]'`."
        )


class PrecisionError(LnkernelError, RuntimeError):
    """float64 asked for where the user's own JAX transformation runs in float32.

    >>> import jax, lnkernel as lnk
    >>> jax.jit(lnk.ntk(lnk.mlp()))([[1.0]])
    Traceback (most recent call last):
    ...
    lnkernel.errors.PrecisionError: lnkernel computes in float64, and it was called inside ...
    """

    def __init__(self) -> None:
        super().__init__(
            "lnkernel computes in float64, and it was called inside (or passed through) your own jax.jit, "
            "jax.grad or jax.vmap while 64-bit mode is off, so its numbers would be cut to float32 there. Put "
            'jax.config.update("jax_enable_x64", True) at the top of your program, or call the '
            "transformed function inside `with jax.enable_x64(True):`. Outside of transformations "
            "nothing is needed: lnkernel switches to float64 by itself."
        )


class TransformationError(LnkernelError, TypeError):
    """What takes plain numbers was called inside of jax.jit, jax.grad or jax.vmap.

    >>> import jax, lnkernel as lnk
    >>> jax.jit(lambda x: lnk.bound(lnk.mlp(norm="first"), x, [1.0]).value)([[1.0]])
    Traceback (most recent call last):
    ...
    lnkernel.errors.TransformationError: bound: expected plain numbers, got values that a jax.jit, jax.grad or \
jax.vmap around this call is transforming. Decisions depend on these numbers, which are not known there. Make the call \
outside of jax.jit, jax.grad and jax.vmap, and use its result inside...
    """

    def __init__(self, what: str):
        super().__init__(
            f"{what}: expected plain numbers, got values that a jax.jit, jax.grad or jax.vmap around this call is "
            "transforming. Decisions depend on these numbers, which are not known there. Make the call outside of "
            "jax.jit, jax.grad and jax.vmap, and use its result inside."
        )
        self.what = what


class NetworkPrecisionError(LnkernelError, RuntimeError):
    """A float64 network built or called where JAX would cut its numbers to float32.

    >>> import jax.numpy as jnp, lnkernel as lnk
    >>> lnk.finite.network(lnk.mlp(), in_dim=1, rngs=0, dtype=jnp.float64)
    Traceback (most recent call last):
    ...
    lnkernel.errors.NetworkPrecisionError: a float64 network was built or called while JAX's \
    64-bit mode is off, ...
    """

    def __init__(self) -> None:
        super().__init__(
            "a float64 network was built or called while JAX's 64-bit mode is off, so its numbers "
            "would be cut to float32. Build and call it inside `with jax.enable_x64(True):`, put "
            'jax.config.update("jax_enable_x64", True) at the top of your program, or use '
            "dtype=jnp.float32."
        )


class TrainingModeError(LnkernelError, RuntimeError):
    """A network whose output depends on more than its input: on other inputs, or on chance.

    >>> import lnkernel as lnk
    >>> from flax import nnx
    >>> model = nnx.Sequential(nnx.Linear(1, 8, rngs=nnx.Rngs(0)), nnx.BatchNorm(8, rngs=nnx.Rngs(0)))
    >>> lnk.tangent(model).gram([[1.0], [2.0]])
    Traceback (most recent call last):
    ...
    lnkernel.errors.TrainingModeError: Sequential is in training mode: a call changes layers/1/mean, \
so that its output is not a function of one input (BatchNorm, Dropout), and it has no tangent \
kernel. Call model.eval() first.
    """

    def __init__(self, model: str, changed: str, remedy: str):
        super().__init__(
            f"{model} is in training mode: {changed}, so that its output is not a function of one "
            f"input (BatchNorm, Dropout), and it has no tangent kernel. {remedy}."
        )
        self.model, self.changed, self.remedy = model, changed, remedy


class KernelOverflowError(LnkernelError, OverflowError):
    """The exact value of a kernel lies outside the range of float64.

    >>> import lnkernel as lnk
    >>> lnk.nngp(lnk.mlp()).diagonal([[1.0], [1e200]])
    Traceback (most recent call last):
    ...
    lnkernel.errors.KernelOverflowError: x: the kernel's exact value at point 1 (norm 1e+200) with \
    itself is not in the range of float64 ...
    """

    def __init__(self, name: str, index: int, point: Any):
        numbers = [
            abs(float(coordinate)) for coordinate in getattr(point, "flat", point)
        ]  # of an image, too
        largest = max(numbers)
        norm = math.hypot(*(number / largest for number in numbers)) if largest else 0
        super().__init__(
            f"{name}: the kernel's exact value at point {index} (norm {norm * largest:.3g}) with "
            "itself is not in the range of float64 (it is larger than 1.8e308, or infinite; or a norm "
            "without eps divides by features whose spread is below 1e-153). Rescale the data, or put a "
            "LayerNorm before the last layer, which makes the kernel bounded; behind an activation "
            "that is constant around 0 give the LayerNorm an eps."
        )


class ActivationRangeError(LnkernelError, ValueError):
    """The inputs of an activation are longer than its kernel is computed for.

    >>> import jax.numpy as jnp, lnkernel as lnk
    >>> lnk.ntk(lnk.mlp(activation=lnk.Activate(jnp.tanh)))([[1e10]])
    Traceback (most recent call last):
    ...
    lnkernel.errors.ActivationRangeError: Activate: its inputs have a standard deviation of 1.41e+10 ..., and its
    kernel is computed up to 1e+08. Put a LayerNorm before it, or scale the data down.
    """

    def __init__(self, layer: str, length: float, most: float):
        super().__init__(
            f"{layer}: its inputs have a standard deviation of {length:.3g} for some x, and its kernel is "
            f"computed up to {most:.3g}. Put a LayerNorm before it, or scale the data down."
        )
        self.most = most


class GrowthError(LnkernelError, NotImplementedError):
    """The growth of Θ(x, x) is not known, because nothing is known of an activation at long and at short
    inputs.

    >>> import lnkernel as lnk
    >>> from lnkernel.arch.node import node
    >>> @node
    ... class Wavelet(lnk.Smooth):
    ...     "An activation of which only the formula is known."
    >>> lnk.sup_diagonal(lnk.serial(lnk.Dense(8), Wavelet(), lnk.Dense(1)))
    Traceback (most recent call last):
    ...
    lnkernel.errors.GrowthError: Wavelet: how Θ(x, x) behaves as |x| → ∞ is not known, because nothing is known
    of this activation at long inputs. Register its asymptotes ...
    """

    def __init__(self, layer: str):
        super().__init__(
            f"{layer}: how Θ(x, x) behaves as |x| → ∞ is not known, because nothing is known of this "
            "activation at long inputs. Register its asymptotes in "
            "lnkernel.evaluate.float64.asymptotes, or the rule of its moments in "
            "lnkernel.evaluate.float64.moments; kernels and posteriors need neither."
        )


class NotEnoughMemoryError(LnkernelError, MemoryError):
    """More points than this machine's memory has room for; the message says how much they need.

    Args:
        purpose: what needs the memory, as the subject of "needs".
        n, m: the matrices are (n, m), or (n, n) without m.
        needed, available: bytes.
        itemsize: bytes of a number.
        remedy: what to do, where n and m are not numbers of points.
        most: no more points than these can be advised, whatever the memory.
    """

    def __init__(
        self,
        purpose: str,
        n: int,
        needed: int,
        available: int,
        m: int | None = None,
        itemsize: int = 8,
        remedy: str | None = None,
        most: int | None = None,
    ):
        self.fits: int | None = None  # points, where it is known how many
        if remedy is not None:
            super().__init__(
                f"{purpose} needs {needed / 2**30:.1f} GiB of memory, and {available / 2**30:.1f} GiB are available. "
                f"{remedy}, or a machine with more memory."
            )
            self.needed, self.available = needed, available
            return
        if m is None:  # a square matrix, of the pairs of one set of points
            points, fit = f"{n} points", math.isqrt(n * n * available // needed)
            fit = self.fits = fit if most is None else min(fit, most)
            remedy = f"Take fewer points (about {fit} fit)"
        else:
            points, fit = f"{n} and {m} points", max(1, n * available // needed)
            remedy = f"Take the first ones in parts (about {fit} at a time fit)"
        super().__init__(
            f"{purpose} of {points} needs {needed / 2**30:.1f} GiB of memory (matrices of "
            f"{n} x {n if m is None else m} float{8 * itemsize} numbers), and "
            f"{available / 2**30:.1f} GiB are available. {remedy}, or a machine with more memory."
        )
        self.needed, self.available = needed, available


class DuplicateInputsError(LnkernelError, ValueError):
    """Inputs that occur more than once, which makes a Gram matrix singular.

    >>> import lnkernel as lnk
    >>> lnk.posterior(lnk.mlp(), [[1.0], [2.0], [1.0]], [0.0, 1.0, 0.0])
    Traceback (most recent call last):
    ...
    lnkernel.errors.DuplicateInputsError: X: expected different inputs, because equal ones make \
    the Gram matrix singular, got equal points: 0 = 2 (equal targets). ...
    """

    def __init__(self, groups: list[list[int]], agree: list[bool]):
        shown = "; ".join(
            " = ".join(map(str, group[:4]))
            + (f" = ... ({len(group)} points)" if len(group) > 4 else "")
            + (" (equal targets)" if same else " (different targets)")
            for group, same in list(zip(groups, agree, strict=True))[:5]
        )
        more = f"; and {len(groups) - 5} more" if len(groups) > 5 else ""
        noisy = "" if all(agree) else ", as the different targets at one input suggest"
        super().__init__(
            "X: expected different inputs, because equal ones make the Gram matrix singular, got "
            f"equal points: {shown}{more}. Merge them by `X, y = lnk.merge_duplicates(X, y)`, "
            "which averages their targets, or give the variance of the targets' noise, "
            f"`noise=...`{noisy}."
        )
        self.groups, self.agree = groups, agree


class TooManyPointsError(LnkernelError, ValueError):
    """More points than LAPACK's 32-bit integers can count the pairs of."""

    def __init__(self, n: int, most: int):
        super().__init__(
            f"X: expected at most {most} points, got {n}. Half of their Gram matrix would have room, but its entries "
            "are more than the 32-bit integers of SciPy's LAPACK can count. Take fewer points; or, with noise=..., "
            "give tolerance=..., which stores no matrix; or take a machine with memory for the whole "
            f"matrix ({8 * n * n / 2**30:.0f} GiB)."
        )
        self.fits = most


class HalfMatrixError(LnkernelError, TypeError):
    """A posterior that holds half of its Gram matrix was asked for what takes the whole."""

    def __init__(self, n: int):
        super().__init__(
            f"posterior: expected one that holds its whole Gram matrix, got one of {n} points that holds half of it, "
            "because the whole had no room in memory. Training in time, and all that is computed inside jax.jit, "
            "jax.grad or jax.vmap, take the whole matrix. Take fewer points, or a machine with "
            f"{8 * n * n / 2**30:.0f} GiB of memory; outside of them mean, variance and bound need half of it."
        )


class SpreadMatrixError(LnkernelError, TypeError):
    """A posterior whose Gram matrix is nowhere as a whole was asked for what takes the whole."""

    def __init__(self, n: int):
        super().__init__(
            f"posterior: expected one that holds its whole Gram matrix, got one of {n} points whose matrix is spread "
            "over devices (sharding=...) or never stored (tolerance=...). Training in time, variances inside jax.jit, "
            "jax.grad or jax.vmap, and posteriors that are arguments of such a program or made by jax.tree.map take "
            "the whole matrix. The mean works inside a program that knows the posterior from outside, as in "
            "jax.jit(post.mean)(x) in place of jax.jit(lambda post, x: post.mean(x))(post, x); variances and bounds "
            "work outside of transformations. For the others leave these arguments out."
        )


class MissingSpreadError(LnkernelError, AttributeError):
    """The posterior's variance, asked of networks whose training was stopped.

    >>> import lnkernel as lnk
    >>> lnk.posterior(lnk.mlp(), [[1.0]], [1.0]).at(1.0).std
    Traceback (most recent call last):
    ...
    lnkernel.errors.MissingSpreadError: Stopped has no attribute 'std'. ...
    """

    def __init__(self, kind: str, name: str):
        other = "ensemble_covariance" if name == "covariance" else "ensemble_variance"
        root = ", of which it is the square root" if name == "std" else ""
        super().__init__(
            f"{kind} has no attribute {name!r}. The spread of networks whose training was stopped, over their random "
            f"initialisations, is {other}(x){root}. The {name} of the Gaussian process given the data does not depend "
            f"on a time: ask the posterior itself, post.{name}(x)."
        )
        self.name = name


class LostProcessError(LnkernelError, RuntimeError):
    """Another process of the same program has ended, or cannot be reached any more."""

    def __init__(self, process: int, processes: int, said: str):
        super().__init__(
            f"process {process} of {processes}: expected all of them to take part, but the connection to another one "
            f"is gone ({said.splitlines()[0][:200]}). The other process was killed, ran out of memory, or lost its "
            "network; look at what it printed last. Start all of them again: with tile files (tiles=...) nothing that "
            "was written is lost."
        )


class TileFileError(LnkernelError, OSError):
    """Files of a kernel matrix that cannot be written or read."""

    def __init__(self, path: Any, expected: str, got: str, remedy: str):
        super().__init__(f"{path}: expected {expected}, got {_open(got)}. {remedy}.")


class NotConvergedError(LnkernelError, ArithmeticError):
    """Conjugate gradients that did not come as near as the tolerance asks for."""

    def __init__(self, iterations: int, residual: float, goal: float, stuck: bool):
        why = (
            "It did not shrink any more: float64 allows for no smaller one, because noise and tolerance are small "
            "beside the largest eigenvalue. Ask for a larger tolerance="
            if stuck
            else "Ask for a preconditioner of higher rank="
        )
        super().__init__(
            f"posterior: expected a residual of at most {goal:.3g}, got {residual:.3g} after {iterations} iterations "
            f"of conjugate gradients. {why}, or give more noise; a posterior without tolerance= is factorised instead."
        )
        self.iterations, self.residual, self.goal = iterations, residual, goal
        self.stuck = stuck


class SingularGramError(LnkernelError, ArithmeticError):
    """A Gram matrix that float64 cannot tell from a singular one.

    `lambda_min` and `resolution` are of the matrix, or, where its diagonal is not constant
    (`scaled`), of the matrix scaled to unit diagonal. `nearest` is (i, j, distance), `alike`
    (i, j, 1 - normalised kernel); both are None where there is only one point.

    >>> import lnkernel as lnk
    >>> lnk.posterior(lnk.mlp(b_std=0.0, norm="first"), [[1.0], [2.0]], [0.0, 1.0])
    Traceback (most recent call last):
    ...
    lnkernel.errors.SingularGramError: the Gram matrix of 2 points is not numerically positive \
    definite: its smallest eigenvalue is ... The nearest inputs are 0 and 1, at distance 1. ...
    """

    def __init__(
        self,
        n: int,
        lambda_min: float,
        resolution: float,
        *,
        nearest: tuple[int, int, float] | None = None,
        alike: tuple[int, int, float] | None = None,
        zero: int | None = None,
        scaled: bool = False,
    ):
        of = " (after scaling to unit diagonal)" if scaled else ""
        parts = [
            f"the Gram matrix of {n} points is not numerically positive definite: its smallest "
            f"eigenvalue{of} is {lambda_min:.2g}, and "
            f"float64 resolves {resolution:.2g} for this matrix."
        ]
        if nearest is not None:
            i, j, distance = nearest
            parts.append(f"The nearest inputs are {i} and {j}, at distance {distance:.3g}.")
        if alike is not None:
            i, j, short = alike
            how = "equal up to rounding" if short < 1e-15 else f"with correlation 1 - {short:.1e}"
            parts.append(f"Most alike to the kernel are {i} and {j}, {how}.")
        if zero is not None:
            parts.append(f"The kernel of point {zero} with itself is 0: drop this point, or")
            parts.append("give the Dense layers a bias (b_std > 0), or")
        else:
            parts.append("Drop one of the pair (lnk.merge_duplicates(X, y) where they are equal);")
            parts.append("if they differ only in what the network normalises away, their length,")
            parts.append("give the Dense layers a bias (b_std > 0); or")
        parts.append("give the variance of the targets' noise, noise=..., well above")
        parts.append(f"{resolution:.1g}{' times the diagonal' if scaled else ''}.")
        parts.append("Nothing is added to the diagonal unless you say so.")
        super().__init__(" ".join(parts))
        self.lambda_min, self.resolution, self.scaled = lambda_min, resolution, scaled
        self.nearest, self.alike, self.zero = nearest, alike, zero


class LearningRateError(LnkernelError, ValueError):
    """A learning rate at which gradient descent diverges.

    >>> import lnkernel as lnk
    >>> lnk.posterior(lnk.mlp(norm="first"), [[1.0], [2.0]], [0.0, 1.0]).after(10, 1.0)
    Traceback (most recent call last):
    ...
    lnkernel.errors.LearningRateError: learning_rate: expected less than 2/λ_max = 0.33..., got 1.0...
    """

    def __init__(self, learning_rate: float, limit: float, n: int):
        super().__init__(
            f"learning_rate: expected less than 2/λ_max = {limit:.6g}, got {learning_rate}. Above "
            "it gradient descent diverges. The loss is half the sum of the squared errors over "
            f"the {n} points, 1/2 Σ (f(x_i) - y_i)²; for their mean, 1/n Σ (f(x_i) - y_i)², a "
            "learning rate is to be multiplied by 2/n first."
        )
        self.learning_rate, self.limit = learning_rate, limit


class UnresolvedEigenvalueError(LnkernelError, ArithmeticError):
    """The smallest eigenvalue of a Gram matrix is too small for float64, so it bounds nothing.

    >>> import lnkernel as lnk
    >>> lnk.bound(lnk.mlp(), [[1.0], [1e10]], [0.0, 1.0])
    Traceback (most recent call last):
    ...
    lnkernel.errors.UnresolvedEigenvalueError: the smallest eigenvalue of the Gram matrix of these \
    2 points comes out as ...
    """

    def __init__(self, n: int, value: float, resolution: float):
        super().__init__(
            f"the smallest eigenvalue of the Gram matrix of these {n} points comes out as "
            f"{value:.3g}, but float64 resolves only what is above {resolution:.3g} in it, so "
            "this is rounding noise and no bound follows. Likely the inputs' norms differ by many "
            "orders of magnitude, or some inputs nearly coincide. Drop near-duplicates, state the "
            "targets' noise by noise=, or rescale the inputs."
        )
        self.value, self.resolution = value, resolution


class BoundedNetworkError(LnkernelError, ValueError):
    """An input with a huge output asked for where the output is bounded.

    >>> import lnkernel as lnk
    >>> lnk.diverging_witness(lnk.mlp(norm="first"), [[1.0]], [1.0])
    Traceback (most recent call last):
    ...
    lnkernel.errors.BoundedNetworkError: this network has no diverging witness: ... for every x. ...
    """

    def __init__(self, C: float, rkhs: float):
        super().__init__(
            f"this network has no diverging witness: its normalisation makes Θ(x, x) ≤ {C:.6g}, so "
            f"for these data |mean(x)| ≤ {rkhs:.6g} for every x. Ask lnkernel.bound(arch, X, y) for "
            "the bound, or use a network without normalisation to see it diverge."
        )
        self.C, self.rkhs = C, rkhs


class BoundedMeanError(LnkernelError, ValueError):
    """An input with a huge output asked for where Θ(x, x) grows, but the mean is bounded.

    >>> import lnkernel as lnk
    >>> lnk.diverging_witness(lnk.mlp(hidden=1, activation=lnk.Erf()), [[1.0]], [1.0])
    Traceback (most recent call last):
    ...
    lnkernel.errors.BoundedMeanError: this network has no diverging witness: ... |mean(x)| ≤ ... for every x. ...
    """

    def __init__(self, value: float):
        super().__init__(
            "this network has no diverging witness: Θ(x, x) grows without limit, and with it the spread "
            "of trained networks, but its activations are bounded, so for these data |mean(x)| ≤ "
            f"{value:.6g} for every x. Ask lnkernel.mean_bound(arch, X, y) for this bound."
        )
        self.value = value


class NotATheoremWarning(UserWarning):
    """A formula was evaluated with a scaling factor for which it is not proved.

    >>> import warnings, lnkernel as lnk
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     b = lnk.bound(lnk.mlp(norm="first"), [[-1.0], [1.0]], [1.0, 1.0], s=0.1)
    >>> b.is_theorem, caught[0].category.__name__
    (False, 'NotATheoremWarning')
    """


class CertificateError(LnkernelError, ArithmeticError):
    """A statement that could not be proved, or a file that is no certificate.

    >>> import lnkernel as lnk
    >>> from lnkernel.bounds.certified.certificate import certify_bound
    >>> certify_bound(lnk.mlp(), [[1.0]], [1.0])
    Traceback (most recent call last):
    ...
    lnkernel.errors.CertificateError: C = sup Θ(x, x) is infinite for this network, ...
    """

    def __init__(self, problem: str, remedy: str):
        super().__init__(f"{_open(problem)}. {_open(remedy)}.")


class SeparationError(LnkernelError, ArithmeticError):
    """Labelled points that a network tells apart only with more digits than are allowed; `digits` are needed.

    >>> import numpy as np, lnkernel as lnk
    >>> lnk.nonlinearity.ln_net(np.arange(60.0)[:, None], np.arange(60) % 2, digits=15)
    Traceback (most recent call last):
    ...
    lnkernel.errors.SeparationError: ln_net: the labels of 60 points are proved with ... digits, and 15 are allowed. ...
    """

    def __init__(self, n: int, digits: int | None, most: int):
        needs = f"are proved with {digits} digits" if digits else "need more digits than are tried"
        super().__init__(
            f"ln_net: the labels of {n} points {needs}, and {most} are allowed. Leave digits=None for a network that "
            "computes with as many as it needs, or take fewer points, or points of which fewer lie close together."
        )
        self.digits, self.most = digits, most


class NoLawError(LnkernelError, NotImplementedError):
    """The loss of a network whose asymptotic law is not known.

    >>> import lnkernel as lnk
    >>> lnk.asymptotics.exponents(lnk.mlp(activation=lnk.Gelu()), d=1, target="indicator")
    Traceback (most recent call last):
    ...
    lnkernel.errors.NoLawError: no law is known: no activation of this network has a kink: ...
    """

    def __init__(self, reason: str, remedy: str):
        super().__init__(f"no law is known: {reason}. {remedy}.")
        self.reason, self.remedy = reason, remedy


class DivergedError(LnkernelError, ArithmeticError):
    """Training that blew up instead of fitting; the message tells the stable learning rate.

    `step` counts from 0, `network` is the number of the network in its ensemble, `limit` the
    largest stable learning rate of plain gradient descent, 2/λ_max of the empirical NTK at the
    start (None where it could not be computed), and `rate` the optimizer's own learning rate (None
    if it is not plain gradient descent).

    >>> import optax, lnkernel as lnk
    >>> arch, X, y = lnk.mlp(norm="first", width=64), [[1.0], [2.0]], [0.0, 1.0]
    >>> lnk.finite.train_ensemble(arch, X, y, seeds=1, optimizer=optax.sgd(9.0), steps=300)
    Traceback (most recent call last):
    ...
    lnkernel.errors.DivergedError: training diverged: at step ... the loss of network 0 was ... \
    stable for learning rates below 2/λ_max = 0.3..., and here the learning rate is 9. ...
    """

    def __init__(
        self,
        step: int,
        network: int,
        loss: float,
        first: float,
        n: int,
        *,
        limit: float | None,
        rate: float | None,
    ):
        parts = [
            f"training diverged: at step {step} the loss of network {network} was {loss:.3g}, after "
            f"{first:.3g} at the start. The loss is half the sum of the squared errors, "
            "1/2 Σ (f(x_i) - y_i)²."
        ]
        if limit is not None:
            stable = f"is stable for learning rates below 2/λ_max = {limit:.3g}"
            if rate is None:
                parts.append(f"Plain gradient descent on it {stable}; this optimizer is another.")
                parts.append("Lower its learning rate, or standardise X and y.")
            elif rate >= limit:
                parts.append(f"Gradient descent on it {stable}, and here the learning rate is")
                parts.append(f"{rate:.3g}. Choose one below, e.g. optax.sgd({limit / 2:.2g});")
                parts.append("one for the mean, 1/n Σ (f(x_i) - y_i)², is to be multiplied by")
                parts.append(f"2/n = {2 / n:.3g} first.")
            else:
                parts.append(f"At the start gradient descent on it {stable}, and {rate:.3g} is")
                parts.append("below, but in training the network's own kernel grew. Lower the")
                parts.append("learning rate, or widen the network.")
        else:
            parts.append("Lower the learning rate, or standardise X and y.")
        super().__init__(" ".join(parts))
        self.step, self.network, self.loss = step, network, loss
        self.limit, self.rate = limit, rate


class TrainingInterrupted(KeyboardInterrupt):
    """An interrupt (Ctrl-C) in training; `result` is what had been trained until then.

    Like every `KeyboardInterrupt` it passes through `except Exception`.
    """

    def __init__(self, result: Any, done: int):
        super().__init__(
            f"training was interrupted after {done} steps. What was trained so far is `result` of "
            "this exception; with checkpoint=... the same call goes on from here."
        )
        self.result, self.done = result, done


class CheckpointError(LnkernelError, ValueError):
    """A checkpoint that belongs to another run, or that cannot be read.

    >>> import tempfile, lnkernel as lnk
    >>> arch, X, path = lnk.mlp(width=4), [[1.0], [2.0]], tempfile.mkdtemp()
    >>> _ = lnk.finite.train_ensemble(arch, X, [0.0, 1.0], steps=2, checkpoint=path)
    >>> lnk.finite.train_ensemble(arch, X, [0.0, 2.0], steps=2, checkpoint=path)
    Traceback (most recent call last):
    ...
    lnkernel.errors.CheckpointError: checkpoint: ... was made by another run: other data. ...
    """

    def __init__(self, path: Any, problem: str, remedy: str):
        super().__init__(f"checkpoint: {path} {problem}. {remedy}.")


class DataScaleWarning(UserWarning):
    """Data of a scale at which training is likely to fail, or to lose digits.

    >>> import warnings, lnkernel as lnk
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     e = lnk.finite.train_ensemble(lnk.mlp(width=4), [[1.0]], [1e6], seeds=1, steps=1)
    >>> caught[0].category.__name__
    'DataScaleWarning'
    """
