"""The age of people of an ethnic group that the training data do not have, from image features."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from lnkernel.datasets import Faces
from lnkernel.datasets import utkface as load
from lnkernel.datasets.images import extract, labels
from lnkernel.errors import InputError
from lnkernel.experiments.domains import Published, Range, Result, split
from lnkernel.experiments.folder import Folder, fingerprint, seeds_from
from lnkernel.experiments.report import Report
from lnkernel.experiments.trials import Trials
from lnkernel.experiments.utkface_plan import BATCH, LEARNING_RATES, FacesPlan
from lnkernel.experiments.utkface_report import report_of
from lnkernel.experiments.variants import VARIANTS

INSIDE = Range(0.66, 0.68)  # for all of them
PUBLISHED = {
    "none": Published(INSIDE, (0.27, 0.03)),
    "first": Published(INSIDE, (0.47, 0.03)),
    "last": Published(INSIDE, (0.36, 0.04)),
    "all": Published(INSIDE, (0.42, 0.05)),
}


def compute(folder: Folder, plan: FacesPlan, faces: Faces) -> list[Result]:
    """All variants on all splits, from the folder's pieces where they are there."""
    splits = [split(faces.x, faces.age, faces.others, seed, plan.most) for seed in plan.seeds]
    trials, points = Trials(folder, plan.seeds, splits, plan.note(faces.backbone)), splits[0].train
    return [
        trials.networks(one, plan.recipe(one, len(points.y)), PUBLISHED[one.name])
        for one in VARIANTS
    ]


def conduct(
    folder: Folder,
    *,
    quick: bool,
    seed: int,
    seeds: int | None,
    features: str | None = None,
    images: str | None = None,
) -> Report:
    """The experiment, as `REGISTRY["utkface"].run` calls it."""
    if images is not None and features is not None:
        remedy = "Omit --features to make new ones, or --images to use those that there are"
        raise InputError("images", "either images or features of them", "both", remedy)
    faces = load(features if images is None else _features(folder, images))
    plan = FacesPlan(seeds_from(seed, seeds, 2 if quick else 10))
    if quick:
        plan = replace(plan, epochs=2, most=3_000)
    folder.record(
        seeds=plan.seeds,
        settings={"epochs": plan.epochs, "batch": BATCH, "learning rates": LEARNING_RATES},
        data={
            "faces": len(faces.age),
            "backbone": faces.backbone,
            "fingerprint": fingerprint(faces.x, faces.age, faces.ethnicity),
        },
    )
    return report_of(folder, faces, compute(folder, plan, faces), plan)


def _features(folder: Folder, images: str) -> Path:
    """The file of an images' folder's features, made once for the images that it now has."""
    source = Path(images).expanduser().resolve()
    key = fingerprint([str(source), *sorted(str(path) for path in labels(source))])
    made = folder.path / f"features-{key}.npz"
    return made if made.is_file() else extract(images, made, progress=folder.progress)
