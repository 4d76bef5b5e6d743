"""Tables and words of the experiment on images."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lnkernel.experiments import images_figures as figures
from lnkernel.experiments.domain_report import add_quick_notice
from lnkernel.experiments.folder import Folder
from lnkernel.experiments.images_plan import ImagesPlan
from lnkernel.experiments.images_results import NetworkResult, Pieces, results
from lnkernel.experiments.intervals import share_interval
from lnkernel.experiments.report import Report

Row = dict[str, Any]


def report_of(
    folder: Folder,
    plan: ImagesPlan,
    data: Sequence[Any],
    found: Pieces,
    name: str,
    origin: str,
) -> Report:
    """Figures and tables in the folder, and the report that shows them."""
    report = Report(
        "Kernels of images",
        "Dense and convolutional networks, with and without LayerNorm, with and without pooling, infinitely wide and "
        f"of finite width, learn {name}. How often are they right, and how large do their outputs become when "
        "the contrast of an image grows?",
    )
    if plan.steps < ImagesPlan(plan.seeds).steps:
        add_quick_notice(report, f"on {plan.groups[0].train} images of {name}")
    groups, sides = results(plan, data, found), [one.side for one in data]
    pairs = [(side, one) for side, group in zip(sides, groups, strict=True) for one in group]
    tables = {
        "accuracy": [
            _accuracy_row(images.side, one, len(images.test_label))
            for images, group in zip(data, groups, strict=True)
            for one in group
        ],
        "sizes": [row for side, one in pairs for row in _size_rows(side, one)],
        "contrast": [_contrast_row(side, one, plan) for side, one in pairs],
    }
    for label, rows in tables.items():
        folder.write_table(label, rows)
    report.heading("Accuracy")
    report.figure(
        figures.draw_accuracy(folder, sides, groups),
        "Share of test images that are classified rightly, against the number of training images. Lines: the mean of "
        "the posterior with the exact tangent kernel, solid with a LayerNorm behind the first layer, dashed without. "
        "Squares: trained networks of finite width, mean and range of the seeds, on all training images.",
        "Convolutional networks learn more from the same images than dense ones.",
    )
    report.table(
        tables["accuracy"],
        "The infinitely wide network with all training images, the noise that predicts left-out training images best, "
        "and trained networks of finite width with 95 % intervals over the seeds.",
    )
    report.heading("Contrast")
    report.figure(
        figures.draw_pictures(folder, plan, data, groups),
        "Left: test images at some contrasts, cut off as a screen does. Right: the largest Θ(x, x) of "
        f"{plan.scaled} test images at each contrast; dotted, C = sup Θ(x, x) over all images.",
        "Θ(x, x) grows as the square of the contrast without a norm, and stays below C with one.",
    )
    report.figure(
        figures.draw_contrast(folder, plan, sides, groups),
        f"The largest output, over ten classes and {plan.scaled} test images, against the contrast of the images. "
        "Above: the mean of infinitely wide networks, and for those with LayerNorm the bound √(C aᵀΘa), which holds "
        "for every image. Below: trained networks, the mean over the seeds of the largest output.",
        "Outputs grow in proportion to the contrast without LayerNorm, and stay where they are with it.",
    )
    report.table(
        tables["contrast"],
        f"The largest output at contrast 1 and {plan.contrasts[-1]:g}, the bounds, and the share of images that are "
        "given the same class as at contrast 1.",
    )
    _add_setting(report, plan, data, name, origin)
    return report


def _accuracy_row(side: int, one: NetworkResult, tested: int) -> Row:
    mean, low, high = share_interval(one.twins.tolist())
    share = one.accuracies[-1]
    return {
        "pixels": f"{side} × {side}",
        "network": one.network.name,
        "training images": one.sizes[-1],
        "test images": tested,
        "infinite width": share,
        "± (test images)": math.sqrt(share * (1 - share) / tested),
        "left out": one.fit.left_out,
        "noise/mean Θ(x, x)": one.relative_noise,
        "finite width": mean,
        "95 % from": low,
        "to": high,
        "seeds": len(one.twins),
        "training loss": float(one.losses.mean()) / one.sizes[-1],
    }


def _size_rows(side: int, one: NetworkResult) -> list[Row]:
    return [
        {"pixels": f"{side} × {side}", "network": one.network.name, "images": n, "accuracy": share}
        for n, share in zip(one.sizes, one.accuracies, strict=True)
    ]


def _contrast_row(side: int, one: NetworkResult, plan: ImagesPlan) -> Row:
    bounded = math.isfinite(one.C)
    return {
        "pixels": f"{side} × {side}",
        "network": one.network.name,
        "C": one.C,
        "C is": ("an upper bound" if one.is_upper_bound else "attained") if bounded else None,
        "largest Θ(x, x)": float(one.diagonal.max()),
        "B(D)": one.bound if bounded else math.inf,
        "B(D), sharp": one.sharp if bounded else math.inf,
        "largest at 1": float(one.largest[0]),
        "largest at the end": float(one.largest[-1]),
        "same class": float(one.same[-1]),
        "finite, at 1": float(one.twins_largest[:, 0].mean()),
        "finite, at the end": float(one.twins_largest[:, -1].mean()),
        "finite, same class": float(one.twins_same[-1]),
    }


def _add_setting(
    report: Report, plan: ImagesPlan, data: Sequence[Any], name: str, origin: str
) -> None:
    sizes = ", ".join(
        f"{group.train} training and {group.test} test images of {one.side} × {one.side} pixels"
        for group, one in zip(plan.groups, data, strict=True)
    )
    report.heading("Setting")
    report.paragraph(
        f"{name}: {origin}. {sizes}; smaller images are means of 2 × 2 pixels. Every colour has mean 0 and all pixels "
        "variance 1 over the training images, so that a contrast c multiplies the differences from the mean colour. "
        "Three hidden layers of ReLU, filters of 3 × 3 with zeros around the image, then all positions side by side "
        "(CNN) or their mean (pooled CNN), and a dense layer; LayerNorm over the channels behind the first layer. "
        "W_std = √2, b_std = 0.1. Targets are 1 for the class and 0 otherwise, less 0.1, of the ten outputs the "
        "largest is the class. A pooled kernel compares all pairs of pixels, so pooled networks get the "
        "smaller images alone, and fewer of them. The noise is one of "
        f"{', '.join(f'{noise:g}' for noise in plan.noises)} times the mean of Θ(x, x): the one with the least squared "
        "error for training images that are left out, by its closed form. Networks of finite width have "
        f"{' and '.join(str(group.width) for group in plan.groups)} channels (dense: four times as many neurons), the "
        f"standard parametrisation, squared error, {plan.steps} steps of Adam with batches of {plan.batch}, at a rate "
        f"from {plan.rate:g} to 0 along a cosine."
    )
