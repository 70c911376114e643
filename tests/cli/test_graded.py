"""Graded boxes: growth and listed coordinates, in every format, file and answer of a run; and what is refused."""

import json
import math

import pytest
from conftest import read_vtk

QUIET = "output: {picture: false, report: false, vtk: {enabled: false}}\nsolver: {tolerance: 1.0e-12}\n"
WAVES = """
problem:
  mesh: {extent: [1, 2, 1], cells: [4, 6, 5], growth: [1, 1.3, 0.6], growth_to: [end, middle, end], coordinates: {x: [0, 0.1, 0.4, 0.8, 1]}, refinements: %d}
  element: {order: %d}
  coefficient: "1 + x"
  source: "6*(1 + x)*sin(2*x + y - z) - 2*cos(2*x + y - z)"
  boundary:
    - {ids: [0, 2, 3, 4], type: dirichlet, value: "sin(2*x + y - z)"}
    - {ids: [1], type: neumann, value: "4*cos(2 + y - z)"}
    - {ids: [5], type: robin, alpha: "2", value: "2*sin(2*x + y - 1) - (1 + x)*cos(2*x + y - 1)"}
  exact: "sin(2*x + y - z)"
"""


def run(poisson, text, *sets, code=0, **more):
    done = poisson("run", poisson.write(text), "--output", "out", "--overwrite", "--quiet", *[f"--set={s}" for s in sets], code=code, **more)
    return poisson.record() if code in (0, 2) else done


@pytest.mark.parametrize("order, format", [(1, "auto"), (1, "half_cds"), (1, "matrix_free"), (2, "matrix_free"), (2, "csr"), (3, "auto")])
def test_rates(poisson, order, format):
    errors = []
    for refinements in (1, 2):
        record = run(poisson, QUIET + WAVES % (refinements, order), f"matrix.format={format}")
        assert record["status"] == "converged"
        errors.append((record["errors"]["l2"], record["errors"]["h1_seminorm"]))
    assert math.log2(errors[0][0] / errors[1][0]) == pytest.approx(order + 1, abs=0.3)
    assert math.log2(errors[0][1] / errors[1][1]) == pytest.approx(order, abs=0.25)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_every_format_gives_the_same_solution(poisson, order):
    expected = run(poisson, QUIET + WAVES % (1, order), "matrix.format=csr", "solver.preconditioner=jacobi")
    for format in ["crs_t", "sell_c_sigma", "cod_sell", "matrix_free"] + (["half_cds"] if order == 1 else []):
        found = run(poisson, QUIET + WAVES % (1, order), f"matrix.format={format}")
        assert found["status"] == "converged" and found["matrix"]["format"] == format
        assert found["dofs"] == expected["dofs"]
        assert found["errors"]["l2"] == pytest.approx(expected["errors"]["l2"], rel=1e-6)
        for name, value in expected["quantities"].items():
            assert found["quantities"][name] == pytest.approx(value, rel=1e-7, abs=1e-8), name


LINEAR = """
problem:
  mesh: {origin: [-1, 0, 0], extent: [3, 2, 7], cells: [3, 4, 3], growth: [1, 1.5, 2], growth_to: [end, middle, end],
         coordinates: {x: [-1, -0.75, 0.5, 2]}}
  element: {order: %d}
  source: "0"
  boundary: [{ids: all, type: dirichlet, value: "1 + 2*x - 3*y + z"}]
  exact: "1 + 2*x - 3*y + z"
output:
  picture: true
  surface: true
  probes: [{name: tip, at: [0.1, 0.4, 6.5]}]
  lines: [{name: axis, from: [-1, 0, 0], to: [2, 2, 7], points: 11}]
  planes: [{name: mid, origin: [-1, 0, 3], first: [3, 0, 0], second: [0, 2, 0], points: [4, 5]}]
  slices: [{name: cut, origin: [0, 0, 2], normal: [0, 0, 1]}]
  contours: [{name: level, values: [2.5]}]
solver: {tolerance: 1.0e-13}
"""


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("format, name", [("auto", "solution.vtr"), ("vtu", "solution.vtu"), ("hdf", "solution.hdf")])
def test_files_and_answers(poisson, order, format, name):
    """u is linear, so that every value in every file is known."""
    record = run(poisson, LINEAR % order, f"output.vtk.format={format}")
    assert name in record["files"]
    q = record["quantities"]
    assert q["probe.tip"] == pytest.approx(1 + 0.2 - 1.2 + 6.5)
    assert q["flux.1"] == pytest.approx(-2 * 14) and q["area.5"] == pytest.approx(6) and q["energy"] == pytest.approx(0.5 * 14 * 42)
    assert q["mean"] == pytest.approx(2.5)
    out = poisson.directory / "out"

    def check(file):
        data = read_vtk(out / file)
        u, n = data.GetPointData().GetArray("u"), data.GetNumberOfPoints()
        assert n > 0 and u.GetNumberOfTuples() == n
        for i in range(n):
            x, y, z = data.GetPoint(i)
            assert u.GetValue(i) == pytest.approx(1 + 2 * x - 3 * y + z, abs=1e-9)
        return data

    grid = check(name)
    if format == "auto":
        x = grid.GetXCoordinates()
        assert [x.GetValue(i * order) for i in range(4)] == [-1, -0.75, 0.5, 2]
        z = grid.GetZCoordinates()
        assert [z.GetValue(i * order) for i in range(4)] == pytest.approx([0, 1, 3, 7])
    flux = grid.GetCellData().GetArray("flux")
    for cell in range(grid.GetNumberOfCells()):
        assert flux.GetTuple(cell) == pytest.approx((-2, 3, -1), abs=1e-9)
    for file in ("surface.vtp", "plane_mid.vts", "slice_cut.vtp", "contour_level.vtp"):
        check(file)
    rows = (out / "line_axis.csv").read_text().splitlines()
    column = rows[0].split(",").index("u")
    places = [rows[0].split(",").index(c) for c in "xyz"]
    assert len(rows) == 12
    for row in rows[1:]:
        values = row.split(",")
        x, y, z = (float(values[c]) for c in places)
        assert float(values[column]) == pytest.approx(1 + 2 * x - 3 * y + z, abs=1e-9)
    assert "solution.png" in record["files"]


def test_words_of_the_report(poisson):
    run(poisson, LINEAR % 1, "output.picture=false")
    page = (poisson.directory / "out" / "report.html").read_text()
    assert "which grow by 1.5 each in y to the middle and shrink again" in page
    assert "which grow by 2 each in z" in page
    assert "in x at listed coordinates (edges 0.25 to 1.5)" in page


def test_the_resolved_configuration_gives_the_same_run(poisson):
    first = run(poisson, QUIET + WAVES % (0, 1))
    text = (poisson.directory / "out" / "resolved.yaml").read_text()
    assert "coordinates: {x: [0, 0.1, 0.4, 0.8, 1]}" in text and "growth_to: [end, middle, end]" in text
    again = run(poisson, text)
    assert again["errors"] == first["errors"] and again["dofs"] == first["dofs"]


PERIODIC = """
problem:
  mesh: {cells: [16, 16, 8], growth: [1.1, 1, 1], growth_to: [middle, end, end], coordinates: {y: [0, 0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.94, 0.97, 1]}}
  element: {order: 2}
  source: "6*pi^2*sin(2*pi*x + 1)*sin(pi*y)*sin(pi*z)"
  boundary:
    - {ids: [0, 1], type: periodic}
    - {ids: all, type: dirichlet, value: "0"}
  exact: "sin(2*pi*x + 1)*sin(pi*y)*sin(pi*z)"
"""


def test_periodic(poisson):
    record = run(poisson, QUIET + PERIODIC)
    assert record["status"] == "converged" and record["errors"]["l2"] < 3e-4
    assert record["quantities"]["flux.0"] == pytest.approx(-record["quantities"]["flux.1"], abs=1e-9)


def test_multigrid_takes_few_iterations(poisson):
    """Levels halve the strongest directions first: 64 cells that grow by 1.1 have edges from 1 to 400."""
    text = QUIET + """
problem:
  mesh: {cells: [16, 16, 64], growth: [1, 1, 1.1]}
  source: "1"
  boundary: [{ids: [4, 5], type: dirichlet, value: "0"}, {ids: all, type: neumann, value: "0"}]
"""
    for format in ("half_cds", "csr"):
        record = run(poisson, text, f"matrix.format={format}", "solver.preconditioner=multigrid")
        assert record["status"] == "converged" and record["solver"]["iterations"] <= 25, format
        # u = z (1 - z) / 2, which linear elements take at their nodes
        assert record["quantities"]["flux.4"] == pytest.approx(0.5, rel=1e-9)


SWEEP = """
problem:
  mesh: {cells: [2, 2, 4], growth: [1, 1, 1.4]}
  source: "1"
  boundary: [{ids: [4, 5], type: dirichlet, value: "0"}, {ids: all, type: neumann, value: "0"}]
output: {picture: false, vtk: {enabled: false}}
sweep: {%s}
"""


def test_sweeps(poisson):
    poisson("sweep", poisson.write(SWEEP % "problem.mesh.refinements: [0, 1, 2]"), "--output", "halved", "--quiet")
    group = json.loads((poisson.directory / "halved" / "sweep.json").read_text())["extrapolation"][0]
    energy = group["quantities"]["energy"]
    assert energy["value"] == pytest.approx(1 / 24, rel=1e-6) and energy["order"] == pytest.approx(2, abs=0.05)
    done = poisson("sweep", poisson.write(SWEEP % "problem.mesh.cells: [[2, 2, 4], [4, 4, 8], [8, 8, 16]]"), "--output", "cells")
    assert "other cells of a graded box are no refinement" in done.stdout
    group = json.loads((poisson.directory / "cells" / "sweep.json").read_text())["extrapolation"][0]
    assert "refinement" in group["note"] and not group["quantities"]
    poisson("sweep", poisson.write(SWEEP % "problem.mesh.growth: [[1, 1, 1], [1, 1, 2]]"), "--output", "growth", "--quiet")
    growths = [json.loads(path.read_text())["quantities"]["energy"] for path in (poisson.directory / "growth").glob("cases/*/result.json")]
    assert len(growths) == 2
    assert growths[0] != pytest.approx(growths[1], rel=1e-3)


@pytest.mark.parametrize("order, format", [(1, "auto"), (1, "csr"), (1, "matrix_free"), (2, "auto")])
def test_check_counts_and_foresees_the_memory(poisson, order, format):
    config = poisson.write(WAVES % (3, order) + QUIET)
    done = poisson("check", config, "--set", f"matrix.format={format}", "--set", "problem.mesh.refinements=2")
    cells = 16 * 24 * 20
    assert f"{cells:,}".replace(",", " ") in done.stdout.replace("\u202f", " ").replace("\u00a0", " ")


@pytest.mark.parametrize("sets, words", [
    (["growth=[1, 1]"], ["problem.mesh.growth", "[x, y, z]"]),
    (["growth=[1, 0, 1]"], ["problem.mesh.growth[1]", "> 0"]),
    (["growth=[1, -1.1, 1]"], ["problem.mesh.growth[1]"]),
    (["growth=[1, .nan, 1]"], ["problem.mesh.growth[1]"]),
    (["growth=[1, 1, 1e300]"], ["problem.mesh.growth[2]", "cannot be told apart"]),
    (["growth=[1, 1, 1e-300]"], ["problem.mesh.growth[2]", "cannot be told apart"]),
    (["growth=2"], ["problem.mesh.growth"]),
    (["growth_to=[end, mid, end]"], ["problem.mesh.growth_to[1]", "middle"]),
    (["growth_to=middle"], ["problem.mesh.growth_to"]),
    (["coordinates=[0, 1]"], ["problem.mesh.coordinates", "map"]),
    (["coordinates={}"], ["problem.mesh.coordinates"]),
    (["coordinates={w: [0, 1]}"], ["problem.mesh.coordinates.w", "x, y and z"]),
    (["coordinates={z: [0]}"], ["problem.mesh.coordinates.z", "two or more"]),
    (["coordinates={z: 3}"], ["problem.mesh.coordinates.z"]),
    (["coordinates={z: [0, 1, 1, 2]}"], ["problem.mesh.coordinates.z[2]", "not larger than 1"]),
    (["coordinates={z: [0, .inf]}"], ["problem.mesh.coordinates.z[1]"]),
    (["coordinates={z: [0, 1e300]}"], ["problem.mesh.coordinates.z"]),
    (["coordinates={z: [0, 1.0e-200]}"], ["problem.mesh.coordinates.z"]),
    (["coordinates={z: [0, 0.5, 1]}", "cells=[4, 4, 3]"], ["problem.mesh.cells[2]", "found 3", "makes it 2"]),
    (["coordinates={z: [0, 0.5, 1]}", "extent=[1, 1, 2]"], ["problem.mesh.extent[2]", "makes it 1"]),
    (["coordinates={z: [0, 0.5, 1]}", "origin=[0, 0, 1]"], ["problem.mesh.origin[2]", "makes it 0"]),
    (["coordinates={z: [0, 0.5, 1]}", "growth=[1, 1, 2]"], ["problem.mesh.growth[2]", "makes it 1"]),
    (["generator=hyper_cube", "growth=[1, 1, 2]"], ["problem.mesh.growth", "generator: box"]),
    (["generator=hyper_cube", "coordinates={z: [0, 1]}"], ["problem.mesh.coordinates", "generator: box"]),
])
def test_bad_input(poisson, sets, words):
    config = poisson.write("problem:\n  boundary: [{ids: all, type: dirichlet, value: 0}]\n")
    for command in ("check", "run"):
        done = poisson(command, config, *[f"--set=problem.mesh.{s}" for s in sets], code=1, timeout=60)
        for word in words:
            assert word in done.stderr, done.stderr


def test_a_tolerance_by_the_discretisation_needs_equal_cells(poisson):
    done = run(poisson, QUIET + SWEEP.split("output:")[0], "solver.initial=nested", "solver.tolerance=discretization", code=1)
    assert "solver.tolerance" in done.stderr and "equal cells" in done.stderr
    assert run(poisson, QUIET + SWEEP.split("output:")[0], "solver.initial=nested", "problem.mesh.cells=[8, 8, 16]")["status"] == "converged"
