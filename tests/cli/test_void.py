"""Cells that are not there: blocks taken out of boxes, generators and files; and the unit of length of files."""

import json
import math

import pytest
import yaml

from ranks import MPIRUN, LIBRARY, on_ranks

with_ranks = pytest.mark.skipif(MPIRUN is None or not LIBRARY.exists(), reason="no mpirun, or built without MPI")
QUIET = "output: {picture: false, vtk: {enabled: false}, report: false}\nsolver: {tolerance: 1.0e-13}\n"

# What is left of the box is a bent duct; u = x where it is straight.
DUCT = """
problem:
  mesh:
    cells: [8, 4, 2]
    extent: [2, 1, 1]
    regions: [{name: air, where: "y > 0.5", void: true}]
  boundary:
    - {ids: [0], type: dirichlet, value: "0"}
    - {ids: [1], type: dirichlet, value: "2"}
    - {ids: [2, 4, 5], type: neumann, value: "0"}
""" + QUIET


def quantities(poisson, config, *words, output="out", ranks=1):
    run = (poisson, ) if ranks == 1 else (on_ranks, poisson, ranks)
    words = ["run", config, "--output", output, "--quiet", "--overwrite", "--backend", "cpu", *(w for word in words for w in ("--set", word))]
    run[0](*run[1:], *words, *(["--threads", "1"] if ranks == 1 else []))
    return poisson.record(output)


@pytest.mark.parametrize("order, refinements", [(1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (3, 0)])
def test_a_straight_duct_left_of_a_box(poisson, order, refinements):
    r = quantities(poisson, poisson.write(DUCT), f"problem.element.order={order}", f"problem.mesh.refinements={refinements}",
                   "problem.exact=x", "matrix.format=csr")
    q = r["quantities"]
    assert r["mesh"]["cells"] == 32 * 8**refinements and r["mesh"]["origin"] == [0, 0, 0] and r["mesh"]["extent"] == pytest.approx([2, 0.5, 1])
    assert r["mesh"]["boundary_ids"] == [0, 1, 2, 4, 5, 6] and r["mesh"]["boundary_names"] == {"6": "air"}
    assert q["area.air"] == pytest.approx(2, rel=1e-12) and q["flux.air"] == 0
    assert q["flux.0"] == pytest.approx(0.5, rel=1e-10) and q["flux.1"] == pytest.approx(-0.5, rel=1e-10)
    assert q["energy"] == pytest.approx(0.5, rel=1e-10) and r["errors"]["linf"] < 1e-10


@with_ranks
@pytest.mark.parametrize("setting", ["problem.mesh.refinements=0", "problem.mesh.refinements=2", "problem.element.order=2"])
def test_the_duct_on_ranks(poisson, setting):
    r = quantities(poisson, poisson.write(DUCT), setting, "problem.exact=x", ranks=3)
    assert r["ranks"] == 3 and r["errors"]["linf"] < 1e-10 and r["mesh"]["extent"] == pytest.approx([2, 0.5, 1])
    assert r["quantities"]["area.air"] == pytest.approx(2, rel=1e-12) and r["quantities"]["flux.1"] == pytest.approx(-0.5, rel=1e-10)


CORNER = """
problem:
  mesh: {generator: box, origin: [-1, -1, -1], extent: [2, 2, 2], cells: [2, 2, 2], refinements: 2,
         regions: [{name: corner, where: "x > 0 && y > 0 && z > 0", void: true}]}
  source: "1 + x"
  boundary: [{ids: all, type: dirichlet, value: "y"}]
""" + QUIET


@pytest.mark.parametrize("order", [1, 2])
def test_a_box_without_a_corner_is_that_of_the_generator(poisson, order):
    here = quantities(poisson, poisson.write(CORNER), f"problem.element.order={order}")
    L = poisson.write(CORNER.replace(CORNER[CORNER.index("{generator: box"):CORNER.index('  source')], "{generator: hyper_L, refinements: 2}\n"), "L.yaml")
    there = quantities(poisson, L, f"problem.element.order={order}", output="L")
    assert here["dofs"] == there["dofs"] and here["nnz"] == there["nnz"]
    for name in ("min", "max", "mean", "energy", "integral_u"):
        assert here["quantities"][name] == pytest.approx(there["quantities"][name], rel=1e-9, abs=1e-12), name


# A block of metal around a pipe that is held hot; a pore without contact; another material.
PIPE = """
problem:
  mesh:
    cells: [8, 8, 8]
    growth: [1, 1.1, 1]
    regions:
      - {name: pipe, where: "abs(x - 0.5) < 0.25 && abs(z - 0.5) < 0.25", void: true}
      - {name: pore, where: "x < 0.25 && z < 0.25 && abs(y - 0.5) < 0.2"}
      - {name: skin, where: "z > 0.75"}
  coefficient: {pore: void, skin: "10", default: "2"}
  source: "x"
  boundary:
    - {names: [pipe], type: dirichlet, value: "1"}
    - {ids: [0, 1, 2, 3, 4], type: neumann, value: "0"}
    - {ids: [5], type: robin, alpha: "3", value: "0"}
""" + QUIET


@pytest.mark.parametrize("words", [[], ["problem.element.order=2"], ["problem.mesh.refinements=1"]])
def test_what_flows_in_flows_out(poisson, words):
    r = quantities(poisson, poisson.write(PIPE), *words)
    q = r["quantities"]
    assert r["mesh"]["boundary_names"] == {"6": "pipe", "7": "void_surface"} and set(r["mesh"]["material_names"].values()) == {"skin"}
    assert q["area.pipe"] == pytest.approx(4 * 0.5, rel=1e-12) and q["volume.skin"] == pytest.approx(0.25, rel=1e-12)
    fluxes = [value for name, value in q.items() if name.startswith("flux.") and name != "flux.skin"]
    assert sum(fluxes) == pytest.approx(q["integral_f"], abs=1e-10) and q["flux.pipe"] < 0 and q["flux.void_surface"] == 0


def test_the_later_region_counts(poisson):
    config = poisson.write(PIPE.replace("regions:\n", "regions:\n      - {name: rod, where: \"1\", void: true}\n      - {name: rest, where: \"1\"}\n"))
    assert "takes no cell out" in poisson("check", config, code=1).stderr
    r = quantities(poisson, poisson.write(DUCT.replace("void: true}", "void: true}, {name: chip, where: \"x < 1 && y > 0.5\"}").replace("[2, 4, 5]", "[2, 3, 4, 5]")))
    assert r["mesh"]["cells"] == 48 and r["quantities"]["volume.chip"] == pytest.approx(0.5) and r["quantities"]["area.air"] == pytest.approx(1 + 0.5)


@pytest.mark.parametrize("setting, told", [
    ("problem.mesh.regions=[{name: air, where: '1', void: true}]", ["problem.mesh.regions", "nothing is left"]),
    ("problem.mesh.regions=[{name: air, where: 'x > 7', void: true}]", ["problem.mesh.regions[0].where", "takes no cell out"]),
    ("problem.mesh.regions=[{name: air, where: 'x > q', void: true}]", ["problem.mesh.regions[0].where", "'q'"]),
    ("problem.coefficient={dust: void, default: 1}", ["problem.coefficient.dust", "no material named"]),
    ("problem.coefficient={3: void, default: 1}", ["problem.coefficient[3]", "it has: 0"]),
    ("problem.coefficient={default: void}", ["default", "cannot be void"]),
    ("problem.coefficient={air: 1, default: 1}", ["problem.coefficient.air"]),
    ("output.probes=[{name: tip, at: [1, 0.75, 0.5]}]", ["output.probes[0]", "(1, 0.75, 0.5)"]),
    ("output.vtk.format=image", ["output.vtk.format"]),
    ("problem.mesh.scale=1e-3", ["problem.mesh.scale", "with problem.mesh.file"]),
])
def test_errors(poisson, setting, told):
    config = poisson.write(DUCT)
    error = poisson("run", config, "--output", "out", "--set", setting, code=1).stderr
    assert all(word in error for word in told), error


# A wall at 0.5 < x < 1.5 leaves two parts; only that at x = 0 has a value.
WALL = DUCT.replace("y > 0.5", "abs(x - 1) < 0.5").replace('ids: [1], type: dirichlet, value: "2"', 'ids: [1, 3], type: neumann, value: "0"')


@pytest.mark.parametrize("setting", ["problem.mesh.refinements=0", "problem.mesh.refinements=2", "problem.element.order=2"])
@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=with_ranks)])
def test_parts_without_a_value_are_left_out(poisson, setting, ranks):
    r = quantities(poisson, poisson.write(WALL), setting, ranks=ranks)
    cells = 8 ** int(setting[-1] if "refinements" in setting else 0)
    assert r["mesh"]["left_out"] == {"parts": 1, "cells": 16 * cells, "volume": pytest.approx(0.5)}
    assert r["mesh"]["cells"] == 16 * cells and r["mesh"]["extent"] == pytest.approx([0.5, 1, 1])
    assert r["quantities"]["max"] == 0 and any("1 part of what is left of the mesh (16 cells of volume 0.5)" in w for w in r["warnings"])
    if ranks == 1:
        assert "1 part of what is left of the mesh (16 cells" in poisson("check", "case.yaml").stdout


def test_parts_that_something_enters_are_an_error(poisson):
    for setting in ('problem.source="1"', "problem.point_sources=[{at: [1.75, 0.5, 0.5], value: 1}]",
                    'problem.boundary=[{ids: [0], type: dirichlet, value: "0"}, {ids: [1], type: neumann, value: "1"}, {ids: all, type: neumann, value: "0"}]'):
        error = poisson("run", poisson.write(WALL), "--output", "out", "--set", setting, code=1).stderr
        assert "2 parts that do not touch" in error and "1 of them (16 cells of volume 0.5 at" in error


def test_boundaries_by_places_fix_parts(poisson):
    """The part beyond the wall has a value where a place names its end, or a robin condition; and none where alpha is 0."""
    def left_out(*words):
        return quantities(poisson, poisson.write(WALL), *words)["mesh"].get("left_out", {"parts": 0})["parts"]
    named = "problem.mesh.boundaries=[{name: end, where: 'x > 1.99 && y < 0.25'}]"
    others = '{ids: [0], type: dirichlet, value: "0"}, {ids: all, type: neumann, value: "0"}'
    assert left_out(named, f'problem.boundary=[{others}, {{names: [end], type: dirichlet, value: "2"}}]') == 0
    assert left_out(f'problem.boundary=[{others}, {{names: [air], type: robin, alpha: "1", value: "0"}}]') == 0
    assert left_out(f'problem.boundary=[{others}, {{ids: [1], type: robin, alpha: "0", value: "0"}}]') == 1
    assert left_out('problem.boundary=[{ids: all, type: dirichlet, value: "0"}]') == 0


def test_no_path_is_told_before_the_solve(poisson):
    told = "no part of what is left of the mesh joins two of the boundaries with fixed values"
    closed = WALL.replace("ids: [1, 3], type: neumann", "ids: [1], type: dirichlet").replace("[2, 4, 5]", "[2, 3, 4, 5]")
    r = quantities(poisson, poisson.write(closed))
    assert any(told in w for w in r["warnings"]) and "left_out" not in r["mesh"]
    assert told in poisson("check", "case.yaml").stdout
    assert r["quantities"]["flux.1"] == pytest.approx(0, abs=1e-12)
    assert not any(told in w for w in quantities(poisson, poisson.write(DUCT)).get("warnings", []))


def test_the_extent_is_that_of_what_is_left(poisson):
    done = poisson("check", poisson.write(DUCT.replace("y > 0.5", "y > 0.6")))
    assert "extent         2 x 0.5 x 1, from (0, 0, 0) to (2, 0.5, 1)" in done.stdout


def test_a_region_that_cuts_cells_is_told(poisson):
    done = poisson("run", poisson.write(DUCT), "--output", "out", "--set", "problem.mesh.regions=[{name: air, where: 'y > 0.6', void: true}]")
    assert "'air' cuts 16 cells" in done.stderr
    assert any("'air' cuts 16 cells" in warning for warning in poisson.record()["warnings"])


def test_a_shell_of_curved_cells(poisson):
    config = poisson.write("""
problem:
  mesh: {generator: cylinder_shell, arguments: [2, 0.5, 1, 8, 2], refinements: 2, regions: [{name: top, where: "z > 1", void: true}]}
  element: {order: 3}
  boundary: [{names: [top], type: dirichlet, value: "1"}, {ids: all, type: robin, alpha: "0", value: "0"}]
""" + QUIET)
    q = quantities(poisson, config)["quantities"]
    assert q["area.top"] == pytest.approx(math.pi * 0.75, rel=1e-5) and q["max"] == pytest.approx(1, rel=1e-9)
    assert q["integral_u"] == pytest.approx(math.pi * 0.75, rel=1e-5)


def gmsh_bar():
    """Three cells along x of 1000 each, materials 1, 2, 3, faces 7 (x = 0) and 8 (x = 3000)."""
    nodes = [(1000 * i, 500 * j, 500 * k) for i in range(4) for j in range(2) for k in range(2)]
    number = {at: n + 1 for n, at in enumerate(nodes)}
    at = lambda i, j, k: number[1000 * i, 500 * j, 500 * k]
    face = lambda i: " ".join(str(at(i, j, k)) for j, k in ((0, 0), (1, 0), (1, 1), (0, 1)))
    cells = [" ".join(str(at(i + a, b, c)) for a, b, c in ((0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)))
             for i in range(3)]
    lines = [f"1 3 2 7 7 {face(0)}", f"2 3 2 8 8 {face(3)}"] + [f"{3 + i} 5 2 {i + 1} {i + 1} {cell}" for i, cell in enumerate(cells)]
    return ("$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$PhysicalNames\n2\n3 3 \"pore\"\n2 7 \"left\"\n$EndPhysicalNames\n$Nodes\n" + f"{len(nodes)}\n" +
            "\n".join(f"{n + 1} {x} {y} {z}" for n, (x, y, z) in enumerate(nodes)) + f"\n$EndNodes\n$Elements\n{len(lines)}\n" + "\n".join(lines) +
            "\n$EndElements\n")


BAR = """
problem:
  mesh: {file: bar.msh, scale: 1.0e-3}
  coefficient: {pore: void, default: "2"}
  boundary:
    - {names: [left], type: dirichlet, value: "0"}
    - {names: [void_surface], type: dirichlet, value: "4"}
    - {ids: all, type: neumann, value: "0"}
""" + QUIET


@pytest.mark.parametrize("ranks", [1, pytest.param(2, marks=with_ranks)])
def test_materials_of_a_file_and_its_unit(poisson, ranks):
    """A bar of 3 m in mm, of which the last third is not there: 2 m of k = 2 and an area of 0.25 between 0 and 4."""
    poisson.write(gmsh_bar(), "bar.msh")
    config = poisson.write(BAR)
    r = quantities(poisson, config, "problem.mesh.refinements=1", ranks=ranks)
    assert r["mesh"]["extent"] == pytest.approx([2, 0.5, 0.5]) and r["mesh"]["material_ids"] == [1, 2]
    assert r["quantities"]["flux.void_surface"] == pytest.approx(-2 * 0.25 * 4 / 2, rel=1e-10)
    assert r["quantities"]["area.void_surface"] == pytest.approx(0.25, rel=1e-12)
    if ranks == 1:
        resolved = yaml.safe_load((poisson.directory / "out/resolved.yaml").read_text())["problem"]
        assert resolved["coefficient"]["pore"] == "void" and resolved["mesh"]["scale"] == 1e-3
        by_id = quantities(poisson, config, "problem.coefficient={3: void, default: 2}", "problem.mesh.scale=1")
        assert by_id["mesh"]["extent"] == pytest.approx([2000, 500, 500])
        assert "extent         3 x 0.5 x 0.5" in poisson("check", config, "--set", "problem.coefficient=1", "--set", "problem.boundary=[{ids: all, type: dirichlet, value: 0}]").stdout


def test_a_sweep_over_cells(poisson):
    config = poisson.write(DUCT + "sweep: {problem.mesh.cells: [[4, 2, 1], [8, 4, 2], [16, 8, 4]]}\n")
    poisson("sweep", config, "--output", "out", "--quiet", "--threads", "1")
    cases = list((poisson.directory / "out").rglob("result.json"))
    assert len(cases) == 3 and all(abs(json.loads(case.read_text())["quantities"]["flux.1"] + 0.5) < 1e-9 for case in cases)


def test_files_and_pictures_show_nothing_there(poisson):
    from conftest import read_solution

    poisson("run", poisson.write(DUCT.replace(QUIET, "")), "--output", "out", "--quiet", "--threads", "1")
    data = read_solution(poisson.directory / "out")
    assert data.GetNumberOfCells() == 32 and data.GetBounds()[3] == pytest.approx(0.5)
    assert (poisson.directory / "out/solution.png").exists()
