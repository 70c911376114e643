"""analysis.svd of runs: known spectra, known ranks, and that no analysis costs the solution."""

import csv
import itertools
import json
import signal
import subprocess

import numpy as np
import pytest
from conftest import CUBE, array, read_solution, read_vtk, solution_file

QUIET = "output: {picture: false}\n"


def table(poisson, name, directory="out"):
    with open(poisson.directory / directory / name) as f:
        rows = list(csv.DictReader(f))
    return {key: np.array([float(row[key]) for row in rows if row[key]]) for key in rows[0]}


def read_vti(path):
    from vtkmodules.vtkIOXML import vtkXMLImageDataReader

    reader = vtkXMLImageDataReader()
    reader.SetFileName(str(path))
    reader.Update()
    assert reader.GetErrorCode() == 0
    image = reader.GetOutput()
    points = np.array([image.GetPoint(i) for i in range(image.GetNumberOfPoints())])
    return image, points


def problem(boundary, mesh="{generator: box, cells: [4, 4, 4]}", source="0", more="", analysis="", order=1):
    return (f'problem:\n  mesh: {mesh}\n  element: {{order: {order}}}\n  source: "{source}"\n  boundary:\n    - {boundary}\n'
            f"{more}analysis:\n  svd:\n    - {analysis}\n")


# --- operator


def box_eigenvalues(cells, extent):
    """Of the Q1 stiffness matrix of the Laplacian on a box with Dirichlet conditions, from those of one direction:
    K = tridiag(-1, 2, -1) / h and M = h tridiag(1, 4, 1) / 6 are both diagonal in sines. Descending, with the wave numbers."""
    stiffness, mass = [], []
    for n, length in zip(cells, extent):
        h = length / n
        theta = np.pi * np.arange(1, n) / n
        stiffness.append((2 - 2 * np.cos(theta)) / h)
        mass.append(h / 6 * (4 + 2 * np.cos(theta)))
    values = [(stiffness[0][i] * mass[1][j] * mass[2][k] + mass[0][i] * stiffness[1][j] * mass[2][k] + mass[0][i] * mass[1][j] * stiffness[2][k], (i + 1, j + 1, k + 1))
              for i, j, k in itertools.product(*(range(n - 1) for n in cells))]
    values.sort(reverse=True)
    return np.array([value for value, _ in values]), [waves for _, waves in values]


def test_operator_of_a_box_has_its_closed_form_values(poisson):
    mesh = "{generator: box, cells: [4, 5, 6], extent: [1, 2, 0.5]}"
    poisson.write(problem('{ids: all, type: dirichlet, value: "0"}', mesh, "x*y + 1", analysis="{of: operator, modes: 2}"))
    done = poisson("run", "case.yaml", "--output", "out")
    expected, waves = box_eigenvalues((4, 5, 6), (1, 2, 0.5))
    values = table(poisson, "svd0_operator_values.csv")["singular_value"]
    assert len(values) == 3 * 4 * 5 and np.abs(values - expected).max() < 1e-13 * expected[0]
    (entry,) = poisson.record()["analysis"]
    assert entry["of"] == "operator" and entry["n"] == 60 and entry["rank"] == 60 and entry["distance_to_symmetry"] < 1e-15
    assert abs(entry["condition"] - expected[0] / expected[-1]) < 1e-10 * entry["condition"]
    assert entry["null_space"]["dimension"] == 0
    assert entry["singular_values_file"] == "svd0_operator_values.csv"
    assert set(entry["seconds"]) == {"reduce", "chase", "bidiagonal", "back", "total"}
    assert max(entry["orthogonality_u"], entry["orthogonality_v"], entry["residual"]) < 1e-12
    assert "condition" in done.stdout and "cg has to reach" in done.stdout

    modes = read_vtk(poisson.directory / "out/svd0_operator_modes.vtu")
    points = np.array([modes.GetPoint(i) for i in range(modes.GetNumberOfPoints())])
    x, y, z = points.T
    for name, (i, j, k) in (("smallest_1", waves[-1]), ("largest_1", waves[0])):
        wave = np.sin(i * np.pi * x) * np.sin(j * np.pi * y / 2) * np.sin(k * np.pi * z / 0.5)
        mode = array(modes.GetPointData(), name)
        assert abs(abs(mode @ wave) / np.linalg.norm(mode) / np.linalg.norm(wave) - 1) < 1e-10
    for name in ("largest_1", "largest_2", "smallest_1", "smallest_2"):
        assert abs(np.abs(array(modes.GetPointData(), name)).max() - 1) < 1e-14


@pytest.mark.parametrize("preconditioner", ["none", "jacobi"])
def test_cg_stays_below_its_bound(poisson, preconditioner):
    text = problem('{ids: all, type: dirichlet, value: "0"}', source="exp(3*x)*y", more='  coefficient: "1 + 100*x*y"\n',
                   analysis="{of: operator, modes: 0}")
    poisson.write(text + QUIET)
    poisson("run", "case.yaml", "--output", "out", "--set", f"solver.preconditioner={preconditioner}",
            "--set", "problem.mesh.cells=[6, 6, 6]")
    columns = table(poisson, "svd0_operator_convergence.csv")
    history = table(poisson, "residuals.csv")["relative_residual"]
    assert (columns["relative_residual"] == history).all() and len(history) > 8
    assert (history <= columns["residual_bound"] * (1 + 1e-10)).all()
    (entry,) = poisson.record()["analysis"]
    assert entry["cg"]["iterations"] == len(history) - 1 <= entry["cg"]["bound_iterations"]
    if preconditioner == "jacobi":
        assert entry["cg"]["condition"] < 0.5 * entry["condition"]
    else:
        assert entry["cg"]["condition"] == entry["condition"]
    assert "svd0_operator_modes.vtu" not in poisson.record()["files"]
    assert not list(poisson.directory.glob("out/*.png"))


def test_pure_neumann_has_the_constants(poisson):
    poisson.write(problem('{ids: all, type: neumann, value: "0"}', source="cos(pi*x)", analysis="{of: operator, modes: 1}") + QUIET)
    done = poisson("run", "case.yaml", "--output", "out")
    (entry,) = poisson.record()["analysis"]
    assert entry["n"] == 125 and entry["rank"] == 124 and entry["null_space"]["dimension"] == entry["null_space"]["expected"] == 1
    assert abs(entry["null_space"]["cosine_to_constant"] - 1) < 1e-12
    assert entry["condition"] < 1e4, "the null space does not count"
    assert "null space of dimension 1, the constants" in done.stdout
    values = table(poisson, "svd0_operator_values.csv")["singular_value"]
    assert values[-1] < 1e-14 * values[0] * 125


# --- field


def test_separable_solution_has_rank_one(poisson):
    config = poisson.write(CUBE + "analysis: {svd: [{of: field, points: 33}, {of: field, sample: box, points: 9}]}\n")
    done = poisson("run", config, "--output", "out", "--set", "output.picture_formats=[pdf]")
    plane, box = poisson.record()["analysis"]
    assert plane["rank"] == 1 and plane["n"] == 33 and plane["normal"] == "z" and plane["at"] == 0.5
    assert box["rank"] == [1, 1, 1] and box["points_outside"] == 0
    assert all(entry[key] < 1e-12 for entry in (plane, box) for key in ("orthogonality_u", "orthogonality_v", "residual"))
    assert plane["error_reached"] < 1e-12 and box["error_reached"] < 1e-12
    assert "rank 1 of 33" in done.stdout
    spectrum = table(poisson, "svd0_field_values.csv")
    assert spectrum["error_of_rank"][0] < 1e-12 and len(spectrum["singular_value"]) == 33
    assert {"singular_value_x", "error_of_rank_z"} <= set(table(poisson, "svd1_field_values.csv"))
    assert {"svd0_field_spectrum.png", "svd0_field_spectrum.pdf", "svd0_field_rank.vti", "svd1_field_rank.vti"} <= set(poisson.record()["files"])


# u = x y + z is harmonic and trilinear: the solution is exact, and its ranks are known.
HARMONIC = problem('{ids: all, type: dirichlet, value: "x*y + z"}', mesh="{generator: box, cells: [3, 4, 5], origin: [0, 1, 2]}",
                   analysis="{of: field, points: 8, at: 2.25, error: 1e-9}\n    - {of: field, sample: box, points: 6}\n"
                            "    - {of: field, points: 5, normal: x, at: 1}\n    - {of: field, points: 5, normal: y}") + QUIET


def test_ranks_and_values_of_a_known_field(poisson):
    poisson.write(HARMONIC)
    poisson("run", "case.yaml", "--output", "out")
    entries = poisson.record()["analysis"]
    assert [entry["rank"] for entry in entries] == [2, [2, 2, 2], 2, 2]
    for i, entry in enumerate(entries):
        image, points = read_vti(poisson.directory / f"out/svd{i}_field_rank.vti")
        x, y, z = points.T
        data = image.GetPointData()
        assert np.abs(array(data, "u") - (x * y + z)).max() < 1e-9
        assert np.abs(array(data, "rank_r") - (x * y + z)).max() < 1e-9
        assert np.abs(array(data, "error") - (array(data, "u") - array(data, "rank_r"))).max() < 1e-15
        assert (array(data, "inside") == 1).all()
        assert points.min(axis=0)[1] >= 1 and points.max(axis=0)[2] <= 3
    assert np.ptp(read_vti(poisson.directory / "out/svd2_field_rank.vti")[1][:, 0]) == 0


def test_smallest_rank_for_an_error(poisson):
    config = poisson.write(CUBE.replace("3*pi^2*sin(pi*x)*sin(pi*y)*sin(pi*z)", "exp(-20*((x-y)^2 + (z-0.3)^2))").replace(
        '  exact: "sin(pi*x)*sin(pi*y)*sin(pi*z)"\n', "") + QUIET +
        "analysis: {svd: [{of: field, points: 33, error: 1e-3}, {of: field, sample: box, points: 17, error: 1e-3}]}\n")
    poisson("run", config, "--output", "out")
    plane, box = poisson.record()["analysis"]
    errors = table(poisson, "svd0_field_values.csv")["error_of_rank"]
    r = plane["rank"]
    assert 1 < r < 17 and errors[r - 1] <= 1e-3 < errors[r - 2]
    assert abs(plane["error_reached"] - errors[r - 1]) < 1e-10
    assert box["error_reached"] <= 1e-3 and max(box["rank"]) < 9
    image, _ = read_vti(poisson.directory / "out/svd0_field_rank.vti")
    data = image.GetPointData()
    u = array(data, "u").reshape(33, 33)
    assert np.linalg.matrix_rank(array(data, "rank_r").reshape(33, 33), tol=1e-9) == r
    assert np.allclose(np.linalg.svd(u, compute_uv=False), table(poisson, "svd0_field_values.csv")["singular_value"], atol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_points_outside_a_curved_mesh(poisson, order):
    # linear functions are reproduced on every mesh
    poisson.write(problem('{ids: all, type: dirichlet, value: "x + 2*y - z"}', mesh="{generator: hyper_ball, refinements: 1}",
                          analysis="{of: field, points: 12, at: 0.1}\n    - {of: field, sample: box, points: 10}", order=order) + QUIET)
    done = poisson("run", "case.yaml", "--output", "out")
    for i, entry in enumerate(poisson.record()["analysis"]):
        image, points = read_vti(poisson.directory / f"out/svd{i}_field_rank.vti")
        inside = array(image.GetPointData(), "inside") == 1
        radius = np.linalg.norm(points, axis=1)
        assert not inside[radius > 1 + 1e-6].any() and inside[radius < (0.8 if order == 1 else 0.98)].all()
        assert entry["points_outside"] == (~inside).sum() > 0
        u = array(image.GetPointData(), "u")
        assert (u[~inside] == 0).all()
        assert np.abs(u - points @ [1, 2, -1])[inside].max() < 1e-9
    assert "outside the mesh and count as zero" in done.stdout


# --- what goes wrong


def test_a_failing_analysis_costs_nothing_else(poisson):
    config = poisson.write(CUBE + QUIET +
                           "analysis: {svd: [{of: field, at: 7}, {of: field, points: 5}]}\n")
    done = poisson("run", config, "--output", "out", code=1)
    assert "misses the mesh" in done.stderr
    record = poisson.record()
    assert record["status"] == "converged" and "solution.vti" in record["files"]
    assert "misses the mesh" in record["analysis"][0]["error"] and record["analysis"][1]["rank"] == 1
    assert solution_file(poisson.directory / "out").exists()


def test_no_free_unknown(poisson):
    poisson.write(problem('{ids: all, type: dirichlet, value: "x"}', mesh="{generator: box, cells: [1, 1, 1]}",
                          analysis="{of: operator}") + QUIET)
    assert "fixed by a Dirichlet condition" in poisson("run", "case.yaml", "--output", "out", code=1).stderr


def test_check_takes_what_run_takes(poisson):
    config = poisson.write(CUBE + "analysis: {svd: [{of: operator}, {of: field, error: 1e-3}, {of: snapshots}]}\n")
    text = poisson("check", config, "--verbose").stdout
    assert "{of: operator, modes: 4, max_dense: 4096}" in text
    poisson.write(text, "again.yaml")
    poisson("check", "again.yaml")
    assert "did you mean 'modes'" in poisson("check", config, "--set", "analysis.svd[0].mode=3", code=1).stderr


# --- snapshots

# Robin conditions on one side: the operator is affine in alpha, and so is the right-hand side (constant).
ROBIN = """
problem:
  mesh: {generator: box, cells: [6, 6, 6]}
  source: "1 + x"
  boundary:
    - {ids: [1], type: robin, alpha: "1", value: "0"}
    - {ids: all, type: dirichlet, value: "y"}
output: {picture: false}
analysis: {svd: [{of: snapshots, modes: 3, leave_out: 2}]}
sweep: {"problem.boundary[0].alpha": [0, 1, 2, 4, 8, 16]}
"""


def sweep_analysis(poisson, directory="out"):
    return json.loads((poisson.directory / directory / "sweep.json").read_text())


def test_modes_and_reduced_model_of_a_sweep(poisson):
    poisson.write(ROBIN)
    done = poisson("sweep", "case.yaml", "--output", "out", "--set", "output.picture=true")
    summary = sweep_analysis(poisson)
    (entry,) = summary["analysis"]
    assert entry["of"] == "snapshots" and entry["n"] == 343 and entry["snapshots"] == 5 and entry["left_out"] == 2 and entry["modes"] == 3
    assert set(entry["seconds"]) == {"reduce", "chase", "bidiagonal", "back", "total"}
    model = entry["reduced_model"]
    assert model["interpolation_degree"] == 1, "operator and right-hand side are affine in alpha"
    assert entry["projection_error"] <= model["error"] * (1 + 1e-9) < 1e-3
    assert abs(model["interpolated_error"] - model["error"]) < 1e-9
    assert max(entry["orthogonality_u"], entry["orthogonality_v"], entry["residual"]) < 1e-13
    assert "3 modes" in done.stdout and "problem.boundary[0].alpha = 2" in done.stdout

    columns = table(poisson, "svd0_snapshots_values.csv")
    assert len(columns["singular_value"]) == 5 and len(columns["projection_error"]) == 3
    assert (np.diff(columns["projection_error"]) < 0).all() and columns["projection_error"][-1] == entry["projection_error"]
    assert abs(columns["error_of_rank"][2] ** 2 - entry["energy_missed"]) < 1e-12
    with open(poisson.directory / "out/svd0_snapshots_coefficients.csv") as f:
        rows = list(csv.DictReader(f))
    assert [row["case"] for row in rows] == ["0", "1", "3", "4", "5", "2"] and rows[-1]["problem.boundary[0].alpha"] == "2"

    # the solutions are what modes and coefficients give
    grid = read_vtk(poisson.directory / "out/svd0_snapshots_modes.vtu")
    modes = grid.GetPointData()
    x = np.array([grid.GetPoint(i) for i in range(grid.GetNumberOfPoints())])
    fixed = (x[:, 0] < 1e-9) | (np.abs(x[:, 1:] - 0.5) > 0.5 - 1e-9).any(axis=1)
    for row in rows:
        case = next(c for c in summary["cases"] if str(c["case"]) == row["case"])
        u = array(read_solution(poisson.directory / "out" / case["directory"]).GetPointData(), "u")
        sum_of_modes = sum(float(row[f"mode_{k}"]) * array(modes, f"mode_{k}") for k in (1, 2, 3))
        assert np.abs(u - np.where(fixed, x[:, 1], sum_of_modes)).max() < 4e-3
        if row["case"] == "2":
            assert (u == array(modes, "left_out")).all()
            assert np.abs(array(modes, "reduced_model") + array(modes, "reduced_model_error") - u).max() < 1e-14
            assert np.abs(array(modes, "reduced_model_error")).max() < 1e-2
    assert {"svd0_snapshots_values.csv", "svd0_snapshots_spectrum.png", "svd0_snapshots_modes.vtu", "sweep.csv"} <= set(summary["files"])


def test_a_linear_family_has_rank_two(poisson):
    # u = u0 + value u1: two modes hold every case, and the reduced model is exact
    poisson.write(ROBIN.replace("modes: 3, leave_out: 2", "modes: 6").replace('"problem.boundary[0].alpha": [0, 1, 2, 4, 8, 16]',
                                                                              '"problem.boundary[0].value": [-1, 0, 2, 3]'))
    poisson("sweep", "case.yaml", "--output", "out")
    (entry,) = sweep_analysis(poisson)["analysis"]
    assert entry["modes"] <= 3 and entry["left_out"] == 2
    values = table(poisson, "svd0_snapshots_values.csv")["singular_value"]
    assert values[1] > 1e-4 * values[0] and values[2] < 1e-10 * values[0]
    assert entry["projection_error"] < 1e-10 and entry["reduced_model"]["error"] < 1e-8
    assert entry["reduced_model"]["interpolation_degree"] == 1 and entry["reduced_model"]["interpolated_error"] < 1e-8


def test_parameters_that_are_no_numbers(poisson):
    poisson.write(ROBIN.replace('"problem.boundary[0].alpha": [0, 1, 2, 4, 8, 16]', 'problem.source: ["x", "y", "x + y", "x - y"]'))
    done = poisson("sweep", "case.yaml", "--output", "out")
    (entry,) = sweep_analysis(poisson)["analysis"]
    # b is spanned by those of x, y and the boundary values: three of them give the fourth
    assert "interpolated_error" not in entry["reduced_model"] and entry["reduced_model"]["error"] < 1e-9
    assert "after" in done.stdout and "of projection" in done.stdout


def test_snapshots_of_a_neumann_problem(poisson):
    poisson.write(ROBIN.replace('- {ids: [1], type: robin, alpha: "1", value: "0"}', '- {ids: all, type: neumann, value: "0"}').replace(
        '    - {ids: all, type: dirichlet, value: "y"}\n', "").replace('source: "1 + x"', 'source: "cos(pi*x)"').replace(
        '"problem.boundary[0].alpha": [0, 1, 2, 4, 8, 16]', "problem.coefficient: [1, 2, 4]").replace("leave_out: 2", "leave_out: 1"))
    poisson("sweep", "case.yaml", "--output", "out")
    (entry,) = sweep_analysis(poisson)["analysis"]
    assert entry["modes"] == 1, "the solution is that of k = 1, over k"
    assert entry["projection_error"] < 1e-9 and entry["reduced_model"]["error"] < 1e-9


def test_snapshots_that_cannot_be(poisson):
    poisson.write(ROBIN)
    # the case left out fails: its solution is missing, and the summary is written all the same
    done = poisson("sweep", "case.yaml", "--output", "out", "--set", "solver.max_iterations=1", code=1)
    assert "has no solution that converged" in done.stderr
    assert "error" in sweep_analysis(poisson)["analysis"][0] and len(sweep_analysis(poisson)["cases"]) == 6
    poisson("run", "case.yaml", "--output", "single")
    assert poisson.record("single")["analysis"] == [{"of": "snapshots", "note": "made by 'poisson sweep'"}]
    assert "solution.mtx" not in poisson.record("single")["files"]


def test_snapshots_after_resume(poisson):
    poisson.write(ROBIN)
    poisson("sweep", "case.yaml", "--output", "out")
    first = sweep_analysis(poisson)["analysis"]
    poisson("sweep", "case.yaml", "--output", "out", "--resume")
    again = sweep_analysis(poisson)
    assert all(case["reused"] for case in again["cases"])
    assert again["analysis"][0]["projection_error"] == first[0]["projection_error"]


# --- operators too large to be decomposed


@pytest.mark.parametrize("boundary, preconditioner", [("dirichlet", "none"), ("neumann", "none"), ("dirichlet", "jacobi"), ("neumann", "jacobi")])
def test_estimates_are_near_the_decomposition(poisson, boundary, preconditioner):
    poisson.write(problem(f'{{ids: all, type: {boundary}, value: "0"}}', "{generator: hyper_ball, refinements: 1}", "x*y",
                          more='  coefficient: "1 + 10*x*x"\n',
                          analysis="{of: operator, modes: 0}\n    - {of: operator, max_dense: 50}") + QUIET)
    done = poisson("run", "case.yaml", "--output", "out", "--set", f"solver.preconditioner={preconditioner}")
    dense, estimated = poisson.record()["analysis"]
    assert dense["method"] == "dense" and estimated["method"] == "lanczos" and estimated["estimated"] and estimated["settled"]
    assert estimated["n"] == dense["n"] > 50
    for key in ("largest", "smallest", "condition"):
        assert abs(estimated[key] - dense[key]) < 2e-2 * dense[key], key
    assert estimated["condition"] <= dense["condition"] * (1 + 1e-9), "Ritz values lie within the spectrum"
    assert abs(estimated["cg"]["condition"] - dense["cg"]["condition"]) < 2e-2 * dense["cg"]["condition"]
    assert "estimates after" in done.stdout
    columns = table(poisson, "svd1_operator_convergence.csv")
    assert (columns["relative_residual"] <= 1.05 * columns["residual_bound"]).all()


def test_interrupt_in_an_analysis_keeps_the_solution(poisson):
    # the first takes long enough for the signal to meet it; it is finished, and the second is not begun
    config = poisson.write(CUBE + QUIET + "analysis: {svd: [{of: field, sample: box, points: 150}, {of: field, points: 5}]}\n")
    process = subprocess.Popen(poisson.command("run", config, "--output", "out"), cwd=poisson.directory, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in process.stdout:
        if line.strip().startswith("output"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 130, out + err
    record = poisson.record()
    assert record["status"] == "interrupted" and record["exit_code"] == 130 and "in the analysis" in record["reason"]
    assert record["errors"]["l2"] > 0 and "solution.vti" in record["files"]
    assert solution_file(poisson.directory / "out").exists() and len(record["analysis"]) <= 1
