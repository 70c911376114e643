"""What a run on several ranks writes and computes besides the solution: the same as one rank, whichever rank has it."""

import os
import signal
import subprocess

import numpy as np
import pytest
from conftest import CUBE
from ranks import (BALL, VARIED, compare_records, errors_told, on_ranks, pytestmark, ranks_command, ranks_of,  # noqa: F401
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
    slow = "+".join(["exp(sin(x*y)*cos(z))"] * 300)
    words = ranks_command(2, "run", config, "--output", "out", "--threads", "1",
                          *settings_of("problem.mesh.cells=[24,24,24]", "problem.element.order=2", "problem.source='1'",
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
    assert read_pieces(poisson.directory / "out/solution.pvtr").GetNumberOfCells() == 48**3


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
  picture: false
  pictures: [{name: u, size: [320, 240]}, {name: k, quantity: coefficient, size: [320, 240]}, {name: e, quantity: error, normal: x, size: [320, 240]},
             {name: f, quantity: flux, size: [320, 240]}, {name: a, quantity: arrows, normal: y, size: [320, 240]}]
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
        assert np.allclose(first[key], second[key], rtol=1e-6, atol=1e-6), (name, key)


def compare_pictures(poisson, name):
    from test_pictures import read_png

    one, other = (read_png(poisson.directory / directory / name) for directory in ("one", "ranks"))
    assert one.shape == other.shape, name
    different = (abs(np.asarray(one, int) - np.asarray(other, int)).max(axis=-1) > 3).mean()
    assert different < 1e-3, f"{name}: {different:.2%} of the pixels differ"


@pytest.mark.parametrize("n, settings", [(2, []), (3, ["problem.element.order=2"]), (5, ["output.vtk.format=vtu"]),
                                         (3, ["output.vtk.enabled=false"])])
def test_shapes_of_a_box(poisson, n, settings):
    config = poisson.write(WITH_SHAPES)
    one, other = both(poisson, config, n, *settings_of("problem.mesh.cells=[7, 6, 8]", *settings))
    compare_records(one, other, n)
    for name in ("surface.vtp", "slice_cut.vtp", "slice_between.vtp", "contour_levels.vtp"):
        compare_shapes(poisson, name)
    for name in "ukefa":
        compare_pictures(poisson, f"picture_{name}.png")
    assert len(one["warnings"]) == 2 and "u is nowhere 77; it is from" in one["warnings"][1]
    assert "problem.boundary[3].value: the Dirichlet values" in one["warnings"][0]  # which meet at an edge, and jump there
    assert other["warnings"] == one["warnings"]
    assert {f for f in one["files"] if not f.startswith("solution.v")} <= set(other["files"])


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("order", [1, 3])
def test_shapes_of_other_meshes(poisson, n, order):
    text = BALL.replace("output: {picture: false, ", "output: {picture: false, pictures: [{name: u, size: [320, 240]}], surface: true, slices: [{name: cut, origin: [0.1, 0, 0], normal: [1, 0.5, 0.2]}], "
                        "contours: [{name: levels, values: [0.3, 0.5]}], ")
    config = poisson.write(text)
    one, other = both(poisson, config, n, *settings_of(f"problem.element.order={order}", f"problem.mesh.refinements={3 - order if order < 3 else 1}"))
    compare_records(one, other, n)
    for name in ("surface.vtp", "slice_cut.vtp", "contour_levels.vtp"):
        compare_shapes(poisson, name)
    compare_pictures(poisson, "picture_u.png")


def test_materials_are_drawn(poisson):
    from conftest import ROOT

    text = BALL.replace("generator: hyper_ball, refinements: 2", f"file: {ROOT}/meshes/two_materials.msh").replace("z > 0.3", "z > 0.99")
    config = poisson.write(text.replace("picture: false, ", "pictures: [{name: f, quantity: flux, normal: z, size: [320, 240]}], "))
    both(poisson, config, 3, *settings_of("problem.mesh.refinements=1"))
    compare_pictures(poisson, "picture_f.png")
    compare_pictures(poisson, "materials.png")
    compare_pictures(poisson, "solution.png")


@pytest.mark.parametrize("problem, order, file", [(VARIED, 1, "vti"), (VARIED, 2, "vtr"), (VARIED, 3, "vtu"), (BALL, 2, "vtu")])
def test_the_flux_at_nodes(poisson, problem, order, file):
    """Nodes on the rim of a part have cells of several ranks around them."""
    from conftest import read_vtk
    from ranks import values

    config = poisson.write(problem.replace("[15, 13, 16]", "[5, 4, 6]").replace("refinements: 2", "refinements: 1"))
    both(poisson, config, 3, *settings_of(f"problem.element.order={order}", "output.vtk.fields=[u, flux_points]",
                                          f"output.vtk.format={'vtu' if file == 'vtu' else 'image'}"))
    whole, pieces = read_vtk(poisson.directory / f"one/solution.{file}"), read_pieces(poisson.directory / f"ranks/solution.p{file}")
    place = lambda data, i: tuple(round(x, 7) + 0.0 for x in data.GetPoint(i))  # noqa: E731
    found = {place(whole, i): flux for i, flux in enumerate(values(whole, "flux_points"))}
    assert len(found) == whole.GetNumberOfPoints()
    for i, flux in enumerate(values(pieces, "flux_points")):
        assert flux == pytest.approx(found[place(pieces, i)], rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("setting", ["output.slices=[{name: a, origin: [0, 0, 4], normal: [0, 0, 1]}]",
                                     "output.pictures=[{name: a, normal: z, at: 3}]"])
def test_what_does_not_meet_the_mesh_is_told_as_on_one_rank(poisson, setting):
    config = poisson.write(CUBE)
    words = ("run", config, "--output", "out", "--set", setting)
    one, other = poisson(*words, "--backend", "cpu", code=1), on_ranks(poisson, 3, *words, code=1)
    assert errors_told(other) == errors_told(one) and len(errors_told(one)) == 1


# --- places, graded boxes, sources, pure Neumann problems

# Boundaries that end inside of faces, and on edges; a region of other conductivity and source.
PLACES = """
problem:
  mesh:
    generator: box
    cells: [8, 7, 9]
    extent: [1, 1, 1.5]
    boundaries: [{name: heater, where: "z > 1.49 && x < 0.5"}, {name: side, where: "x > 0.99 && y + z < 1.3"}]
    regions: [{name: core, where: "(x-0.5)^2 + (y-0.5)^2 + (z-0.7)^2 < 0.1"}]
  coefficient: {core: "10", default: "1 + z"}
  source: {core: "5", default: "x"}
  boundary:
    - {names: [heater], type: dirichlet, value: "1 + y"}
    - {names: [side], type: dirichlet, value: "0"}
    - {ids: [2], type: robin, alpha: "1", value: "0.3"}
    - {ids: all, type: neumann, value: "0.1*z"}
solver: {preconditioner: jacobi}
output: {quantities: {share: "flux.heater / flux.side + volume.core + area.side"}, slices: [{name: cut, origin: [0, 0, 0.7], normal: [1, 2, 3]}],
         surface: true, picture: false}
"""


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("settings", [[], ["problem.element.order=2", "problem.mesh.cells=[4, 4, 5]"],
                                      ["problem.mesh.growth=[1.2, 1, 0.8]"]])
def test_named_places_of_a_box(poisson, n, settings):
    config = poisson.write(PLACES)
    one, other = both(poisson, config, n, *settings_of(*settings))
    assert "errors" not in one
    compare_records(one | {"errors": {}}, other, n)
    assert one["mesh"]["boundary_names"] == other["mesh"]["boundary_names"] and one["mesh"]["material_names"] == {"1": "core"}
    assert one["warnings"] == other["warnings"]
    compare_shapes(poisson, "surface.vtp")
    compare_shapes(poisson, "slice_cut.vtp")


@pytest.mark.parametrize("setting", ["problem.mesh.regions=[{name: a, where: x > 2}]", "problem.mesh.boundaries=[{name: a, where: x > 2}]",
                                     "problem.mesh.regions=[{name: a, where: x > q}]",
                                     "problem.boundary=[{names: [b], type: dirichlet, value: '1'}, {ids: all, type: neumann, value: '0'}]",
                                     "problem.coefficient={a: '1', default: '2'}",
                                     "problem.point_sources=[{at: [0.5, 0.5, 0.5], value: 1}, {at: [0.5, 0.5, 1.4], value: 1}]",
                                     "problem.line_sources=[{from: [0.5, 0.5, 0.1], to: [0.5, 1.9, 0.2], value: '1'}]"])
def test_what_is_wrong_with_the_problem_is_told_as_on_one_rank(poisson, setting):
    config = poisson.write(CUBE)
    words = ("run", config, "--output", "out", "--set", setting)
    one, other = poisson(*words, "--backend", "cpu", code=1), on_ranks(poisson, 3, *words, code=1)
    assert errors_told(other) == errors_told(one) and len(errors_told(one)) == 1


GRADED = [["problem.mesh.growth=[1.3, 1, 0.7]"], ["problem.mesh.growth=[1.3, 1, 1]", "problem.mesh.growth_to=[middle, end, end]"],
          ["problem.mesh.coordinates={z: [0.25, 0.3, 0.5, 0.9, 1.4, 2.25]}", "problem.mesh.refinements=1"],
          ["problem.mesh.growth=[1.3, 1, 0.7]", "problem.element.order=2"]]


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("settings", GRADED)
def test_graded_boxes(poisson, n, settings):
    text = VARIED.replace("[15, 13, 16]", "[6, 5, 7]" if "coordinates" not in settings[0] else "[6, 5]")
    if "coordinates" in settings[0]:
        text = text.replace("origin: [-0.5, 0, 0.25], extent: [1.5, 1, 2], cells: [6, 5]",
                            "coordinates: {x: [-0.5, 0, 0.2, 1], y: [0, 0.5, 1], z: [0.25, 0.3, 0.5, 0.9, 1.4, 2.25]}")
        settings = settings[1:]
    config = poisson.write(text)
    one, other = both(poisson, config, n, *settings_of(*settings))
    compare_records(one, other, n)
    from conftest import read_vtk
    from ranks import values

    whole, pieces = read_vtk(poisson.directory / "one/solution.vtr"), read_pieces(poisson.directory / "ranks/solution.pvtr")
    assert pieces.GetDimensions() == whole.GetDimensions() and pieces.GetBounds() == pytest.approx(whole.GetBounds())
    assert [v[0] for v in values(pieces, "u")] == pytest.approx([v[0] for v in values(whole, "u")], rel=1e-7, abs=1e-9)
    for a, b in zip(values(whole, "flux", cells=True), values(pieces, "flux", cells=True)):
        assert b == pytest.approx(a, rel=1e-6, abs=1e-7)


SOURCES = """
problem:
  mesh: {MESH}
  source: "1 + x*x"
  source_total: 3
  point_sources: [{at: [0.31, 0.2, 0.17], value: 2}, {at: [0.25, 0.25, 0.5], value: -1}, {at: [0.5, 0.5, 0.5], value: 0.5}]
  line_sources: [{from: [0.1, 0.2, 0.1], to: [0.5, 0.5, 0.6], value: "exp(x)"}, {from: [0.5, 0.5, 0], to: [0.5, 0.5, 0.45], value: "1 + z"}]
  boundary: [{ids: [0], type: dirichlet, value: "y"}, {ids: all, type: robin, alpha: "1", value: "0"}]
solver: {preconditioner: jacobi}
output: {picture: false}
"""


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("mesh", ["cells: [6, 5, 8]", "cells: [6, 6, 6], growth: [1.1, 1, 1.2]",
                                  "generator: hyper_ball, refinements: 1"])
def test_points_lines_and_totals_of_sources(poisson, n, mesh):
    config = poisson.write(SOURCES.replace("MESH", mesh))
    one, other = both(poisson, config, n)
    compare_records(one | {"errors": {}}, other, n)
    assert one["quantities"]["integral_f"] > 4


NEUMANN = """
problem:
  mesh: {MESH}
  source: "sin(3*x) + y"
  boundary: [{ids: all, type: neumann, value: "0"}]
  exact: "cos(3*x)/9 + y"
solver: {preconditioner: jacobi}
output: {picture: false, probes: [{name: a, at: [0.3, 0.2, 0.1]}]}
"""


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("mesh, order", [("cells: [6, 5, 8]", 1), ("cells: [3, 3, 4]", 2), ("generator: hyper_ball, refinements: 1", 1)])
def test_pure_neumann_problems(poisson, n, mesh, order):
    """The data contradict each other by less than is refused: the source's integral is 0 up to quadrature."""
    text = NEUMANN.replace("MESH", mesh).replace('"sin(3*x) + y"', '"x*y*z + x + 0.3*y"' if "ball" in mesh else '"cos(pi*x) + cos(pi*z)*y"')
    config = poisson.write(text)
    one, other = both(poisson, config, n, *settings_of(f"problem.element.order={order}"))
    assert one["status"] == "converged"
    compare_records(one, other, n)
    assert other["compatibility_defect"] == pytest.approx(one["compatibility_defect"], abs=1e-12)
    assert abs(other["quantities"]["mean"]) < 1e-10
    assert other["quantities"]["probe.a.exact"] == pytest.approx(one["quantities"]["probe.a.exact"], abs=1e-12)
