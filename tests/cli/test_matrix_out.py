"""`poisson run --matrix-out`: the system as it was solved, which `poisson solve` solves again."""

import gzip
import resource

import numpy as np
import pytest
from conftest import CUBE, ROOT, array, read_solution

# Values that differ on the boundary, a coefficient that varies, all three conditions.
GENERAL = """
problem:
  mesh: {generator: box, cells: [6, 5, 4]}
  coefficient: "1 + x"
  source: "exp(y)"
  boundary:
    - {ids: [0], type: dirichlet, value: "2 + y"}
    - {ids: [1], type: neumann, value: "z"}
    - {ids: all, type: robin, alpha: "3", value: "x"}
"""


def read_matrix(path):
    """The dense matrix of a file in coordinate real symmetric, and its lines."""
    lines = (gzip.open(path, "rt") if path.suffix == ".gz" else open(path)).read().splitlines()
    assert lines[0] == "%%MatrixMarket matrix coordinate real symmetric" and lines[1].startswith("% written by poisson ")
    n, columns, entries = map(int, lines[2].split())
    assert n == columns and len(lines) == 3 + entries
    dense = np.zeros((n, n))
    for line in lines[3:]:
        i, j, value = line.split()
        i, j = int(i) - 1, int(j) - 1
        assert i >= j and len(value.lstrip("-").split("e")[0]) == 18  # a digit, a point, and 16 digits
        dense[i, j] = dense[j, i] = float(value)
    return dense, lines


def read_vector(path):
    lines = [line for line in open(path).read().splitlines() if not line.startswith("%")]
    n, columns = map(int, lines[0].split())
    assert columns == 1 and len(lines) == 1 + n
    return np.array([float(line) for line in lines[1:]])


@pytest.mark.parametrize("name", ["A.mtx", "A.mtx.gz"])
def test_solve_repeats_the_run(cube, name):
    poisson, config = cube
    done = poisson("run", config, "--output", "out", "--matrix-out", name, "--set", "matrix.format=half_cds",
                   "--set", "solver.preconditioner=none", "--set", "problem.source=x + y*z")
    assert name in done.stdout and "A_rhs.mtx" in done.stdout
    assert (poisson.directory / name).read_bytes().startswith(b"\x1f\x8b") == name.endswith(".gz")
    poisson("solve", "--matrix", name, "--rhs", "A_rhs.mtx", "--output", "again", "--set", "matrix.format=half_cds",
            "--set", "solver.preconditioner=none")
    run, solve = poisson.record(), poisson.record("again")
    assert solve["status"] == "converged" and solve["dofs"] == run["dofs"] and solve["nnz"] == run["nnz"]
    assert solve["solver"]["iterations"] == run["solver"]["iterations"] > 10
    x = read_vector(poisson.directory / "again/solution.mtx")
    u = array(read_solution(poisson.directory / "out").GetPointData(), "u")
    assert np.abs(x - u).max() < 1e-12  # the values on the boundary are zero, so that x is u
    assert x.min() == pytest.approx(run["quantities"]["min"], abs=1e-12)
    assert x.max() == pytest.approx(run["quantities"]["max"], rel=1e-12)
    assert run["fingerprint"] in read_matrix(poisson.directory / name)[1][1]


SYSTEMS = {"csr": ["matrix.format=csr"], "sliced": ["matrix.format=sell_c_sigma"], "half_cds": ["matrix.format=half_cds"],
           "converted": ["matrix.format=half_cds", "matrix.conversion=host"], "free": ["matrix.format=matrix_free"]}


@pytest.mark.parametrize("mesh", ["{generator: box, cells: [6, 5, 4]}", "{generator: hyper_cube, refinements: 2}"], ids=["box", "lattice"])
@pytest.mark.parametrize("order", [1, 2])
def test_the_system_does_not_depend_on_how_it_is_stored(poisson, mesh, order):
    text = GENERAL.replace("{generator: box, cells: [6, 5, 4]}", mesh) + f"  element: {{order: {order}}}\n"
    if "hyper_cube" in mesh:  # all its faces have the id 0
        text = text.replace("    - {ids: [1], type: neumann, value: \"z\"}\n    - {ids: all, type: robin, alpha: \"3\", value: \"x\"}\n", "")
    config = poisson.write(text)
    matrices, vectors = {}, {}
    # A lattice's unknowns have no diagonals to convert to, and those of order 2 none to assemble.
    systems = {name: sets for name, sets in SYSTEMS.items()
               if "box" in mesh or name != "converted" and (name != "half_cds" or order == 1)}
    for name, sets in systems.items():
        words = [word for text in sets for word in ("--set", text)]
        poisson("run", config, "--output", f"out_{name}", "--matrix-out", f"{name}.mtx", "--quiet", "--set", "output.vtk.enabled=false",
                "--set", "output.picture=false", *words)
        matrices[name], _ = read_matrix(poisson.directory / f"{name}.mtx")
        vectors[name] = read_vector(poisson.directory / f"{name}_rhs.mtx")
    matrix, vector = matrices["csr"], vectors["csr"]
    assert np.linalg.eigvalsh(matrix).min() > 0 and np.abs(vector).max() > 0
    for name in systems:
        assert np.abs(matrices[name] - matrix).max() < 1e-13 * np.abs(matrix).max(), name
        assert np.abs(vectors[name] - vector).max() < 1e-13 * np.abs(vector).max(), name


def test_values_on_the_boundary_are_eliminated(poisson):
    config = poisson.write(GENERAL)
    poisson("run", config, "--output", "out", "--matrix-out", "A.mtx", "--quiet")
    matrix, _ = read_matrix(poisson.directory / "A.mtx")
    rhs = read_vector(poisson.directory / "A_rhs.mtx")
    grid = read_solution(poisson.directory / "out")
    u = array(grid.GetPointData(), "u")
    fixed = np.array([grid.GetPoint(i)[0] == 0 for i in range(grid.GetNumberOfPoints())])
    assert fixed.sum() == 30 and np.all(rhs[fixed] == 0)
    assert np.count_nonzero(matrix[fixed]) == fixed.sum() and np.all(matrix.diagonal() > 0)
    x = np.linalg.solve(matrix, rhs)
    assert np.abs(x - u)[~fixed].max() < 1e-10 and np.all(x[fixed] == 0) and u[fixed].min() == 2


def test_a_mesh_with_refinement_and_without(poisson):
    for refinements in (0, 1):
        poisson.write(f"problem: {{mesh: {{file: '{ROOT}/meshes/ball.msh', refinements: {refinements}}}, source: 1, "
                      "boundary: [{ids: all, type: dirichlet}]}")
        poisson("run", "case.yaml", "--output", "out", "--matrix-out", "A.mtx", "--overwrite", "--quiet")
        poisson("solve", "--matrix", "A.mtx", "--rhs", "A_rhs.mtx", "--output", "again", "--overwrite", "--quiet")
        x = read_vector(poisson.directory / "again/solution.mtx")
        assert x.max() == pytest.approx(poisson.record()["quantities"]["max"], rel=1e-9)


def test_a_failing_solve_leaves_the_system(cube):
    poisson, config = cube
    poisson("run", config, "--output", "out", "--matrix-out", "A.mtx", "--set", "solver.max_iterations=1",
            "--set", "solver.preconditioner=none", "--set", "problem.source=x", "--quiet", code=2)
    assert read_matrix(poisson.directory / "A.mtx")[0].shape == (729, 729)


def test_files_are_replaced_only_when_they_are_ours(cube):
    poisson, config = cube
    words = ["run", config, "--output", "out", "--quiet", "--set", "output.picture=false"]
    poisson(*words, "--matrix-out", "A.mtx")
    first = (poisson.directory / "A.mtx").read_bytes()
    error = poisson("run", config, "--output", "other", "--matrix-out", "A.mtx", code=1).stderr
    assert "A.mtx' is there from an earlier run" in error and "--overwrite" in error and not (poisson.directory / "other").exists()
    poisson(*words, "--matrix-out", "A.mtx", "--overwrite", "--set", "problem.coefficient=2")
    assert (poisson.directory / "A.mtx").read_bytes() != first
    foreign = "%%MatrixMarket matrix array real general\n% of somebody else\n1 1\n1\n"
    for name, target in (("B.mtx", "B.mtx"), ("B_rhs.mtx", "B.mtx"), ("C.mtx.gz", "C.mtx.gz"), ("D_rhs.mtx", "D.mtx.gz")):
        path = poisson.write(gzip.compress(foreign.encode()) if name.endswith(".gz") else foreign, name)
        before = path.read_bytes()
        error = poisson(*words, "--matrix-out", target, "--overwrite", code=1).stderr
        assert f"'{name}' is there, and no run of poisson has written it" in error
        assert path.read_bytes() == before
        path.unlink()
    assert poisson.record()["status"] == "converged"


def test_places_and_names(cube):
    poisson, config = cube
    for name in ("A", "A.txt", "A.gz", ".mtx", ""):
        assert f"must name a file that ends in .mtx or .mtx.gz, found '{name}'" in poisson("run", config, "--matrix-out", name, code=1).stderr
    assert "missing/A.mtx" in poisson("run", config, "--output", "out", "--matrix-out", "missing/A.mtx", code=3).stderr
    assert not (poisson.directory / "out").exists()
    poisson("run", config, "--output", "out", "--matrix-out", "out/A.mtx", "--quiet")
    poisson("run", config, "--output", "out", "--matrix-out", "out/A.mtx", "--quiet", "--overwrite")
    assert (poisson.directory / "out/A_rhs.mtx").exists()
    for command in ("check", "sweep"):
        assert "matrix-out" in poisson(command, config, "--matrix-out", "A.mtx", code=1).stderr


def test_a_file_that_does_not_fit(cube):
    """A limit on the size of files ends the write of the matrix, not the run: the solution is written."""
    poisson, config = cube
    limit = 100_000
    done = poisson("run", config, "--output", "out", "--matrix-out", "A.mtx", "--set", "output.picture=false", code=3,
                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert "cannot write 'A.mtx'" in done.stderr
    assert not (poisson.directory / "A.mtx").exists() and not list(poisson.directory.glob(".A*"))
    assert poisson.record()["exit_code"] == 3 and poisson.record()["quantities"]["max"] > 0.9
