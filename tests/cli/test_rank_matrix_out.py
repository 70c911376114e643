"""`mpirun -n R poisson run --matrix-out`: one file of the system of all ranks."""

import numpy as np
import pytest
from test_matrix_out import GENERAL, read_matrix, read_vector
from ranks import errors_told, on_ranks, pytestmark  # noqa: F401

FILES = ("A.mtx", "A_rhs.mtx")


def both(poisson, config, n, *settings, name="A.mtx"):
    words = ("run", config, "--backend", "cpu", "--overwrite", *(f"--set={s}" for s in settings), "--matrix-out")
    poisson(*words, f"one_{name}", "--output", "one", "--quiet")
    done = on_ranks(poisson, n, *words, f"ranks_{name}", "--output", "ranks")
    assert done.stdout.count(f"system in ranks_{name}") == 1
    return poisson.directory / f"one_{name}", poisson.directory / f"ranks_{name}"


def compare(one, other):
    """The same lines; values to rounding, since ranks add up cells in another order."""
    (a, lines), (b, other_lines) = read_matrix(one), read_matrix(other)
    assert [line.split()[:2] for line in lines[2:]] == [line.split()[:2] for line in other_lines[2:]] and lines[1] == other_lines[1]
    assert np.abs(a - b).max() <= 1e-14 * np.abs(a).max()
    names = (path.with_name(path.name.split(".")[0] + "_rhs.mtx") for path in (one, other))
    x, y = (read_vector(path) for path in names)
    assert np.abs(x - y).max() <= 1e-13 * np.abs(x).max()


@pytest.mark.parametrize("n, settings", [(2, ["matrix.format=csr"]), (3, ["matrix.format=auto"]), (5, ["problem.element.order=2"])])
def test_a_box(poisson, n, settings):
    compare(*both(poisson, poisson.write(GENERAL), n, *settings))


@pytest.mark.parametrize("settings", [["matrix.format=half_cds"], ["matrix.format=matrix_free", "problem.coefficient='2'"]])
def test_blocks_that_were_assembled_where_they_are_solved(poisson, settings):
    compare(*both(poisson, poisson.write(GENERAL), 3, "problem.mesh.cells=[9, 8, 10]", *settings))


@pytest.mark.parametrize("mesh", ["{generator: hyper_ball, refinements: 1}", "{generator: hyper_cube, refinements: 2}"])
def test_other_meshes(poisson, mesh):
    config = poisson.write(f'problem: {{mesh: {mesh}, source: "1 + x", boundary: [{{ids: all, type: dirichlet, value: "y"}}]}}\n')
    compare(*both(poisson, config, 3, name="A.mtx.gz"))


def test_periodic_boundaries_and_singular_systems(poisson):
    config = poisson.write("""
problem:
  mesh: {cells: [5, 4, 6]}
  source: "cos(2*pi*x)"
  boundary: [{ids: [0, 1], type: periodic, value: "1"}, {ids: [2, 3], type: periodic}, {ids: all, type: neumann, value: "0"}]
""")
    compare(*both(poisson, config, 3))


def test_many_rows_are_written_in_turns(poisson):
    config = poisson.write(GENERAL)
    compare_lines = both(poisson, config, 3, "problem.mesh.cells=[28, 27, 26]", "matrix.format=csr", "output.vtk.enabled=false")
    one, other = (path.read_text().splitlines() for path in compare_lines)
    assert len(one) == len(other) > 100000 and one[2] == other[2]
    assert all(a.split()[:2] == b.split()[:2] for a, b in zip(one, other))


def test_what_is_wrong_is_told_once_and_leaves_no_file(poisson):
    config = poisson.write(GENERAL)
    (poisson.directory / "mine.mtx").write_text("mine")
    for name, code, told in (("mine.mtx", 1, "no run of poisson has written it"), ("no/such/A.mtx", 3, "no/such")):
        done = on_ranks(poisson, 2, "run", config, "--output", "out", "--backend", "cpu", "--matrix-out", name, "--overwrite", code=code)
        assert len(errors_told(done)) == 1 and told in done.stderr
    assert (poisson.directory / "mine.mtx").read_text() == "mine"
    assert sorted(path.name for path in poisson.directory.glob("*.mtx*")) == ["mine.mtx"]
