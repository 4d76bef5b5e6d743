"""Results of the experiments on finite networks, from their folders into the documentation.

    lnkernel reproduce finetuning      # and every other name of PAGES: full runs, into out/NAME
    python docs/tools/finite_results.py [OUT [NAME ...]]

It writes the tables between marks in the pages of the experiments, all or those that are named, and copies of the
figures, made smaller, into docs/assets.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from lnkernel.experiments.domains import in_words

DOCS = Path(__file__).parents[1]
PAGES = {
    "finetuning": "finetuning.md",
    "linearized": "finetuning.md",
    "protein": "reproduction.md",
    "laplace": "reproduction.md",
    "edge": "training.md",
    "asymptotics": "asymptotics.md",
    "nonlinearity": "nonlinearity.md",
    "alignment": "alignment.md",
    "images": "images.md",
}
FIGURES = {
    "finetuning": ("gap", "choices"),
    "linearized": ("accuracy", "anisotropy"),
    "laplace": ("scores", "reliability"),
    "edge": ("runs", "alignment", "linear"),
    "asymptotics": ("spectra", "losses", "networks"),
    "nonlinearity": ("xor", "accuracy", "spectra"),
    "alignment": ("vectors", "order", "local", "start"),
    "images": ("accuracy", "pictures", "contrast"),
}
WIDTH = 1000  # pixels
Row = dict[str, Any]


def manifest(folder: Path) -> Row:
    """What the run says of itself; an error unless it is a full one that came to its end."""
    found: Row = json.loads((folder / "manifest.json").read_text())
    if found["quick"] or not found["finished"]:
        raise SystemExit(f"{folder} is no full run that came to its end")
    return found


def rows(folder: Path, name: str) -> list[Row]:
    """A table of the run."""
    found: list[Row] = json.loads((folder / f"{name}.json").read_text())
    return found


def markdown(table: Sequence[Row]) -> str:
    """The rows as a table of Markdown."""
    head = list(table[0])
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(_cell(row[name]) for name in head) + " |" for row in table]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    """A value, in which no line is taken for the end of a column."""
    return str(value).replace("|", "\\|")


def interval(row: Row, mean: str, low: str, high: str, form: str = ".2f") -> str:
    """The mean with its interval."""
    return " ".join(
        [_number(row[mean], form), f"[{_number(row[low], form)}, {_number(row[high], form)}]"]
    )


def _number(value: Any, form: str) -> str:
    return "–" if value is None else f"{value:{form}}".replace("-", "−")


def picture(name: str, alt: str) -> str:
    """A figure of docs/assets, before a table."""
    return f"![{alt}](assets/{name}.png)\n\n"


def finetuning(folder: Path) -> list[str]:
    """The gap, its power of λ, correlations with the condition number, and the selective rule."""
    gap = [
        {
            "network, trained": f"{row['network']}, {row['trained']}",
            "λ/λ_max": f"{row['λ/λ_max']:g}",
            "distance to the start": _number(row["|θ*−θ₀|"], ".2g"),
            "gap [95 %]": interval(row, "gap", "gap, 95 % from", "gap, to", ".2g"),
            "proved after": _number(row["proved after"], ".2g"),
            "proved before": _number(row["proved before"], ".1g"),
            "mean of the outputs' gap": f"{100 * row['mean |f−f̄|/|f|']:.2g} %",
            "accuracy: network, linearized": f"{row['accuracy']:.3f}, {row['linearized']:.3f}",
        }
        for row in rows(folder, "gap")
        if row["trained"] in ("all parameters", "LoRA") and row["λ/λ_max"] <= 10
    ]
    powers = [
        {
            "network": row["network"],
            "trained": row["trained"],
            "seeds": row["seeds"],
            "power of λ [95 %]": interval(row, "slope", "95 % from", "to", ".3f"),
        }
        for row in rows(folder, "slopes")
    ]
    related = [
        {
            "network": row["network"],
            "measure": row["measure"],
            "trained by": row["trained by"],
            "seeds × choices": f"{row['seeds']} × {row['choices']}",
            "rank correlation [95 %]": interval(row, "rank correlation", "95 % from", "to"),
        }
        for row in rows(folder, "correlations")
    ]
    rules = [
        {
            "ridge term": row["rule"],
            **{
                f"{name} [95 %]": interval(row, name, f"{name}, 95 % from", f"{name}, to", ".3f")
                for name in ("risk", "accuracy", "distance")
            },
        }
        for row in rows(folder, "rules")
    ]
    return [markdown(gap), markdown(powers), markdown(related), markdown(rules)]


def linearized(folder: Path) -> list[str]:
    """Tasks, how the index orders them, and kernels that are trained anew."""
    tasks = [
        {
            "network, data": f"{row['network']}, {row['data']}",
            "task": row["task"],
            "network": _number(row["network's accuracy"], ".3f"),
            "linearized": f"{row['linearized']:.3f}",
            "difference [95 %]": interval(row, "difference", "95 % from", "to", ".3f"),
            "larger class": f"{row['larger class']:.3f}",
            "growth of the alignment": f"{row['growth']:.3g}",
        }
        for row in rows(folder, "tasks")
    ]
    ranks = [
        {
            "network, data": f"{row['network']}, {row['data']}",
            **{
                f"{name} [95 %]": interval(row, name, f"{name}, 95 % from", f"{name}, to")
                for name in ("of the network", "of the linearization")
            },
        }
        for row in rows(folder, "ranks")
    ]
    again = [
        {
            "network, data": f"{row['network']}, {row['data']}",
            "task": row["task"],
            "network": _number(row["network's accuracy"], ".3f"),
            "kernel before": f"{row['kernel before']:.3f}",
            "kernel after": f"{row['kernel after']:.3f}",
            "gain [95 %]": interval(row, "gain", "95 % from", "to", ".3f"),
        }
        for row in rows(folder, "retrained")
    ]
    return [markdown(tasks), markdown(ranks), markdown(again)]


def protein(folder: Path) -> list[str]:
    """Infinitely wide networks, from some of the rows and from all."""

    def cell(row: Row, words: str) -> str:
        return in_words(row[f"R² {words}"], row[f"± ({words})"], digits=3)

    table = [
        {
            "network": row["method"],
            "seeds": row["seeds"],
            **{words: cell(row, words) for words in ("out of domain", "in domain")},
            "trained on": row["note"].split("; ")[-1],
        }
        for row in rows(folder, "table")
        if row["method"].startswith("infinite width")
    ]
    return [markdown(table)]


def laplace(folder: Path) -> list[str]:
    """The scores of every method."""

    def cell(row: Row, score: str) -> str:
        return f"{row[score]:.3f} ± {row[f'± ({score})']:.3f}"

    table = [
        {
            "data": row["data"],
            "method": row["method"],
            **{score: cell(row, score) for score in ("NLL", "ECE", "accuracy")},
            "τ, median": "–" if row["τ, median"] is None else f"{row['τ, median']:.3g}",
        }
        for row in rows(folder, "table")
    ]
    return [markdown(table)]


def edge(folder: Path) -> list[str]:
    """Every rate, differences at equal loss, and the linear network."""
    rates = [
        {
            "data and network": row["data and network"],
            "rate": f"{row['rate']:g}",
            "diverged": f"{row['diverged']} of {row['starts']}"
            + (f", by step {row['at step']}" if row["diverged"] else ""),
            "reached the loss": f"{row['reached the loss']} ({row['loss']:g})",
            "steps": _number(row["steps"], ",.0f"),
            "median ratio [95 %]": _with_ends(row, "median ratio"),
            "largest": _number(row["largest"], ".2f"),
            "KTA at the start": _number(row["KTA at the start"], ".3f"),
            "KTA there [95 %]": _with_ends(row, "KTA"),
            "first five eigenvectors [95 %]": _with_ends(row, "first five eigenvectors"),
        }
        for row in rows(folder, "rates")
    ]
    pairs = [
        {
            "data and network": row["data and network"],
            "loss": f"{row['level']:g}",
            "rates": f"{row['small rate']:g}, {row['large rate']:g}",
            "KTA": f"{row['KTA there']:.3f}, {row['its KTA']:.3f}",
            "difference [95 %]": _with_ends(row, "difference"),
        }
        for row in rows(folder, "pairs")
    ]
    linear = [
        {
            "rate": f"{row['rate']:g}",
            "diverged": f"{row['diverged']} of {row['starts']}",
            "λ_max η/2n": _number(row["λ_max η/2n"], ".3f"),
            "\\|a\\|² (closed form)": f"{_number(row['|a|²'], '.3f')} ({row['|a|² in closed form']:.3f})",
            "KTA (closed form)": f"{_number(row['KTA'], '.3f')} ({row['KTA in closed form']:.3f})",
        }
        for row in rows(folder, "linear")
    ]
    pictures = (
        "![Sharpness against steps, and alignment against the loss](assets/edge-runs.png)",
        "![What part of the targets lies along the leading eigenvectors](assets/edge-alignment.png)",
        "![The closed form and gradient descent against the rate](assets/edge-linear.png)",
    )
    tables = (rates, pairs, linear)
    return [f"{markdown(t)}\n\n{p}" for t, p in zip(tables, pictures, strict=True)]


def _with_ends(row: Row, name: str) -> str:
    """The mean with its interval; a dash for nothing, and no interval of a single start."""
    if row[name] is None:
        return "–"
    return interval(row, name, f"{name}, 95 % from", f"{name}, to", ".3f")


def asymptotics(folder: Path) -> list[str]:
    """Exponents of spectra, of losses, the constant on a line, and trained networks."""

    def window(row: Row) -> str:
        return f"{_number(row['window from'], '.3g')} to {_number(row['window to'], '.3g')}"

    spectra = [
        {
            "network": row["network"],
            "d": row["d"],
            "ν, law": f"{row['ν, law']:.3f}",
            "ν, fitted [95 %]": interval(row, "ν, fitted", "95 % from", "to", ".3f"),
            "window, in n": window(row),
            "slope changes by": f"{100 * row['slope changes by']:.0f} %",
        }
        for row in rows(folder, "spectra")
    ]
    constants = [
        {
            "network": row["network"],
            "Λ, law": f"{row['Λ, law']:.5f}",
            "Λ, measured [95 %]": interval(row, "Λ, measured", "95 % from", "to", ".5f"),
            "window, in n": window(row),
        }
        for row in rows(folder, "constants")
    ]
    losses = [
        {
            "network": row["network"],
            "d": row["d"],
            "target": row["target"],
            "ξ, law": _number(row["ξ, law"], ".3f"),
            "ξ, fitted [95 %]": interval(row, "ξ, fitted", "95 % from", "to", ".3f"),
            "window, in tλ₁": window(row),
        }
        for row in rows(folder, "losses")
        if row["network"] in ("ReLU", "LayerNorm, ReLU", "groups of 4")
    ]
    trained = [
        {
            "network": row["network"],
            "d": row["d"],
            "target": row["target"],
            "ξ, exact kernel [95 %]": interval(
                row, "ξ, kernel", "kernel, 95 % from", "kernel, to", ".3f"
            ),
            "ξ, networks [95 %]": interval(row, "ξ, networks", "95 % from", "to", ".3f"),
            "loss, networks/kernel [95 %]": interval(
                row, "loss, networks/kernel", "ratio, 95 % from", "ratio, to"
            ),
            "window, in tλ₁": window(row),
        }
        for row in rows(folder, "networks")
    ]
    return [
        picture("asymptotics-spectra", "Eigenvalues of exact kernels in one to three dimensions")
        + markdown(spectra),
        markdown(constants),
        picture("asymptotics-losses", "Losses of three targets") + markdown(losses),
        picture("asymptotics-networks", "Losses of trained networks beside the exact kernel's")
        + markdown(trained),
    ]


def nonlinearity(folder: Path) -> list[str]:
    """Constructed networks, trained networks, and kernels by group size."""
    made = [
        {**row, "right": "all" if row["right"] == 1.0 else f"{row['right']:.3f}"}
        for row in rows(folder, "constructed")
    ]
    trained = [
        {
            "data": row["data"],
            "network": row["network"],
            "norms": row["norms"],
            "groups": "–" if row["groups"] is None else row["groups"],
            "training accuracy [95 %]": interval(
                row, "training accuracy", "95 % from", "to", ".3f"
            ),
            "rate": "–" if row["rate"] is None else f"{row['rate']:g}",
        }
        for row in rows(folder, "networks")
    ]
    cells: dict[tuple[Any, ...], Row] = {}
    for row in rows(folder, "kernels"):
        key = (row["data"], row["norms"], row["group size"])
        first = {
            "data": row["data"],
            "norms": row["norms"],
            "group size": row["group size"],
            "rank": row["rank"],
        }
        cell = interval(row, "training accuracy", "95 % from", "to")
        cells.setdefault(key, first)[f"noise {row['noise/mean Θ(x, x)']:g}"] = cell
    return [
        picture("nonlinearity-xor", "XOR, what one LayerNorm makes of it, and twelve points")
        + markdown(made),
        picture("nonlinearity-accuracy", "Training accuracy by depth, by groups, at infinite width")
        + markdown(trained),
        picture("nonlinearity-spectra", "Eigenvalues of the exact kernels of LN-Nets by group size")
        + markdown(list(cells.values())),
    ]


def alignment(folder: Path) -> list[str]:
    """Ours beside the published, critical times, local forms, and the start."""

    def mean(row: Row, name: str, form: str = ".2f") -> str:
        return interval(row, name, f"{name}, 95 % from", f"{name}, to", form)

    beside = [
        {
            "depth/ω₀": row["depth/ω₀"],
            "diverged": f"{row['diverged']} of {row['networks']}",
            "ξ: start, end (published)": f"{_number(row['ξ at the start'], '.3f')}, "
            f"{_number(row['ξ at the end'], '.3f')} ({row['published ξ']:.2f})",
            "AUC, start": _number(row["AUC at the start"], ".2f"),
            "AUC, end [95 %]": mean(row, "AUC at the end"),
            "published AUC": f"{row['published AUC']:.2f}",
            "log10 t_crit [95 %]": mean(row, "log10 t_crit"),
            "published t_crit": f"{row['published log10 t_crit']:.2f}",
            "log10 finer loss [95 %]": mean(row, "log10 finer loss"),
            "published loss": _number(row["published log10 loss"], ".2f"),
        }
        for row in rows(folder, "table")
    ]
    kinds = list(dict.fromkeys(row["depth/ω₀"] for row in rows(folder, "times")))
    cells = {(row["order parameter"], row["depth/ω₀"]): row for row in rows(folder, "times")}
    times = [
        {
            "order parameter (rule)": f"{name} ({cells[name, kinds[0]]['rule']})",
            **{
                kind: "–"
                if not cells[name, kind]["found"]
                else f"{cells[name, kind]['log10 t_crit']:.2f} ({cells[name, kind]['found']}/"
                f"{cells[name, kind]['of']})"
                for kind in kinds
            },
        }
        for name in dict.fromkeys(row["order parameter"] for row in rows(folder, "times"))
    ]
    forms = [
        {
            "depth/ω₀": row["depth/ω₀"],
            "Pearson of ξ [95 %]": mean(row, "Pearson of ξ"),
            "Pearson of the least cosine [95 %]": mean(row, "Pearson of the least cosine"),
            "local ξ/measured ξ": _number(row["local ξ/measured ξ, median"], ".2f"),
            "v₀ with its local form": _number(
                row["cosine of v₀ with its local form, median"], ".3f"
            ),
            "v₀ with K1": _number(row["cosine of v₀ with K1, median"], ".5f"),
        }
        for row in rows(folder, "local")
    ]
    names = [name for name in rows(folder, "start")[0] if name != "depth/ω₀"]
    start = [
        {"depth/ω₀": row["depth/ω₀"], **{name: _number(row[name], ".3f") for name in names}}
        for row in rows(folder, "start")
    ]
    pictures = {
        "vectors": "Pictures, their edges, and the first eigenvector before and after training",
        "order": "Order parameters against the step",
        "local": "Local forms against measured values",
        "start": "Correlation length before training, by width",
    }
    shown = [f"![{alt}](assets/alignment-{name}.png)" for name, alt in pictures.items()]
    tables = [markdown(beside), markdown(times), markdown(forms), markdown(start)]
    return [f"{table}\n\n{picture}" for table, picture in zip(tables, shown, strict=True)]


def images(folder: Path) -> list[str]:
    """Accuracies, and outputs of scaled images beside the bound."""
    shares = [
        {
            "pixels": row["pixels"],
            "network": row["network"],
            "images: training, test": f"{row['training images']}, {row['test images']}",
            "infinite width ± (test images)": f"{row['infinite width']:.3f} ± {row['± (test images)']:.3f}",
            "noise/mean Θ(x, x)": f"{row['noise/mean Θ(x, x)']:g}",
            "finite width [95 %]": interval(row, "finite width", "95 % from", "to", ".3f"),
        }
        for row in rows(folder, "accuracy")
    ]

    def number(value: Any) -> str:
        return "∞" if value == "inf" else f"{float(value):,.3g}"

    outputs = [
        {
            "pixels": row["pixels"],
            "network": row["network"],
            "C": number(row["C"]) + (" (attained)" if row["C is"] == "attained" else ""),
            "largest Θ(x, x)": number(row["largest Θ(x, x)"]),
            "B(D) = √(C aᵀΘa)": number(row["B(D)"]),
            "sharp": number(row["B(D), sharp"]),
            "largest output, contrast 1 and 1000": number(row["largest at 1"])
            + ", "
            + number(row["largest at the end"]),
            "same class": f"{row['same class']:.2f}",
            "finite width": f"{number(row['finite, at 1'])}, {number(row['finite, at the end'])}",
            "its same class": f"{row['finite, same class']:.2f}",
        }
        for row in rows(folder, "contrast")
    ]
    return [
        picture("images-accuracy", "Test accuracy against the number of training images")
        + markdown(shares),
        picture("images-pictures", "Images at three contrasts, and Θ(x, x) beside C")
        + picture("images-contrast", "The largest output against contrast, with the bound")
        + markdown(outputs),
    ]


TABLES: dict[str, Callable[[Path], list[str]]] = {
    "finetuning": finetuning,
    "linearized": linearized,
    "protein": protein,
    "laplace": laplace,
    "edge": edge,
    "asymptotics": asymptotics,
    "nonlinearity": nonlinearity,
    "alignment": alignment,
    "images": images,
}


def replace_block(text: str, mark: str, block: str) -> str:
    """A page with what stands between the two marks of this name replaced."""
    begin, end = f"<!-- {mark}: begin -->", f"<!-- {mark}: end -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise SystemExit(f"expected {begin} and {end} once, in this order")
    return pattern.sub(lambda _: f"{begin}\n{block}\n{end}", text)


def copy_figure(file: Path, target: Path) -> None:
    """The figure, `WIDTH` pixels wide, in few colours."""
    with Image.open(file) as picture:
        height = round(picture.height * WIDTH / picture.width)
        smaller = picture.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
        smaller.quantize(128, dither=Image.Dither.NONE).save(target, optimize=True)


def main(out: Path, names: Sequence[str]) -> None:
    for name in names or PAGES:
        folder, page = out / name, PAGES[name]
        about = manifest(folder)
        text = (DOCS / page).read_text()
        for number, table in enumerate(TABLES[name](folder), start=1):
            text = replace_block(text, f"{name} {number}", table)
        (DOCS / page).write_text(text)
        for figure in FIGURES.get(name, ()):
            copy_figure(folder / f"{figure}.png", DOCS / "assets" / f"{name}-{figure}.png")
        print(f"{name}: {len(about['seeds'])} seeds, {about['ended']}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path("out"), sys.argv[2:])
