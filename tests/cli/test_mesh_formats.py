"""Mesh files of other programs, and our own: names, curved cells, what is said of them."""

import base64
import functools
import gzip
import math
import os
import zlib

import numpy as np
import pytest
from conftest import ROOT
from ranks import on_ranks, pytestmark as needs_ranks
from vtkmodules.vtkCommonCore import vtkIntArray, vtkPoints
from vtkmodules.vtkCommonDataModel import VTK_LAGRANGE_HEXAHEDRON, vtkLagrangeHexahedron, vtkUnstructuredGrid
from vtkmodules.vtkIOXML import vtkXMLUnstructuredGridWriter

PROBLEM = """
problem:
  mesh: {file: %s}
  source: "1 + x"
  boundary: [{ids: all, type: dirichlet, value: "0"}]
output: {picture: false, vtk: {enabled: false}}
"""


def run(poisson, name, *more, **kwargs):
    poisson.write(PROBLEM % name)
    return poisson("run", "case.yaml", "--output", "out", "--quiet", "--overwrite", *more, **kwargs)


@pytest.mark.parametrize("format", ["vtu", "hdf"])
@pytest.mark.parametrize("order", [1, 3])
def test_a_solution_is_a_mesh_again(poisson, format, order):
    poisson.write("""
        problem:
          mesh: {generator: box, cells: [5, 4, 3], extent: [2, 1, 1], regions: [{name: left, where: "x < 1"}]}
          element: {order: %d}
          coefficient: {left: "3", default: "1"}
          source: "1 + x"
          boundary: [{ids: all, type: dirichlet, value: "0"}]
        output: {picture: false, vtk: {format: %s}}
        """ % (order, format))
    poisson("run", "case.yaml", "--output", "first", "--quiet")
    first = poisson.record("first")
    run(poisson, f"first/solution.{format}", "--set", f"problem.element.order={order}", "--set", "problem.coefficient={1: '3', default: '1'}")
    again = poisson.record()
    assert again["mesh"]["cells"] == 60 and again["mesh"]["material_ids"] == first["mesh"]["material_ids"]
    for name in ("mean", "energy", "integral_f"):
        assert again["quantities"][name] == pytest.approx(first["quantities"][name], rel=1e-9), name


def test_a_compressed_mesh(poisson):
    (poisson.directory / "ball.msh.gz").write_bytes(gzip.compress((ROOT / "meshes/ball.msh").read_bytes()))
    run(poisson, "ball.msh.gz")
    packed = poisson.record()["quantities"]
    run(poisson, ROOT / "meshes/ball.msh")
    assert poisson.record()["quantities"] == packed


def ring(path, order, cells, array="material"):
    """A quarter of a ring with radii 1 and 2, of height 1: cells x cells x 1 Lagrange cells with nodes on circles."""
    reference = vtkLagrangeHexahedron()
    n = (order + 1) ** 3
    reference.GetPointIds().SetNumberOfIds(n)
    reference.GetPoints().SetNumberOfPoints(n)
    reference.SetOrder(order, order, order)
    places = [reference.PointIndexFromIJK(i, j, k) for k in range(order + 1) for j in range(order + 1) for i in range(order + 1)]
    grid, points, known, ids = vtkUnstructuredGrid(), vtkPoints(), {}, vtkIntArray()
    points.SetDataTypeToDouble()
    ids.SetName(array)
    for b in range(cells):
        for a in range(cells):
            numbers = [0] * n
            for place, (k, j, i) in zip(places, np.ndindex(order + 1, order + 1, order + 1)):
                node = (a * order + i, b * order + j, k)
                if node not in known:
                    r, phi = 1 + node[0] / (cells * order), math.pi / 2 * node[1] / (cells * order)
                    known[node] = points.InsertNextPoint(r * math.cos(phi), r * math.sin(phi), k / order)
                numbers[place] = known[node]
            grid.InsertNextCell(VTK_LAGRANGE_HEXAHEDRON, n, numbers)
            ids.InsertNextValue(7)
    grid.SetPoints(points)
    grid.GetCellData().AddArray(ids)
    writer = vtkXMLUnstructuredGridWriter()
    writer.SetFileName(str(path))
    writer.SetInputData(grid)
    writer.Write()


@pytest.mark.parametrize("order", [2, 3])
def test_curved_cells_of_a_file_keep_the_order_of_convergence(poisson, order):
    """u = ln r: straight cells would leave an error of order 2 in h, whatever the order of the elements."""
    errors = []
    for cells in (1, 2, 4):
        ring(poisson.directory / "ring.vtu", order, cells)
        poisson.write("""
            problem:
              mesh: {file: ring.vtu}
              element: {order: %d}
              boundary: [{ids: all, type: dirichlet, value: "log(sqrt(x^2 + y^2))"}]
              exact: "log(sqrt(x^2 + y^2))"
            output: {picture: false, vtk: {enabled: false}}
            """ % order)
        poisson("run", "case.yaml", "--output", "out", "--quiet", "--overwrite")
        record = poisson.record()
        assert record["mesh"]["material_ids"] == [7]
        errors.append(record["errors"]["l2"])
        volume = record["quantities"]["volume.7"]
    assert volume == pytest.approx(3 * math.pi / 4, rel=10 ** -(2 * order - 1))
    rates = [math.log2(coarse / fine) for coarse, fine in zip(errors, errors[1:])]
    assert rates[-1] > order + 0.7, rates


def test_curved_cells_are_refined_along_their_shape(poisson):
    volumes = []
    ring(poisson.directory / "ring.vtu", 4, 2)
    for refinements in (0, 1, 2):
        run(poisson, "ring.vtu", "--set", f"problem.mesh.refinements={refinements}", "--set", "problem.element.order=1")
        assert poisson.record()["mesh"]["cells"] == 4 * 8 ** refinements
        volumes.append(poisson.record()["quantities"]["volume.7"])
    # Elements of order 1 keep the curved shape, as they do when it is refined; chords would have 2.6 % less of it.
    assert volumes == pytest.approx([volumes[0]] * 3, rel=1e-12)
    assert volumes[0] == pytest.approx(3 * math.pi / 4, rel=1e-3)


def test_left_handed_cells_are_told(poisson):
    text = "MeshVersionFormatted 2\nDimension 3\nVertices\n8\n" + "".join(
        f"{x} {y} {-z} 0\n" for x, y, z in [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)])
    (poisson.directory / "a.mesh").write_text(text + "Hexahedra\n1\n1 2 3 4 5 6 7 8 3\nEnd\n")
    done = run(poisson, "a.mesh", "--set", "problem.mesh.refinements=2")
    assert "left-handed" in done.stderr
    assert any("left-handed" in warning for warning in poisson.record()["warnings"])
    assert poisson.record()["quantities"]["volume.3"] == pytest.approx(1)


def test_a_damaged_file_of_a_library_is_an_error(poisson):
    ring(poisson.directory / "ring.vtu", 2, 1)
    content = (poisson.directory / "ring.vtu").read_bytes()
    (poisson.directory / "half.vtu").write_bytes(content[:len(content) // 2])
    assert "VTK cannot read it" in run(poisson, "half.vtu", code=1).stderr
    (poisson.directory / "a.exo").write_bytes(b"CDF\x01" + bytes(200))
    assert "a.exo" in run(poisson, "a.exo", code=1).stderr


BAR = "*Heading\n*Node\n" + "".join(f"{n + 1}, {n % 5 / 2}, {n // 5 % 2}, {n // 10}\n" for n in range(20)) + "*Element, type=DC3D8\n" + "".join(
    f"{n}, {n}, {n + 1}, {n + 6}, {n + 5}, {n + 10}, {n + 11}, {n + 16}, {n + 15}\n" for n in range(1, 5))
HALVES = "*Elset, elset=Left\n1, 2\n*Elset, elset=Right\n3, 4\n"
ENDS = "*Surface, name=HOT-1\n1, S6\n*Surface, name=COLD-1\n4, S4\n"
NODES = "*Nset, nset=HOT-1\n1, 6, 11, 16\n*Nset, nset=COLD-1\n5, 10, 15, 20\n"
SECTIONS = "*Solid Section, elset=Left, material=COPPER-1\n,\n*Solid Section, elset=Right, material=STEEL-1\n,\n"


@pytest.mark.parametrize("text, names", [
    (BAR + ENDS + SECTIONS + HALVES, ("COPPER-1", "STEEL-1", "HOT-1", "COLD-1")),   # names that end in the same number
    (BAR + NODES + HALVES, ("Left", "Right", "HOT-1", "COLD-1")),                   # sets, and nodes as boundaries
    (BAR + ENDS + HALVES, ("LEFT", "right", "hot-1", "COLD-1")),                    # Abaqus ignores case
])
def test_names_of_abaqus(poisson, text, names):
    """A bar of two halves with k = 10 and 1, of length 1 each: the flux is 1 / (1 / 10 + 1)."""
    (poisson.directory / "bar.inp").write_text(text)
    poisson.write("""
        problem:
          mesh: {file: bar.inp}
          coefficient: {%s: "10", %s: "1"}
          boundary:
            - {names: [%s], type: dirichlet, value: "1"}
            - {names: [%s], type: dirichlet, value: "0"}
            - {ids: all, type: neumann, value: "0"}
        output: {picture: false, report: false, vtk: {enabled: false}}
        """ % names)
    poisson("run", "case.yaml", "--output", "out", "--quiet")
    quantities = poisson.record()["quantities"]
    assert quantities["flux.COLD-1"] == pytest.approx(1 / 1.1, rel=1e-9) and quantities["flux.HOT-1"] == pytest.approx(-1 / 1.1, rel=1e-9)
    assert quantities["energy"] == pytest.approx(0.5 / 1.1, rel=1e-9) and quantities["volume.Left"] == pytest.approx(1)


def test_a_pipe_in_place_of_a_file_is_not_waited_for(poisson):
    """As mesh, field and record: each would be read before the fingerprint is made, or by it."""
    os.mkfifo(poisson.directory / "pipe.vtu")
    assert "not a regular file" in run(poisson, "pipe.vtu", code=1, timeout=30).stderr
    field = ("--set", "problem.mesh={cells: [2, 2, 2]}", "--set", "problem.source={file: pipe.vtu}")
    assert "pipe.vtu" in run(poisson, "pipe.vtu", *field, code=1, timeout=30).stderr
    (poisson.directory / "out").mkdir(exist_ok=True)
    os.mkfifo(poisson.directory / "out/result.json")
    box = ("--set", "problem.mesh={cells: [2, 2, 2]}")
    assert "result.json" in run(poisson, "pipe.vtu", *box, code=1, timeout=30).stderr
    assert "not a regular file" in poisson("check", "case.yaml", code=1, timeout=30).stderr


def test_materials_that_are_not_there(poisson):
    """The message lists the arrays of the file, and one of them can be named."""
    ring(poisson.directory / "zone.vtu", 1, 1, array="zone")
    more = ("--set", "problem.coefficient={7: '2'}")
    error = run(poisson, "zone.vtu", *more, code=1).stderr
    assert "the mesh has no material 7" in error and "cell data: zone; none is known to hold materials" in error
    run(poisson, "zone.vtu", *more, "--set", "problem.mesh.array=zone")
    assert list(poisson.record()["mesh"]["material_ids"]) == [7]


# A VTKHDF file of version 2.0 with two steps, compressed: the cell [0, 1]^3 of material 1, then the cells [1, 2], [2, 3] and [3, 4] x [0, 1]^2 of
# materials 2, 3, 4, in two parts with points of their own.
STEPS = """
eNrr9HBx4+WS4mLi4GCAgf9QMEEewjeAirs//bbK38MliElhbRRnNjKuYBJC1ggDXEwMjAwMbIIMQIotLMQbaNdhmCXODNQAtcsPpWJ30lKIkyLZIQoLRCA0xEmiQgwsmM
7l0WJgYGZgZeAASYZUFqQyCAN1CAAxExCH5hWXFJUml5QWpaa4F2Wm8DiCVHMw8DAAjQ5LLSrOzM9jEACGIiQgHRiYGBkZmaDuRKdhQOWypSZ2908RAFqsxQJRZsmA7HqQ
TD0rRMQCKsOjAXINO9A1QC1+wSWpBcWojkGynE0MFCHcAYlFJf5pacWpJcUsElAZCZAMr19pblJqkX8aSEWxgiTCuV4rf+tjjwhy0oUwyDKO3MSS1KLMxJwXYlCjHKmQLj
53ala4BQe7MkyDxjujNiPDVRAjfXasEU5tYF8oovuCgZERaAooOpmh6uA0DwMjciizAj3GzMUB9DQzI1SQQQJm+A6GIQsen1n5wN/ZwxuU8i6zQcScYKlJHBSNPAH5mXmw
5GQjBdN4wsZRkJqBKjGMAnXbrjM9oEDFXhhBM6lzak4ONFQjpCH6YnTrVKkZpgbDKEyXNe9wBoUp9nKHTQEUpqLO+Xl5qcklmWWZJZWeKdDQLZGBmBA2s201NVziFuQRwM
AOLnUFGDCqVmBpBAaw4glXBcFJpG0sSDohRisA6QmyMLEOwdPeWDVyoNECKIYgaCYC6lFBgz12PojGJocsjyyGjuHAAbt+kDg2s2DqMcxzQGXDjXdAtQtmloMDql0wMx0c
UO2CmemAxoa7Gc0uuFvR7IK7Gc0uuB/gbB4gYECLM2a0uIM2JhigTQcGdlgJjhZ7A6WfAy3Rc8NaPbA2DpTmhdL8UJoPR5omxEdO60xQ97Jg8QcjjsYbBw5/45IfBaNgFI
yCwQRwNiRVgOUdsCWpgFaWo/OZRRgYBRXkoeWmAoM4B4N4PaiMR2pgekALwgZYAblg8IfL3hqGH4Qa2Sxo9Rq4kQ2vBzhQwuAEJ6raodzI9rN8JEoobBTQ0wueDsgZTrQK
dAiHjYNB4HxCYcOO1v7BGzZcqOM8QzlsPlTPfOkU4uECbAAyQVp3KRovRGBtPlgiaDmgxOgWDFTFAOskMeJoX7EwBDBUgFMYROY2tIEGG32A0VePJjU5hfi4MbDqTcv1Zu
gGCgkyWDh29TCARiOFGH5r3ZjOoApkCjPkb1+2niETyFRi2KKjdYdhDriZeF1+x30GUTBzWcPjVwxrgExxBubi6DcMgeCOc/KfxH/gKJJkEJPRcButVoZOPYevLOdggNdr
yHmShRut7zuE8+SelElfCIUN+tgEvvJKZBiFTezPf6upGTYqwyhsvE+qbqJm2JgMo7DxKBbaTs2wcRlGYaORspOqYRMyjMLGp+kaq5uHixN80hIEDpWtXcHIwAqe0WuGN4
g4QPMCLokliR5MMCE++KwdaCammI8ZJgGfzgPpKU5mgYmLw8VRxsOLt7PCVLBBjIIFLtAZoFnRYhlBGJ8HWauFEEyYHTqmHiI82vAgEQAARH7kvQ==
"""


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=needs_ranks)])
def test_a_step_of_a_vtkhdf_file(poisson, ranks):
    (poisson.directory / "steps.hdf").write_bytes(zlib.decompress(base64.b64decode(STEPS)))
    run = poisson if ranks == 1 else functools.partial(on_ranks, poisson, ranks)
    config = poisson.write("""
        problem:
          mesh: {file: steps.hdf}
          coefficient: {default: "1"}
          boundary: [{ids: all, type: dirichlet, value: "x"}]
        output: {picture: false, report: false, vtk: {enabled: false}}
        """)
    for step, volumes in (("0", {1: 1}), ("1", {2: 1, 3: 1, 4: 1}), ("last", {2: 1, 3: 1, 4: 1})):
        run("run", config, "--output", step, "--quiet", "--set", f"problem.mesh.step={step}", "--set", "problem.mesh.refinements=1")
        found = {name: value for name, value in poisson.record(step)["quantities"].items() if name.startswith("volume.")}
        assert found == pytest.approx({f"volume.{id}": size for id, size in volumes.items()})
        assert poisson.record(step)["quantities"]["mean"] == pytest.approx(0.5 if step == "0" else 2.5)
    # 1 / (1/2 + 1/3 + 1/4)
    field = poisson.write("""
        problem:
          mesh: {origin: [1, 0, 0], extent: [3, 1, 1], cells: [3, 1, 1]}
          coefficient: {file: steps.hdf, array: material, step: last}
          boundary:
            - {ids: [0], type: dirichlet, value: "0"}
            - {ids: [1], type: dirichlet, value: "1"}
            - {ids: all, type: neumann, value: "0"}
        output: {picture: false, report: false, vtk: {enabled: false}}
        """, "field.yaml")
    if ranks == 1:
        run("run", field, "--output", "field", "--quiet")
        assert poisson.record("field")["quantities"]["flux.1"] == pytest.approx(-12 / 13)
        assert "step: last" in (poisson.directory / "field/resolved.yaml").read_text()
        for words, message in (((), "steps.hdf: has 2 steps, and one is needed: `step` says which, from 0 to 1, or last"),
                               (("--set", "problem.mesh.step=2"), "problem.mesh.step: steps.hdf: has 2 steps, counted from 0; there is no step 2"),
                               (("--set", "problem.mesh.step=first"), "problem.mesh.step: found 'first'; allowed: auto; or last; or integer"),
                               (("--set", "problem.mesh={step: 1}"), "problem.mesh.step")):
            assert message in poisson("check", config, *words, code=1).stderr
        poisson.write("$MeshFormat\n", "a.msh")
        assert "a.msh has no steps that are read" in poisson("check", config, "--set", "problem.mesh={file: a.msh, step: 1}", code=1).stderr
