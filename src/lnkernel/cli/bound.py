"""`lnkernel bound`: how large the expected output can be, anywhere, for the data of a CSV file."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lnkernel.cli import training_data
from lnkernel.cli.command import OK, Command, add_json, add_out, announce, note, print_json

if TYPE_CHECKING:
    from lnkernel.arch import Node
    from lnkernel.bounds import Bound
    from lnkernel.cli.ray import Ray
    from lnkernel.cli.training_data import CsvData


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    training_data.add_arguments(parser)
    parser.add_argument(
        "--arch",
        default="mlp(hidden=2, norm='first')",
        help="the network, as Python writes it (default: %(default)s)",
    )
    parser.add_argument("--certify", action="store_true", help="prove every digit")
    add_json(parser)
    add_out(parser, "out/bound", "the picture and the certificate")


def _run(options: argparse.Namespace) -> int:
    from lnkernel.arch.parse import parse
    from lnkernel.cli.ray import draw

    arch = parse(options.arch)
    data = training_data.load(options)
    for each in data.notes:
        note(f"{options.data}: {each}")
    announce(len(data.X))
    b, ray = _compute(arch, data, options)
    files = {"picture": options.out / "profile.png"}
    draw(ray, data, b, files["picture"])
    if b.certificate is not None:
        files["certificate"] = options.out / "certificate.json"
        b.certificate.save(files["certificate"])
    if options.json:
        print_json(_as_dict(options, arch, data, b, ray, files))
    else:
        print(_in_words(options.data, arch, data, b, ray))
        print("".join(f"\n{name}: {path}" for name, path in files.items()))
        if "certificate" in files:
            print(f"prove it again: lnkernel verify {files['certificate']}")
    return OK


def _compute(arch: Node, data: CsvData, options: argparse.Namespace) -> tuple[Bound, Ray]:
    from lnkernel.bounds import bound
    from lnkernel.cli.ray import along_principal_direction
    from lnkernel.cli.unresolved import by_lines, too_many
    from lnkernel.errors import (
        DuplicateInputsError,
        NotEnoughMemoryError,
        SingularGramError,
        TooManyPointsError,
        UnresolvedEigenvalueError,
    )
    from lnkernel.gp.posterior import posterior

    try:
        post = posterior(arch, data.X, data.y, noise=data.noise)
        b = bound(post, certify=options.certify)
        return b, along_principal_direction(post, data, b)
    except (DuplicateInputsError, SingularGramError, UnresolvedEigenvalueError) as problem:
        raise by_lines(problem, data, options) from None
    except (NotEnoughMemoryError, TooManyPointsError) as problem:
        raise too_many(problem, data, options) from None


def _in_words(path: Path, arch: Node, data: CsvData, b: Bound, ray: Ray) -> str:
    targets = data.targets
    plural = "" if len(data.inputs) == 1 else "s"
    head = (
        f"{path}: {b.n} points, {len(data.inputs)} input{plural} ({_short(data.inputs)}), target "
        f"{data.target} from {targets.min():.6g} to {targets.max():.6g}\nnetwork: {arch!r}"
    )
    scaled = (
        "\nThe numbers below are for inputs and targets scaled to mean 0 and standard deviation 1."
        if data.unit != 1.0 or data.centre
        else ""
    )
    return f"{head}\n\n{_meaning(data, b)}\n{_along(data, b, ray)}\n{scaled}\n{b}"


def _meaning(data: CsvData, b: Bound) -> str:
    from lnkernel.bounds.digits import at_most

    if math.isinf(b.rkhs):
        return (
            "This network has no bound: as the input moves away from these data its expected output "
            "can grow without limit. A LayerNorm in one layer bounds it, e.g. "
            "mlp(hidden=2, norm='first')."
        )
    limit = at_most(data.unit * b.rkhs, 4)
    if data.centre:
        most = at_most(data.unit * b.max_abs_y, 4)
        stays = f"within {limit} of {data.centre:.6g}; the targets stay within {most} of it"
    else:
        least, largest = data.targets.min(), data.targets.max()
        stays = f"between -{limit} and {limit}; the targets run from {least:.4g} to {largest:.4g}"
    return (
        "However far an input lies from these data, the expected output of this network, infinitely "
        f"wide and trained on them, stays {stays}."
    )


def _along(data: CsvData, b: Bound, ray: Ray) -> str:
    of = f" from {data.centre:.6g}" if data.centre else ""
    text = (
        "Along the principal direction of the inputs, out to a million standard deviations, it "
        f"reaches {ray.largest:.4g}{of} ({ray.where:.3g} standard deviations from their centre), and "
        f"is {ray.end:.4g} at the end"
    )
    limit = data.unit * b.rkhs
    if math.isfinite(limit) and ray.largest > 0:
        text += f": the bound is {limit / ray.largest:.3g} times as large"
    return f"{text}."


def _as_dict(
    options: argparse.Namespace,
    arch: Node,
    data: CsvData,
    b: Bound,
    ray: Ray,
    files: dict[str, Path],
) -> dict[str, Any]:
    from lnkernel.bounds import FORMS

    names = ("C", "lambda_min", "lambda_error", "n", "max_abs_y", "noise", "is_theorem")
    return {
        "data": options.data,
        "target": data.target,
        "inputs": data.inputs,
        "arch": repr(arch),
        "notes": data.notes,
        "centre": data.centre,
        "unit": data.unit,
        "bounds": {form: data.unit * getattr(b, form) for form in FORMS},
        "ingredients": {name: getattr(b, name) for name in names} | {"certified": b.certified},
        "principal_direction": {
            "direction": ray.direction,
            "standard_deviation": ray.spread,
            "largest_mean": ray.largest,
            "attained_at": ray.where,
            "mean_at_end": ray.end,
        },
        "files": files,
    }


def _short(names: tuple[str, ...]) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:5])}, ..."


COMMAND = Command(
    "bound",
    "how large the expected output of a network trained on your data can be, anywhere",
    "lnkernel bound data.csv --target y --arch \"mlp(hidden=2, norm='first')\"",
    _add_arguments,
    _run,
)
