"""Certificates: proved numbers against known ones, and files that were tampered with."""

from __future__ import annotations

import copy
import dataclasses
import functools
import io
import json
import math
import operator
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cases
import mpmath
import numpy as np
import oracle
import pytest
from mpmath import mp, mpf

import lnkernel as lnk
from lnkernel import LayerNorm, Relu, cli, residual, serial
from lnkernel.bounds.certified.certificate import Certificate, certify_bound
from lnkernel.bounds.certified.description import describe, rebuild
from lnkernel.bounds.certified.enclosures import (
    lambda_min_lower,
    quadratic_form_upper,
    sup_diagonal_enclosure,
)
from lnkernel.bounds.certified.fields import FieldError, rows, take
from lnkernel.bounds.certified.supremum import Enclosure
from lnkernel.errors import ArchitectureError, CertificateError, InputError

EXAMPLE = lnk.mlp(hidden=2, norm="first")
TABLE = cases.architectures()


def dense(w: float, b: float) -> lnk.Dense:
    return lnk.Dense(8, W_std=w**0.5, b_std=b**0.5)


def interior() -> lnk.Serial:
    """Its Θ(x, x) is largest at |x|² = 4.512, 5.8094161, and smaller at zero and at infinity."""
    block = residual(LayerNorm(), dense(6, 0.3), Relu(), dense(10, 0.3), Relu(), dense(16, 0.2))
    return serial(dense(2.5, 0.01), Relu(), dense(0.5, 0.1), block, LayerNorm(), dense(1, 0))


@pytest.fixture(scope="module")
def sinusoid() -> Certificate:
    X = np.linspace(-5, 5, 100)
    return certify_bound(EXAMPLE, X[:, None], np.sin(X))


@pytest.fixture(scope="module")
def small() -> Certificate:
    X = np.random.default_rng(0).normal(size=(6, 2))
    return certify_bound(EXAMPLE, X, np.sin(X.sum(1)))


# ---------------------------------------------------------------- C


def test_interior_maximum() -> None:
    C, norm = sup_diagonal_enclosure(interior(), rtol=1e-6)
    assert 5.80941608 <= C.lower <= 5.809416082 <= C.upper <= 5.809421876
    assert norm**2 == pytest.approx(4.512, rel=1e-3)


def test_maximum_at_zero() -> None:
    block = residual(LayerNorm(), dense(2, 0.01), Relu(), dense(2, 0.01))
    arch = serial(dense(2, 0.01), block, LayerNorm(), dense(2, 0.01))
    C, norm = sup_diagonal_enclosure(arch)
    assert C.lower == pytest.approx(7.9607, abs=1e-4) and norm == 0
    assert C.upper <= C.lower * (1 + 1e-8)


def test_trainable_biases() -> None:
    """Two affine LayerNorms with eps = 1e-5 and no other bias: 1 + 1/eps at x = 0."""
    affine = LayerNorm(eps=1e-5, scale=True, bias=True)
    layers = (dense(2, 0), affine, Relu(), dense(2, 0), affine, Relu(), dense(2, 0))
    C, norm = sup_diagonal_enclosure(serial(*layers))
    assert C.lower == pytest.approx(100001, rel=1e-9) and C.upper <= C.lower * (1 + 1e-8)
    assert norm == 0


def test_constant() -> None:
    C, _ = sup_diagonal_enclosure(EXAMPLE)
    assert math.nextafter(C.lower, 4) >= C.upper  # one unit in the last place
    assert C.lower <= 3.0300000000000007 <= C.upper  # the float 2**0.5 squares to a bit above 2


def test_unbounded() -> None:
    assert sup_diagonal_enclosure(lnk.mlp()) == (Enclosure(math.inf, math.inf), math.inf)
    skip = serial(dense(1, 0), residual(LayerNorm(), Relu(), dense(1, 0)), dense(1, 0))
    assert sup_diagonal_enclosure(skip)[0].lower == math.inf


def test_unbounded_towards_zero() -> None:
    """A trainable bias keeps Θ positive while the next LayerNorm divides by a vanishing length."""
    start = (dense(1, 0), LayerNorm(eps=1e-5, bias=True), Relu(), dense(1, 0))
    assert sup_diagonal_enclosure(serial(*start, LayerNorm(), dense(1, 0))) == (
        Enclosure(math.inf, math.inf),
        0.0,
    )


def test_limit_at_infinity_of_a_chain() -> None:
    """L blocks and a LayerNorm: Θ = sum of kappa^j before it, kappa = p²/(2p - 1)."""
    act = lnk.RectifiedPower(1.5)
    arch = serial(dense(2, 0.1), act, dense(2, 0.1), act, dense(2, 0.1), LayerNorm(), dense(1, 0))
    kappa = 1.5**2 / 2
    C, norm = sup_diagonal_enclosure(arch)
    assert (
        C.lower == pytest.approx(1 + (1 + kappa + kappa**2), rel=1e-14, abs=0) and norm == math.inf
    )


BOUNDED = ("LN first", "LN after, eps", "RMS after, LN", "scale and bias", "GroupNorm 4", "pre-LN")


@pytest.mark.parametrize("name", BOUNDED)
def test_no_norm_exceeds_the_supremum(name: str) -> None:
    arch = TABLE[name].arch
    C, norm = sup_diagonal_enclosure(arch, rtol=1e-6)
    norms = np.concatenate([np.geomspace(1e-8, 1e8, 60), [norm] if 0 < norm < math.inf else []])
    values = np.asarray(lnk.ntk(arch).diagonal(norms[:, None] * np.array([1.0, -1.0, 1.0, -1.0])))
    assert (values <= C.upper * (1 + cases.BOUNDS["shallow"])).all()
    assert values.max() >= C.lower * (1 - 1e-5) and C.upper <= C.lower * (1 + 1e-6)


@pytest.mark.parametrize(
    "start",
    [
        (lnk.RMSNorm(eps=0.1), LayerNorm()),
        (lnk.parallel(serial(LayerNorm(), dense(1, 0)), dense(1, 0)), LayerNorm()),
    ],
    ids=["behind RMSNorm", "in one branch"],
)
def test_two_lengths_are_refused(start: tuple[lnk.Node, ...]) -> None:
    """Θ(x, x) then depends on the mean of x and on its size."""
    with pytest.raises(
        ArchitectureError, match="depends on two numbers, the mean of the coordinates"
    ):
        sup_diagonal_enclosure(serial(*start, dense(1, 0)))


def test_bad_rtol() -> None:
    with pytest.raises(InputError, match="a number between 0 and 1"):
        sup_diagonal_enclosure(EXAMPLE, rtol=0.0)


# ---------------------------------------------------------------- the matrix


def exact_matrix(arch: lnk.Node, X: np.ndarray) -> mpmath.matrix:
    n, out = len(X), mpmath.zeros(len(X))
    for i in range(n):
        for j in range(i + 1):
            out[i, j] = out[j, i] = oracle.kernels(arch, X[i], X[j], dps=60)[1]
    return out


@pytest.mark.parametrize("apart", (0.3, 1e-9, 1e-15), ids=str)
def test_eigenvalue_and_quadratic_form(apart: float) -> None:
    """From points well apart to neighbouring floats, where float64 alone proves nothing."""
    X = np.array([[0.0, 1.0], [1.0, 0.5], [-1.0, 2.0], [1.0 + apart, 0.5]])
    y = np.array([1.0, -1.0, 0.5, 2.0])
    low = lambda_min_lower(EXAMPLE, X)
    quadratic = quadratic_form_upper(EXAMPLE, X, y, low)
    with mp.workdps(60):
        theta = exact_matrix(EXAMPLE, X)
        least = min(mpmath.eigsy(theta, eigvals_only=True))
        target = mpmath.matrix([mpf(float(t)) for t in y])
        form = (target.T * mpmath.lu_solve(theta, target))[0]
        assert mpf(low) <= least <= mpf(low) * (1 + mpf("1e-6"))
        assert form <= mpf(quadratic) <= form * (1 + mpf("1e-6"))


def test_equal_points_are_refused() -> None:
    with pytest.raises(CertificateError, match="could not be proved positive definite"):
        lambda_min_lower(EXAMPLE, [[1.0], [2.0], [1.0]])


def test_wrong_number_of_targets() -> None:
    with pytest.raises(InputError, match="one target per point of X"):
        certify_bound(EXAMPLE, [[1.0], [2.0]], [1.0])


# ---------------------------------------------------------------- certificates


def test_example_of_the_documentation(sinusoid: Certificate) -> None:
    assert 1.5964367e-4 <= sinusoid.lambda_min_lower <= 1.596437e-4
    assert sinusoid.C.upper == pytest.approx(3.03, rel=1e-15, abs=0)
    assert 27.05 < sinusoid.rkhs_upper <= 27.052741
    assert 1377 < sinusoid.sharp_upper <= 1377.65263
    assert sinusoid.n == 100 and sinusoid.norm_upper**2 == pytest.approx(241.5349127, rel=1e-9)


def test_several_outputs() -> None:
    X = np.random.default_rng(0).normal(size=(5, 2))
    y = np.random.default_rng(1).normal(size=(5, 2))
    both = certify_bound(EXAMPLE, X, y)
    each = [certify_bound(EXAMPLE, X, column) for column in y.T]
    assert both.rkhs_upper == max(one.rkhs_upper for one in each)
    assert both.max_abs_y == np.abs(y).max()


def test_nothing_to_learn() -> None:
    made = certify_bound(EXAMPLE, [[1.0], [2.0]], [0.0, 0.0])
    assert made.rkhs_upper == made.sharp_upper == 0 and made.verify()


def test_saved_and_verified(sinusoid: Certificate, tmp_path: Path, capsys: Any) -> None:
    sinusoid.save(tmp_path / "c.json")
    again = Certificate.load(tmp_path / "c.json")
    assert again.arch == sinusoid.arch and np.array_equal(again.X, sinusoid.X)
    assert again.rkhs_upper == sinusoid.rkhs_upper
    assert cli.main(["verify", str(tmp_path / "c.json")]) == 0
    out = capsys.readouterr().out
    assert "The certificate is valid" in out and "FAILED" not in out and out.count("proved:") == 8


def changed(value: Any) -> Any:
    """The same with one number, the first, changed in its last digit."""
    if isinstance(value, dict):
        key = next(iter(value))
        return value | {key: changed(value[key])}
    if isinstance(value, list):
        return [changed(value[0]), *value[1:]]
    if isinstance(value, str) and value.startswith(("0x", "-0x")):
        return math.nextafter(float.fromhex(value), math.inf).hex()
    return value + 1 if isinstance(value, int) else value + " "


KEYS = (
    "X", "y", "C", "noise", "lambda_min_lower", "norm_upper", "rkhs_upper", "sharp_upper", "n",
    "max_abs_y", "rtol", "architecture in words", "made with", "digest", "statement", "method",
)  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_change_is_noticed(key: str, small: Certificate, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    small.save(path)
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | {key: changed(data[key])}))
    assert not Certificate.load(path).verify().findings[0].holds
    assert cli.main(["verify", str(path)]) == 1


def test_a_changed_layer_is_noticed(small: Certificate, tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    small.save(path)
    data = json.loads(path.read_text())
    data["architecture"]["layers"][0]["b_std"] = (0.2).hex()
    path.write_text(json.dumps(data))
    assert not Certificate.load(path).verify()


FALSE = {
    "C = sup Θ(x, x) <=": lambda c: {"C": Enclosure(c.C.lower, c.C.lower * (1 - 1e-9))},
    "C = sup Θ(x, x) >=": lambda c: {"C": Enclosure(c.C.upper * (1 + 1e-9), c.C.upper)},
    "the smallest eigenvalue": lambda c: {"lambda_min_lower": c.lambda_min_lower * (1 + 1e-8)},
    "sqrt(y^T Θ(X, X)^-1 y) <=": lambda c: {"norm_upper": c.norm_upper * (1 - 1e-9)},
    "so |f(x)| <=": lambda c: {"rkhs_upper": c.rkhs_upper * (1 - 1e-15)},
    "and max|y| sqrt": lambda c: {"sharp_upper": c.sharp_upper * (1 - 1e-15)},
    "the data are": lambda c: {"max_abs_y": c.max_abs_y * (1 - 1e-15)},
}


@pytest.mark.parametrize("statement", FALSE)
def test_a_false_claim_fails_even_with_its_own_digest(statement: str, small: Certificate) -> None:
    false = dataclasses.replace(small, **FALSE[statement](small))
    false = dataclasses.replace(false, digest=false._digest())
    failed = [f.statement for f in false.verify().findings if not f.holds]
    assert any(text.startswith(statement) for text in failed)
    assert "nothing was changed since it was made" not in failed


@pytest.mark.parametrize("name", TABLE)
def test_architectures_survive_json(name: str) -> None:
    arch = TABLE[name].arch
    assert rebuild(json.loads(json.dumps(describe(arch)))) == arch


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"layer": "system", "command": "true"}, "a layer 'system' that lnkernel does not know"),
        ({"layer": "Dense", "width": 0}, "width must be an integer"),
        ({"layer": "Dense", "height": 1}, '"architecture" has "height", which no Dense has'),
        ({"layer": "Dense", "width": 1}, 'no field "architecture.W_std"'),
        ([], "cannot be rebuilt"),
    ],
)
def test_no_architecture(data: Any, message: str) -> None:
    with pytest.raises(CertificateError, match=message):
        rebuild(data)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"lnkernel certificate": 99}'])
def test_no_certificate(text: str, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "c.json").write_text(text)
    assert cli.main(["verify", str(tmp_path / "c.json")]) == 2
    printed = capsys.readouterr()
    assert "Name a file that Certificate.save wrote" in printed.err and printed.out == ""


def nested(depth: int) -> dict[str, Any]:
    """Compositions inside of each other."""
    layer: dict[str, Any] = {"layer": "Dense", "width": 1}
    for _ in range(depth):
        layer = {"layer": "Serial", "layers": [layer]}
    return layer


MALFORMED = {
    "fewer targets": (lambda c: {"y": c["y"][:1]}, "X has 6 points and y has 1 targets"),
    "fewer points": (lambda c: {"X": c["X"][:1]}, "X has 1 points and y has 6 targets"),
    "no number": (lambda c: {"lambda_min_lower": "nan"}, "lambda_min_lower is nan"),
    "infinity": (lambda c: {"C": [c["C"][0], "inf"]}, "C, upper is inf"),
    "no float64": (
        lambda c: {"rkhs_upper": "0x1p9999"},
        'field "rkhs_upper" is "0x1p9999", and should be a number of float64',
    ),
    "no number of points": (lambda c: {"n": 10**400}, 'field "n" is 1000'),
    "uneven rows": (lambda c: {"X": [*c["X"], ["0x0p+0"] * 9]}, '"X" has rows of 2 and of 9'),
    "one end": (lambda c: {"C": c["C"][:1]}, '"C" has 1 numbers, and should have both ends'),
    "another format": (lambda c: {"lnkernel certificate": 1}, "is 1, and should be 2"),
    "tolerance": (lambda c: {"rtol": (2.0).hex()}, "rtol is 2.0"),
    "depth": (lambda c: {"architecture": nested(300)}, "cannot be rebuilt"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_wrong_use(
    name: str, small: Certificate, tmp_path: Path, capsys: Any
) -> None:
    """A certificate that is refuted has exit code 1; what is none has 2."""
    change, message = MALFORMED[name]
    path = tmp_path / "c.json"
    small.save(path)
    data = json.loads(path.read_text())
    path.write_text(json.dumps(data | change(data)))
    assert cli.main(["verify", str(path)]) == 2
    printed = capsys.readouterr()
    assert message in printed.err and printed.out == ""


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """A certificate of each kind, as its file holds it."""
    inner = lnk.residual(lnk.LayerNorm(eps=0.1), lnk.LeakyRelu(0.1), lnk.Dense(8))
    of_sum = lnk.serial(lnk.Dense(8), inner, lnk.LayerNorm(), lnk.Dense(1))
    images = np.random.default_rng(0).normal(size=(2, 3, 3, 1))
    path, content = tmp_path_factory.mktemp("kinds") / "c.json", {}
    for kind, made in {
        "dense": certify_bound(EXAMPLE, [[1.0], [2.0]], [0.0, 1.0]),
        "noise": certify_bound(of_sum, [[1.0, 0.5], [2.0, -1.0]], np.eye(2), noise=[0.1, 0.2]),
        "images": certify_bound(lnk.cnn(1, norm="first"), images, [0.0, 1.0]),
    }.items():
        made.save(path)
        content[kind] = json.loads(path.read_text())
    return content


def places(value: Any, start: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every field of a JSON file, and the ends of lists."""
    inner = value.items() if isinstance(value, dict) else ()
    if isinstance(value, list):
        inner = ((i, value[i]) for i in sorted({0, len(value) - 1}))
    for key, part in inner:
        yield (*start, key)
        yield from places(part, (*start, key))


def is_a_form_of(value: Any, found: Any) -> bool:
    """Whether it could stand there in a certificate, of other numbers or words."""
    if isinstance(value, str) and isinstance(found, str):
        return not found.startswith(("0x", "-0x"))
    return value == {} and isinstance(found, dict)  # versions that made it


WRONG = {"null": None, "text": "a text", "list": [], "of lists": [[]], "number": 0.5, "fields": {}}
PYTHON = re.compile(r"\w+Error|NoneType|argument|object|attribute|convert|reshape|Traceback")


@pytest.mark.parametrize("wrong", [*WRONG, "missing"])
@pytest.mark.parametrize("kind", ["dense", "noise", "images"])
def test_a_field_that_cannot_be_is_named(
    kind: str, wrong: str, saved: dict[str, dict[str, Any]], tmp_path: Path, capsys: Any
) -> None:
    path = tmp_path / "c.json"
    for place in places(saved[kind]):
        content = copy.deepcopy(saved[kind])
        *outer, last = place
        part = functools.reduce(operator.getitem, outer, content)
        if wrong == "missing":
            if isinstance(last, int) or outer == ["made with"]:  # a list is shorter; free words
                continue
            del part[last]
        elif is_a_form_of(WRONG[wrong], part[last]) or (wrong == "null" and last == "strides"):
            continue
        else:
            part[last] = WRONG[wrong]
        path.write_text(json.dumps(content))
        assert cli.main(["verify", str(path)]) == 2, place
        printed = capsys.readouterr()
        name = [key for key in place if isinstance(key, str)][-1]
        assert name in printed.err.replace(str(path), "") and printed.out == "", place
        assert not PYTHON.search(printed.err), printed.err


def test_a_place_within_a_field_is_named_once() -> None:
    with pytest.raises(FieldError, match=r'^its field "X", row 0, entry 1, is null, and should'):
        take({"X": [["0x1p+0", None]]}, "X", rows)
    with pytest.raises(
        FieldError, match=r'^its field "X" is an empty list, and should be a list w'
    ):
        take({"X": []}, "X", rows)


def test_a_certificate_from_standard_input(
    small: Certificate, monkeypatch: Any, capsys: Any
) -> None:
    content = json.dumps(small._content() | {"digest": small.digest}).encode()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert cli.main(["verify", "-"]) == 0
    assert capsys.readouterr().out.startswith("standard input: ")


@pytest.mark.parametrize("content", [b"\xff\xfe\xfa", b"[1,", b"NaN", b"3"])
def test_no_certificate_in_plain_words(content: bytes, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "c.json").write_bytes(content)
    assert cli.main(["verify", str(tmp_path / "c.json")]) == 2
    assert not PYTHON.search(capsys.readouterr().err)


def test_brackets_without_end(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "c.json"
    path.write_text("[" * 100_000)
    assert cli.main(["verify", str(path)]) == 2
    assert "nested too deeply" in capsys.readouterr().err


def test_a_number_without_end(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "c.json"
    path.write_text("1" * 10_000)
    assert cli.main(["verify", str(path)]) == 2
    assert "is not a JSON file" in capsys.readouterr().err


def test_no_file(capsys: Any) -> None:
    assert cli.main(["verify", "nowhere.json", "--json"]) == 2
    printed = capsys.readouterr()
    assert (
        "nowhere.json: there is no such file. Correct its name" in printed.err and printed.out == ""
    )


def test_one_point_has_rkhs_at_most_sharp() -> None:
    """There the two are equal, and only one of them carries slack."""
    made = certify_bound(lnk.mlp(norm="first"), [[1.0]], [2.0])
    assert made.rkhs_upper <= made.sharp_upper
    assert bool(made.verify())
