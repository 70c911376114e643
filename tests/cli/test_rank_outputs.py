"""What a run on several ranks writes and computes besides the solution: the same as one rank, whichever rank has it."""

import os
import signal
import subprocess

import pytest
from conftest import CUBE
from test_ranks import (BALL, VARIED, compare_records, errors_told, on_ranks, pytestmark, ranks_command, ranks_of,  # noqa: F401
                        read_pieces)


def settings_of(*settings):
    return [word for setting in settings for word in ("--set", setting)]


def both(poisson, config, n, *words):
    """The records of one rank and of n."""
    poisson("run", config, "--output", "one", "--backend", "cpu", "--quiet", "--overwrite", *words)
    on_ranks(poisson, n, "run", config, "--output", "ranks", "--quiet", "--overwrite", *words)
    return poisson.record("one"), poisson.record("ranks")


def rows_of(poisson, directory, name):
    lines = (poisson.directory / directory / name).read_text().splitlines()
    return lines[0], [[float(field) if field else None for field in line.split(",")] for line in lines[1:]]


def compare_tables(poisson, name):
    (head, one), (other_head, other) = rows_of(poisson, "one", name), rows_of(poisson, "ranks", name)
    assert head == other_head and len(one) == len(other)
    for a, b in zip(one, other):
        assert [x is None for x in a] == [x is None for x in b]
        assert [x for x in b if x is not None] == pytest.approx([x for x in a if x is not None], rel=1e-7, abs=1e-8)
    return one


# --- interrupts


@pytest.mark.parametrize("rank", [0, 1])
def test_an_interrupt_after_the_solve_keeps_the_solution(poisson, rank):
    config = poisson.write(CUBE)
    slow = "+".join(["exp(sin(x*y)*cos(z))"] * 200)
    words = ranks_command(2, "run", config, "--output", "out", "--threads", "1",
                          *settings_of("problem.mesh.cells=[36,36,36]", "problem.element.order=2", "problem.source='1'",
                                       f"problem.exact='{slow}'", "solver.preconditioner=jacobi", "output.picture=false"))
    process = subprocess.Popen(words, cwd=poisson.directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in process.stdout:
        if line.startswith("  verify"):
            break
    os.kill(ranks_of(process)[rank], signal.SIGINT)
    out, errors = process.communicate(timeout=200)
    assert process.returncode == 130, out + errors
    record = poisson.record("out")
    assert record["status"] == "interrupted" and "the solution is complete" in record["reason"] and "errors" not in record
    assert read_pieces(poisson.directory / "out/solution.pvtr").GetNumberOfCells() == 72**3


# --- points

POINTS = """
  probes: [{name: inside, at: [0.11, 0.37, 1.21]}, {name: corner, at: [0.5, 0.5, 1.25]}, {name: end, at: [1, 1, 2.25]}]
  lines: [{name: through, from: [-0.5, 0.5, 0.25], to: [1.5, 0.5, 2.5], points: 41}]
  circles: [{name: rim, center: [0.25, 0.5, 1.25], normal: [0, 1, 1], radius: 0.6, points: 31}]
  planes: [{name: mid, origin: [-0.5, 0, 1.25], first: [1.5, 0, 0], second: [0, 1.5, 0], points: [11, 13]}]
  quantities: {steep: "probe.inside.gradient.z / mean", sum: "steep + flux.3 + probe.corner"}
"""
WITH_POINTS = VARIED.replace("output: {picture: false}", "output:\n  picture: false" + POINTS.rstrip())


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("order", [1, 2])
def test_points_of_a_box(poisson, n, order):
    config = poisson.write(WITH_POINTS)
    one, other = both(poisson, config, n, *settings_of(f"problem.element.order={order}", "problem.mesh.cells=[6, 5, 8]"))
    compare_records(one, other, n)
    assert list(one["quantities"]) == list(other["quantities"])
    rows = compare_tables(poisson, "line_through.csv")
    assert any(row[5] is None for row in rows) and any(row[5] is not None for row in rows)
    compare_tables(poisson, "circle_rim.csv")
    compare_tables(poisson, "plane_mid.csv")
    assert (poisson.directory / "ranks/plane_mid.vts").exists()
    assert set(one["files"]) - set(other["files"]) <= {"solution.vti", "solution.vtr"}


@pytest.mark.parametrize("n", [2, 5])
def test_points_of_other_meshes(poisson, n):
    text = BALL.replace("output: {picture: false, quantities", """output:
  picture: false
  probes: [{name: centre, at: [0, 0, 0]}, {name: aside, at: [0.3, -0.2, 0.45]}]
  lines: [{name: across, from: [-1.2, 0, 0], to: [1.2, 0, 0], points: 31}]
  quantities""").replace('area.top"}}', 'area.top + probe.aside"}')
    config = poisson.write(text)
    one, other = both(poisson, config, n)
    compare_records(one, other, n)
    compare_tables(poisson, "line_across.csv")


@pytest.mark.parametrize("setting", ["output.probes=[{name: a, at: [0.5, 0.5, 0.2]}, {name: b, at: [0.5, 1.2, 0.77]}]",
                                     "output.lines=[{name: a, from: [2, 0, 0], to: [2, 1, 0], points: 5}]",
                                     "output.quantities={a: 'probe.b + 1'}"])
def test_what_is_wrong_with_points_is_told_as_on_one_rank(poisson, setting):
    config = poisson.write(CUBE)
    words = ("run", config, "--output", "out", "--set", setting)
    one, other = poisson(*words, "--backend", "cpu", code=1), on_ranks(poisson, 3, *words, code=1)
    assert errors_told(other) == errors_told(one) and len(errors_told(one)) == 1


# --- slices, contours, the surface, pictures

SHAPES = """
  surface: true
  slices: [{name: cut, origin: [0.2, 0.5, 1.25], normal: [1, 0.3, 0.5]}, {name: between, origin: [0, 0, 1.25], normal: [0, 0, 1]}]
  contours: [{name: levels, values: [0.5, 1.1, 77]}]
  pictures: [{name: k, quantity: coefficient}, {name: e, quantity: error, normal: x}]
"""
WITH_SHAPES = VARIED.replace("output: {picture: false}", "output:" + SHAPES.rstrip())


def read_triangles(path):
    """Points, their arrays, polygons, theirs."""
    from vtkmodules import vtkIOXML

    reader = vtkIOXML.vtkXMLPolyDataReader()
    reader.SetFileName(str(path))
    reader.Update()
    return reader.GetOutput()


def polygons_of(data):
    """The polygons by the places of their corners, with what is there: of a corner u, of a polygon its values."""
    found = {}
    of_cells = [data.GetCellData().GetArray(i) for i in range(data.GetCellData().GetNumberOfArrays())]
    of_points = [data.GetPointData().GetArray(i) for i in range(data.GetPointData().GetNumberOfArrays())]
    for c in range(data.GetNumberOfCells()):
        cell = data.GetCell(c)
        ids = [cell.GetPointId(i) for i in range(cell.GetNumberOfPoints())]
        places = [tuple(round(x, 6) + 0.0 for x in data.GetPoint(i)) for i in ids]
        order = sorted(range(len(ids)), key=lambda i: places[i])
        values = [v for array in of_points for i in order for v in array.GetTuple(ids[i])]
        values += [v for array in of_cells for v in array.GetTuple(c)]
        found.setdefault(tuple(places[i] for i in order), []).append(values)
    return found


def compare_shapes(poisson, name):
    one, other = (read_triangles(poisson.directory / directory / name) for directory in ("one", "ranks"))
    assert one.GetNumberOfCells() == other.GetNumberOfCells() and one.GetNumberOfPoints() == other.GetNumberOfPoints(), name
    assert one.GetNumberOfCells() > 0
    first, second = polygons_of(one), polygons_of(other)
    if len(first.keys() & second.keys()) < len(first):  # a coordinate between two that are rounded
        assert len(first.keys() & second.keys()) > 0.98 * len(first), name
    for key in first.keys() & second.keys():
        for a, b in zip(first[key], second[key]):
            assert b == pytest.approx(a, rel=1e-6, abs=1e-6), (name, key)


def compare_pictures(poisson, name):
    from test_pictures import read_png

    one, other = (read_png(poisson.directory / directory / name) for directory in ("one", "ranks"))
    assert one.shape == other.shape, name
    different = (abs(one.astype(int) - other.astype(int)).max(axis=-1) > 3).mean()
    assert different < 1e-3, f"{name}: {different:.2%} of the pixels differ"


@pytest.mark.parametrize("n, settings", [(2, []), (3, ["problem.element.order=2"]), (5, ["output.vtk.format=vtu"]),
                                         (3, ["output.vtk.enabled=false"])])
def test_shapes_of_a_box(poisson, n, settings):
    config = poisson.write(WITH_SHAPES)
    one, other = both(poisson, config, n, *settings_of("problem.mesh.cells=[7, 6, 8]", *settings))
    compare_records(one, other, n)
    for name in ("surface.vtp", "slice_cut.vtp", "slice_between.vtp", "contour_levels.vtp"):
        compare_shapes(poisson, name)
    for name in ("solution.png", "picture_k.png", "picture_e.png"):
        compare_pictures(poisson, name)
    assert len(one["warnings"]) == 1 and "u is nowhere 77; it is from" in one["warnings"][0]
    assert other["warnings"] == one["warnings"]
    assert {f for f in one["files"] if not f.startswith("solution.v")} <= set(other["files"])


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("order", [1, 3])
def test_shapes_of_other_meshes(poisson, n, order):
    text = BALL.replace("output: {picture: false, ", "output: {surface: true, slices: [{name: cut, origin: [0.1, 0, 0], normal: [1, 0.5, 0.2]}], "
                        "contours: [{name: levels, values: [0.3, 0.5]}], ")
    config = poisson.write(text)
    one, other = both(poisson, config, n, *settings_of(f"problem.element.order={order}", f"problem.mesh.refinements={3 - order if order < 3 else 1}"))
    compare_records(one, other, n)
    for name in ("surface.vtp", "slice_cut.vtp", "contour_levels.vtp"):
        compare_shapes(poisson, name)
    compare_pictures(poisson, "solution.png")


def test_materials_are_drawn(poisson):
    from conftest import ROOT

    text = BALL.replace("generator: hyper_ball, refinements: 2", f"file: {ROOT}/meshes/two_materials.msh").replace("z > 0.3", "z > 0.99")
    config = poisson.write(text.replace("picture: false, ", ""))
    both(poisson, config, 3)
    compare_pictures(poisson, "materials.png")
    compare_pictures(poisson, "solution.png")


@pytest.mark.parametrize("setting", ["output.slices=[{name: a, origin: [0, 0, 4], normal: [0, 0, 1]}]",
                                     "output.pictures=[{name: a, normal: z, at: 3}]"])
def test_what_does_not_meet_the_mesh_is_told_as_on_one_rank(poisson, setting):
    config = poisson.write(CUBE)
    words = ("run", config, "--output", "out", "--set", setting)
    one, other = poisson(*words, "--backend", "cpu", code=1), on_ranks(poisson, 3, *words, code=1)
    assert errors_told(other) == errors_told(one) and len(errors_told(one)) == 1
