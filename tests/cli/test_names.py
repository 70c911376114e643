"""Boundaries and materials by name: of mesh files, and of places that expressions describe."""

import json

import numpy as np
import pytest
import yaml
from conftest import ROOT, array, read_solution, read_vtk
from ranks import on_ranks, pytestmark as needs_ranks

HEATER = """
problem:
  mesh:
    cells: [8, 8, 8]
    boundaries:
      - {name: heater, where: "z > 0.99 && x < 0.5"}
      - {name: cooler, where: "z < 0.01"}
    regions: [{name: die, where: "z < 0.5"}]
  coefficient: {die: "4", default: "1"}
  boundary:
    - {names: [heater], type: dirichlet, value: "1"}
    - {names: [cooler], type: dirichlet, value: "0"}
    - {ids: all, type: neumann, value: "0"}
output: {picture: false}
"""


def test_drawn_boundaries_and_regions(poisson):
    poisson("run", poisson.write(HEATER), "--output", "out")
    record = poisson.record()
    q = record["quantities"]
    assert q["area.heater"] == pytest.approx(0.5) and q["area.cooler"] == pytest.approx(1)
    assert q["volume.die"] == pytest.approx(0.5) and q["volume.0"] == pytest.approx(0.5)
    assert q["flux.heater"] < -0.1 and q["flux.heater"] + q["flux.cooler"] == pytest.approx(0, abs=1e-9)
    assert set(record["mesh"]["boundary_names"].values()) == {"heater", "cooler"} and record["warnings"] == []
    grid = read_solution(poisson.directory / "out")
    k = array(grid.GetCellData(), "coefficient").reshape(8, 8, 8)
    assert (k[:4] == 4).all() and (k[4:] == 1).all()
    poisson("run", "out/resolved.yaml", "--output", "again", "--quiet")
    assert poisson.record("again")["quantities"] == q and poisson.record("again")["fingerprint"] == record["fingerprint"]


@pytest.mark.parametrize("order", [1, 2])
def test_layers_in_series(poisson, order):
    """Two layers of thickness 1/2 with k = 4 and 1 between u = 0 and 1: the flux is 1 / (1/8 + 1/2) = 1.6."""
    config = poisson.write("""
        problem:
          mesh: {cells: [4, 4, 8], regions: [{name: die, where: "z < 0.5"}, {name: lid, where: "z > 0.5"}]}
          coefficient: {die: ["7", "3", "4"], lid: "1"}
          boundary:
            - {ids: [4], type: dirichlet, value: "0"}
            - {ids: [5], type: dirichlet, value: "1"}
            - {ids: all, type: neumann, value: "0"}
        output: {picture: false, vtk: {enabled: false}}
        """)
    results = {}
    for fmt in ("auto", "csr", "half_cds", "matrix_free") if order == 1 else ("auto", "csr", "cod_sell", "matrix_free"):
        poisson("run", config, "--output", fmt, "--quiet", "--set", f"matrix.format={fmt}", "--set", f"problem.element.order={order}")
        results[fmt] = poisson.record(fmt)["quantities"]
        assert results[fmt]["flux.4"] == pytest.approx(1.6, abs=1e-9) and results[fmt]["flux.5"] == pytest.approx(-1.6, abs=1e-9)
        assert results[fmt]["energy"] == pytest.approx(0.8, abs=1e-9)


@pytest.mark.parametrize("refinements", [0, 2, 3])
def test_on_a_ball(poisson, refinements):
    config = poisson.write("""
        problem:
          mesh:
            generator: hyper_ball
            boundaries: [{name: cap, where: "z > 0.5"}]
            regions: [{name: core, where: "x^2 + y^2 + z^2 < 0.25"}]
          coefficient: {core: "10", default: "1"}
          boundary:
            - {names: [cap], type: dirichlet, value: "0"}
            - {ids: all, type: neumann, value: "1"}
        output: {picture: false, vtk: {enabled: false}}
        """)
    done = poisson("run", config, "--output", "out", "--set", f"problem.mesh.refinements={refinements}", "--set", "problem.element.order=2")
    record = poisson.record()
    q = record["quantities"]
    assert q["flux.cap"] + q["flux.0"] == pytest.approx(0, abs=1e-8) and q["flux.0"] == pytest.approx(-q["area.0"], rel=1e-12)
    assert 0 < q["volume.core"] < q["volume.0"]
    assert all("cuts" in w for w in record["warnings"]) and ("cuts" in done.stderr) == bool(record["warnings"])
    if refinements == 3:
        assert q["volume.core"] == pytest.approx(np.pi / 6, rel=0.1) and record["warnings"]


GMSH = """$MeshFormat
2.2 0 8
$EndMeshFormat
$PhysicalNames
4
2 7 "hot side"
2 8 "cold"
3 3 "glass"
1 1 "an edge"
$EndPhysicalNames
$Nodes
8
1 0 0 0
2 1 0 0
3 1 1 0
4 0 1 0
5 0 0 1
6 1 0 1
7 1 1 1
8 0 1 1
$EndNodes
$Elements
3
1 3 2 7 1 1 2 3 4
2 3 2 8 2 5 6 7 8
3 5 2 3 1 1 2 3 4 5 6 7 8
$EndElements
"""


def test_names_of_a_gmsh_file(poisson):
    poisson.write(GMSH, "cube.msh")
    config = poisson.write("""
        problem:
          mesh: {file: cube.msh, refinements: 1}
          coefficient: {glass: "2"}
          boundary:
            - {names: [hot side], type: dirichlet, value: "1"}
            - {names: [cold], type: dirichlet, value: "0"}
            - {ids: all, type: neumann, value: "0"}
        output: {picture: false, vtk: {enabled: false}}
        """)
    poisson("run", config, "--output", "out", "--quiet")
    q = poisson.record()["quantities"]
    assert q["flux.cold"] == pytest.approx(2) and q["flux.hot side"] == pytest.approx(-2) and q["volume.glass"] == pytest.approx(1)
    error = poisson("check", config, "--set", "problem.boundary[1].names=[colt]", code=1).stderr
    assert "problem.boundary[1].names[0]" in error and "did you mean 'cold'?" in error and "hot side" in error
    error = poisson("check", config, "--set", "problem.coefficient={gloss: 1}", code=1).stderr
    assert "problem.coefficient.gloss" in error and "did you mean 'glass'?" in error
    assert "hot side" in poisson("check", config).stdout


@pytest.mark.parametrize("change, parts", [
    (["problem.mesh.boundaries=[{name: heater, where: z > 2}, {name: cooler, where: z < 0.01}]"], ["problem.mesh.boundaries[0].where", "no boundary face", "(0, 0, 0) to (1, 1, 1)"]),
    (["problem.mesh.regions=[{name: die, where: x < -1}]"], ["problem.mesh.regions[0].where", "no cell"]),
    (["problem.mesh.regions=[{name: die, where: z < 0.5}, {name: all, where: 1}]", "problem.coefficient={die: 1, all: 2}"],
     ["problem.mesh.regions[0].where", "later entries"]),
    (["problem.mesh.boundaries=[{name: heater, where: z < }, {name: cooler, where: z < 0.01}]"], ["problem.mesh.boundaries[0].where", "the expression ends"]),
    (["problem.mesh.boundaries=[{name: a, where: 1}, {name: a, where: 1}]"], ["problem.mesh.boundaries[1].name", "already"]),
    (["problem.mesh.boundaries=[{where: 1}]"], ["problem.mesh.boundaries[0].name", "missing"]),
    (["problem.mesh.boundaries=[{name: 1a, where: 1}]"], ["problem.mesh.boundaries[0].name", "letters, digits"]),
    (["problem.boundary[0].names=[heeter]"], ["problem.boundary[0].names[0]", "did you mean 'heater'?"]),
    (["problem.boundary[1].names=[heater]"], ["problem.boundary[1].names[0]", "already in problem.boundary[0]"]),
    (["problem.boundary[0].names=[]"], ["problem.boundary[0].names", "list of names"]),
    (["problem.boundary=[{names: [heater], type: dirichlet, value: 1}]"], ["problem.boundary", "no condition for boundary id"]),
    (["problem.coefficient={dye: 4, default: 1}"], ["problem.coefficient.dye", "did you mean 'die'?"]),
    (["problem.coefficient={die: 4}"], ["problem.coefficient", "no coefficient for material 0"]),
])
def test_wrong_names_and_places(poisson, change, parts):
    config = poisson.write(HEATER)
    error = poisson("run", config, "--output", "out", *[word for text in change for word in ("--set", text)], code=1).stderr
    assert all(part in error for part in parts), error


def test_sides_that_are_drawn_as_a_whole_need_no_ids(poisson):
    """All of the box is named, so no id of it is left that would need a condition."""
    config = poisson.write("""
        problem:
          mesh:
            cells: [4, 4, 4]
            boundaries: [{name: rest, where: "1"}, {name: top, where: "z > 0.99"}]
          boundary:
            - {names: [rest], type: neumann, value: "0"}
            - {names: [top], type: robin, alpha: "1", value: "2"}
        output: {picture: false, vtk: {enabled: false}}
        """)
    poisson("run", config, "--output", "out", "--quiet")
    record = poisson.record()
    assert abs(record["quantities"]["min"] - 2) < 1e-9 and len(record["mesh"]["boundary_ids"]) == 2
    assert "has no boundary id 3" in poisson("run", config, "--output", "b", "--set", "problem.boundary[0].ids=[3]", code=1).stderr


def test_parameters_in_places(poisson):
    config = poisson.write("parameters: {edge: 0.25}\n" + HEATER.replace("x < 0.5", "x < edge"))
    poisson("run", config, "--output", "out", "--quiet")
    assert poisson.record()["quantities"]["area.heater"] == pytest.approx(0.25)
    resolved = yaml.safe_load((poisson.directory / "out/resolved.yaml").read_text())
    assert resolved["parameters"] == {"edge": 0.25}


NAMED_MESH = """$MeshFormat
2.2 0 8
$EndMeshFormat
$PhysicalNames
4
2 1 "hot wall"
2 2 "cold-side"
3 1 "default"
3 2 "2 % (v/v)"
$EndPhysicalNames
$Nodes
12
1 0 0 0
2 1 0 0
3 2 0 0
4 0 1 0
5 1 1 0
6 2 1 0
7 0 0 1
8 1 0 1
9 2 0 1
10 0 1 1
11 1 1 1
12 2 1 1
$EndNodes
$Elements
4
1 5 2 1 1 1 2 5 4 7 8 11 10
2 5 2 2 2 2 3 6 5 8 9 12 11
3 3 2 1 1 1 7 10 4
4 3 2 2 2 3 6 12 9
$EndElements
"""


def test_quantities_of_names_that_are_no_words(poisson):
    """Names of mesh files have hyphens and blanks; an id works whether its boundary has a name or not. Two unit cubes with k = 10
    and 1 between u = 1 and 0: the resistance is 1/10 + 1."""
    (poisson.directory / "names.msh").write_text(NAMED_MESH)
    poisson("run", poisson.write("""
        problem:
          mesh: {file: names.msh}
          coefficient: {1: "10", 2: "1"}
          boundary:
            - {names: [hot wall], type: dirichlet, value: "1"}
            - {names: [cold-side], type: dirichlet, value: "0"}
            - {ids: all, type: neumann, value: "0"}
        output:
          picture: false
          vtk: {enabled: false}
          quantities: {a: "1/flux.cold-side", b: "-1/flux.'hot wall'", c: '3*volume."2 % (v/v)"', d: "1/flux.2", e: flux.0}
        """), "--output", "out", "--quiet")
    q = poisson.record()["quantities"]
    assert q["max.default"] == 1 and q["min.default"] == pytest.approx(1 / 1.1) and q["mean.cold-side"] == pytest.approx(0, abs=1e-12)
    assert q["energy.2 % (v/v)"] == pytest.approx(0.5 / 1.21) and q["mean.2 % (v/v)"] == pytest.approx(0.5 / 1.1)
    assert [q[name] for name in "abd"] == pytest.approx([1.1] * 3) and q["c"] == pytest.approx(3) and q["e"] == 0


LAYERS = """
problem:
  mesh:
    cells: [2, 2, 8]
    regions: [{name: die, where: "z < 0.5"}, {name: lid, where: "z > 0.5"}]
    boundaries: [{name: lid, where: "z > 0.99"}]
  coefficient: {die: "4", lid: "1"}
  boundary:
    - {ids: [4], type: dirichlet, value: "0"}
    - {names: [lid], type: dirichlet, value: "1"}
    - {ids: all, type: neumann, value: "0"}
output:
  name: temperature
  unit: degC
  title: Two layers
  surface: true
  vtk: {fields: [u, material, gradient]}
  picture_formats: [svg, pdf]
  lines: [{name: up, from: [0.5, 0.5, 0], to: [0.5, 0.5, 1], points: 5}]
  quantities: {by_id: "max.material.1 + mean.boundary.6 + energy.die"}
"""


@pytest.mark.parametrize("ranks, order", [(1, 1), pytest.param(2, 1, marks=needs_ranks), (1, 2)])
def test_u_in_materials_and_on_boundaries(poisson, ranks, order):
    """The flux is 1 / (0.5/4 + 0.5) = 1.6, so u = 0.4 z in the die, and 0.2 where the lid begins."""
    words = ["run", poisson.write(LAYERS), "--output", "out", "--quiet", "--set", f"problem.element.order={order}"]
    poisson(*words) if ranks == 1 else on_ranks(poisson, ranks, *words)
    q = poisson.record()["quantities"]
    expected = {"min.die": 0, "max.die": 0.2, "mean.die": 0.1, "integral_u.die": 0.05, "energy.die": 0.16,
                "min.material.lid": 0.2, "max.material.lid": 1, "mean.material.lid": 0.6, "integral_u.material.lid": 0.3, "energy.lid": 0.64,
                "min.boundary.lid": 1, "max.boundary.lid": 1, "mean.boundary.lid": 1, "integral_u.boundary.lid": 1,
                "min.0": 0, "max.0": 1, "mean.0": 0.35, "integral_u.0": 0.35, "max.4": 0, "by_id": 0.2 + 1 + 0.16,
                "mean": 0.35, "energy": 0.8}
    for name, value in expected.items():
        assert q[name] == pytest.approx(value, abs=1e-10), name
    assert q["min_at"] == [0, 0, 0] and q["max_at"] == [0, 0, 1]
    out = poisson.directory / "out"
    assert (out / "residuals.svg").read_bytes().startswith(b"<?xml") and (out / "residuals.pdf").read_bytes().startswith(b"%PDF")
    if ranks == 1:
        grid = read_solution(out)
        assert array(grid.GetPointData(), "temperature").max() == pytest.approx(1)
        gradient = array(grid.GetCellData(), "gradient")
        assert gradient[0] == pytest.approx([0, 0, 0.4], abs=1e-10) and gradient[-1] == pytest.approx([0, 0, 1.6], abs=1e-10)
        names = grid.GetFieldData().GetAbstractArray("material_names")
        assert [names.GetValue(i) for i in range(names.GetNumberOfValues())] == ["die", "lid"]
        sides = grid.GetFieldData().GetAbstractArray("boundary_names")
        assert [sides.GetValue(i) for i in range(sides.GetNumberOfValues())] == ["-x", "+x", "-y", "+y", "-z", "lid"]
    surface = read_vtk(out / "surface.vtp")
    names = surface.GetFieldData().GetAbstractArray("boundary_names")
    assert [names.GetValue(i) for i in range(names.GetNumberOfValues())] == ["-x", "+x", "-y", "+y", "-z", "lid"]
    assert surface.GetPointData().HasArray("temperature")
    assert (out / "line_up.csv").read_text().splitlines()[0].split(",")[:6] == ["point", "distance", "x", "y", "z", "temperature"]
    for picture in ("solution", "materials", "line_up"):
        assert (out / f"{picture}.png").read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in (out / f"{picture}.svg").read_bytes()[:200] and (out / f"{picture}.pdf").read_bytes().startswith(b"%PDF")
    page = (out / "report.html").read_text()
    assert "<title>Two layers" in page and "temperature (degC)" in page and "out of the side -x (positive: leaves)" in page
    assert poisson.record()["solution"] == {"name": "temperature", "unit": "degC"}


def test_a_name_that_is_taken(poisson):
    error = poisson("check", poisson.write(LAYERS.replace("name: temperature", "name: flux")), code=1).stderr
    assert "output.name: 'flux' is what another column or array is called" in error
