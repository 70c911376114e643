"""ic0 and ilu0 on several ranks: the factors of one rank, so that iterations are those of one, too."""

import re

import pytest
from conftest import ROOT
from test_rank_lattices import SHELL
from test_rank_periodic import X, Y, box
from ranks import VARIED, both, errors_told, on_ranks, pytestmark, residuals  # noqa: F401

NO_FILES = ("output.picture=false", "output.vtk.enabled=false")
TWO_MATERIALS = f"""
problem:
  mesh: {{file: {ROOT / "meshes/two_materials.msh"}}}
  source: "1 + x"
  boundary: [{{ids: all, type: dirichlet, value: "y"}}]
"""


def compare(poisson, one, other, rel=1e-8):
    for key in ("status", "dofs", "nnz"):
        assert other[key] == one[key], key
    for key in ("preconditioner", "ordering", "levels"):
        assert other["solver"][key] == one["solver"][key], key
    assert abs(other["solver"]["iterations"] - one["solver"]["iterations"]) <= 1 and other["solver"]["residual_true"] <= 3e-12
    for a, b in list(zip(residuals(poisson, "one"), residuals(poisson, "ranks")))[:10]:
        assert b == pytest.approx(a, rel=rel)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("settings", [("matrix.format=half_cds", "solver.ordering=natural"), ("matrix.format=cod_sell", "solver.ordering=multicolor"),
                                      ("problem.element.order=2", "problem.mesh.cells=[7, 6, 5]", "solver.ordering=natural")], ids=["half_cds", "colors", "order 2"])
def test_a_box(poisson, n, settings):
    compare(poisson, *both(poisson, VARIED, n, *NO_FILES, "solver.preconditioner=ic0", *settings))


@pytest.mark.parametrize("text, n", [(SHELL, 3), (SHELL, 2), (TWO_MATERIALS, 3), (box([5, 6, 4], [X, Y]), 3)],
                         ids=["shell", "shell on 2", "file", "periodic"])
@pytest.mark.parametrize("ordering", ["natural", "multicolor"])
def test_other_meshes(poisson, text, n, ordering):
    settings = ["problem.mesh.refinements=3"] if text == SHELL else []
    compare(poisson, *both(poisson, text, n, *NO_FILES, "solver.preconditioner=ic0", f"solver.ordering={ordering}", *settings))


@pytest.mark.parametrize("precision", ["refined", "mixed", "double_double"])
def test_precisions(poisson, precision):
    one, other = both(poisson, VARIED, 3, *NO_FILES, "solver.preconditioner=ilu0", "solver.ordering=natural", f"solver.precision={precision}",
                      "solver.tolerance=1e-20")
    compare(poisson, one, other)
    assert other["solver"]["residual_true"] <= 2e-20


def test_an_unsymmetric_matrix(poisson):
    """bicgstab with ilu0, whose rows are those of a file, in blocks; one rank has the smallest of them."""
    entries = [(i, i, 4 + i % 3) for i in range(1, 61)] + [(i, i + 1, 1) for i in range(1, 60)] + [(i + 9, i, -1.5) for i in range(1, 52)]
    poisson.write("%%MatrixMarket matrix coordinate real general\n60 60 " + f"{len(entries)}\n" +
                  "".join(f"{i} {j} {v}\n" for i, j, v in entries), "u.mtx")
    words = ("solve", "--matrix", "u.mtx", "--backend", "cpu", "--quiet", "--set", "solver.method=bicgstab", "--set",
             "solver.preconditioner=ilu0", "--output")
    poisson(*words, "one")
    on_ranks(poisson, 4, *words, "ranks")
    compare(poisson, poisson.record("one"), poisson.record("ranks"))


def test_a_bad_pivot_is_told_as_by_one_rank(poisson):
    n = 40
    entries = [(i, i, 2 if i != 23 else -2) for i in range(1, n + 1)] + [(i + 1, i, -0.5) for i in range(1, n)]
    poisson.write(f"%%MatrixMarket matrix coordinate real symmetric\n{n} {n} {len(entries)}\n" +
                  "".join(f"{i} {j} {v}\n" for i, j, v in entries), "bad.mtx")
    words = ("solve", "--matrix", "bad.mtx", "--backend", "cpu", "--set", "solver.preconditioner=ic0", "--output")
    alone, done = poisson(*words, "one", code=2), on_ranks(poisson, 3, *words, "ranks", code=2)
    one, other = poisson.record("one"), poisson.record("ranks")
    assert one["status"] == other["status"] == "breakdown"
    assert one["reason"] == other["reason"] and "row 23" in one["reason"], (one["reason"], other["reason"])
    assert re.sub(r"[\d.]+", "", alone.stdout).count("breakdown") == re.sub(r"[\d.]+", "", done.stdout).count("breakdown")
    assert not errors_told(done)
