"""output.slices and output.contours: triangles that have the right area, values and no gaps."""

import collections
import math

import numpy as np
import pytest
from vtkmodules.util.numpy_support import vtk_to_numpy
from vtkmodules.vtkIOXML import vtkXMLPolyDataReader

LINEAR = """
problem:
  mesh: {MESH}
  element: {order: ORDER}
  boundary: [{ids: all, type: dirichlet, value: "1 + x - 2*y + 3*z"}]
output: {picture: false, report: false, vtk: {enabled: false}, slices: [SLICES]}
"""
QUADRATIC = """
problem:
  mesh: {MESH}
  element: {order: ORDER}
  source: "-6"
  boundary: [{ids: all, type: dirichlet, value: "x^2 + y^2 + z^2"}]
  exact: "x^2 + y^2 + z^2"
output: {picture: false, report: false, vtk: {enabled: false}, contours: [{name: c, values: VALUES}]}
"""
BOX = "cells: [4, 5, 6]"
BALL = "generator: hyper_ball, refinements: 3"
SHELL = "generator: hyper_shell, arguments: '0, 0, 0 : 0.25 : 1 : 6', refinements: 3"


class Cut:
    def __init__(self, poisson, name, text, **more):
        self.done = poisson("run", poisson.write(text), "--output", "out", "--overwrite", "--quiet", **more)
        path = poisson.directory / f"out/{name}.vtp"
        assert f"{name}.vtp" in poisson.record()["files"] and "<AppendedData" not in path.read_text()
        reader = vtkXMLPolyDataReader()
        reader.SetFileName(str(path))
        reader.Update()
        data = reader.GetOutput()
        self.points = vtk_to_numpy(data.GetPoints().GetData()) if data.GetNumberOfPoints() else np.zeros((0, 3))
        self.triangles = np.array([[data.GetCell(i).GetPointId(a) for a in range(3)] for i in range(data.GetNumberOfCells())]).reshape(-1, 3)
        self.of_points = {data.GetPointData().GetArrayName(i): vtk_to_numpy(data.GetPointData().GetArray(i)) for i in range(data.GetPointData().GetNumberOfArrays())}
        self.of_cells = {data.GetCellData().GetArrayName(i): vtk_to_numpy(data.GetCellData().GetArray(i)) for i in range(data.GetCellData().GetNumberOfArrays())}
        corners = self.points[self.triangles]
        self.normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]) / 2
        self.area = np.linalg.norm(self.normals, axis=1).sum()
        self.centres = corners.mean(axis=1)

    def open_edges(self):
        """How many edges do not have exactly two triangles, in opposite directions."""
        directed = collections.Counter((t[i], t[(i + 1) % 3]) for t in self.triangles for i in range(3))
        return sum(1 for (a, b), n in directed.items() if n != 1 or directed[b, a] != 1)


def linear(mesh, order, normal, origin):
    return (LINEAR.replace("MESH", mesh).replace("ORDER", str(order))
            .replace("SLICES", f"{{name: s, origin: {origin}, normal: {normal}}}"))


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("normal, origin, area", [
    ([0, 0, 1], [0, 0, 0.45], 1), ([0, 0, 1], [0, 0, 0.5], 1), ([0, 0, -2], [9, 9, 0], 1), ([0, 0, 1], [0, 0, 1], 1), ([1, 0, 0], [0, 0, 0], 1),
    ([1, 1, 1], [0.5, 0.5, 0.5], 3 * math.sqrt(3) / 4), ([1, 1, 0], [0.5, 0.5, 0], math.sqrt(2))])
def test_a_slice_of_a_box(poisson, order, normal, origin, area):
    cut = Cut(poisson, "slice_s", linear(BOX, order, normal, origin))
    assert cut.area == pytest.approx(area, rel=1e-12)
    assert np.abs((cut.points - origin) @ normal).max() < 1e-12
    assert cut.of_points["u"] == pytest.approx(1 + cut.points @ [1, -2, 3], abs=1e-9)
    assert cut.of_cells["flux"] == pytest.approx(np.tile([-1, 2, -3], (len(cut.triangles), 1)), abs=1e-7)
    assert (cut.normals @ normal > 0).all()  # counterclockwise seen from the tip of the normal
    assert len(np.unique(cut.points.round(12), axis=0)) == len(cut.points)  # each point once


@pytest.mark.parametrize("order", [1, 2])
def test_a_slice_of_a_ball(poisson, order):
    cut = Cut(poisson, "slice_s", linear(BALL, order, [1, 2, 3], [0.1, 0, 0]))
    distance = 0.1 / math.sqrt(14)
    assert cut.area == pytest.approx(math.pi * (1 - distance ** 2), rel=0.015 if order == 1 else 0.01)
    assert cut.of_points["u"] == pytest.approx(1 + cut.points @ [1, -2, 3], abs=1e-2 if order == 1 else 1e-3)


@pytest.mark.parametrize("mesh, order", [("cells: [17, 16, 15], origin: [-1, -1, -1], extent: [2, 2, 2]", 1), ("cells: [16, 16, 16], origin: [-1, -1, -1], extent: [2, 2, 2]", 1),
                                         ("cells: [9, 8, 8], origin: [-1, -1, -1], extent: [2, 2, 2]", 2), (BALL.replace("3", "4"), 1), (BALL, 2), (SHELL, 2)])
def test_a_contour_is_a_closed_sphere(poisson, mesh, order):
    text = QUADRATIC.replace("MESH", mesh).replace("ORDER", str(order)).replace("VALUES", "[0.25]")
    cut = Cut(poisson, "contour_c", text)
    assert cut.area == pytest.approx(math.pi, rel=0.06)
    assert cut.open_edges() == 0
    assert cut.of_points["u"] == pytest.approx(np.full(len(cut.points), 0.25), abs=1e-12)
    assert np.linalg.norm(cut.points, axis=1) == pytest.approx(np.full(len(cut.points), 0.5), abs=0.05)
    volume = (cut.centres * cut.normals).sum() / 3
    assert volume == pytest.approx(math.pi / 6, rel=0.1)  # and outwards, where u is larger
    assert set(cut.of_points) == {"u", "exact", "error"} and set(cut.of_cells) == {"flux", "material"}


def test_several_contours_and_those_that_there_are_not(poisson):
    text = QUADRATIC.replace("MESH", "cells: [8, 8, 8]").replace("ORDER", "1").replace("VALUES", "[0.5, 1, 7]")
    cut = Cut(poisson, "contour_c", text)
    assert set(cut.of_points["u"].round(12)) == {0.5, 1}
    assert "u is nowhere 7" in cut.done.stderr and any("nowhere 7" in w for w in poisson.record()["warnings"])


def test_regions_are_told(poisson):
    text = linear("cells: [4, 4, 4], regions: [{name: left, where: 'x < 0.5'}]", 1, [0, 0, 1], [0, 0, 0.3])
    cut = Cut(poisson, "slice_s", text)
    left = cut.centres[:, 0] < 0.5
    assert len(set(cut.of_cells["material"][left])) == 1 and len(set(cut.of_cells["material"])) == 2


def test_the_same_file_with_any_number_of_threads(poisson):
    text = QUADRATIC.replace("MESH", BALL).replace("ORDER", "1").replace("VALUES", "[0.1, 0.5]")
    files = []
    for threads in (1, 3):
        poisson("run", poisson.write(text), "--output", "out", "--overwrite", "--quiet", "--threads", threads)
        files.append((poisson.directory / "out/contour_c.vtp").read_bytes())
    assert files[0] == files[1]


@pytest.mark.parametrize("what, words", [
    ("slices: [{name: a, origin: [0, 0, 2]}]", ["output.slices[0]", "from (0, 0, 0) to (1, 1, 1)"]),
    ("slices: [{name: a, origin: [0, 0, 0], normal: [0, 0, 0]}]", ["output.slices[0].normal", "no direction"]),
    ("slices: [{name: a}]", ["output.slices[0].origin"]),
    ("slices: [{origin: [0, 0, 0]}]", ["output.slices[0].name"]),
    ("slices: [{name: a, origin: [0, 0, 0]}, {name: a, origin: [0, 0, 1]}]", ["'a'"]),
    ("contours: [{name: a, values: []}]", ["output.contours[0].values"]),
    ("contours: [{name: a, values: [1, 1]}]", ["twice"]),
    ("contours: [{name: a, values: [.nan]}]", ["output.contours[0].values[0]"]),
    ("contours: [{name: '../a', values: [1]}]", ["output.contours[0].name"]),
    ("contours: 3", ["output.contours"]),
])
def test_bad_input(poisson, what, words):
    text = "problem:\n  mesh: {cells: [2, 2, 2]}\n  boundary: [{ids: all, type: dirichlet}]\noutput: {" + what + "}\n"
    done = poisson("run", poisson.write(text), "--output", "out", code=1)
    for word in words:
        assert word in done.stderr, done.stderr
