"""Periodic boundaries: rates, jumps, laminates, every format and solver, and what is refused."""

import itertools
import math
import os
import pathlib

import pytest
from conftest import ROOT

QUIET = "output: {picture: false, report: false, vtk: {enabled: false}}\nsolver: {tolerance: 1.0e-12}\n"


def run(poisson, text, *sets, code=0, **more):
    done = poisson("run", poisson.write(QUIET + text), "--output", "out", "--overwrite", "--quiet", *[f"--set={s}" for s in sets], code=code, **more)
    return poisson.record() if code in (0, 2) else done


ONE = """
problem:
  mesh: {cells: [4, 4, 4], refinements: %d}
  element: {order: %d}
  source: "(4 + 1 + 1)*pi^2*sin(2*pi*x + 1)*sin(pi*y)*sin(pi*z)"
  boundary:
    - {ids: [0, 1], type: periodic}
    - {ids: all, type: dirichlet, value: "0"}
  exact: "sin(2*pi*x + 1)*sin(pi*y)*sin(pi*z)"
"""
ALL = """
problem:
  mesh: {cells: [4, 4, 4], refinements: %d}
  element: {order: %d}
  coefficient: ["1", "2", "3"]
  source: "4*pi^2*(1 + 2 + 3)*sin(2*pi*x)*cos(2*pi*y)*sin(2*pi*(z + 0.1))"
  boundary: [{ids: [0, 1], type: periodic}, {ids: [3, 2], type: periodic}, {ids: [4, 5], type: periodic}]
  exact: "sin(2*pi*x)*cos(2*pi*y)*sin(2*pi*(z + 0.1))"
"""


@pytest.mark.parametrize("problem", [ONE, ALL], ids=["one direction", "all directions"])
@pytest.mark.parametrize("order", [1, 2, 3])
def test_rates(poisson, problem, order):
    errors = []
    for refinements in (1, 2) if order == 3 else (1, 2, 3) if order == 1 else (1, 2):
        record = run(poisson, problem % (refinements, order))
        assert record["status"] == "converged"
        errors.append((record["errors"]["l2"], record["errors"]["h1_seminorm"]))
    assert math.log2(errors[-2][0] / errors[-1][0]) > order + 0.75
    assert math.log2(errors[-2][1] / errors[-1][1]) > order - 0.15


LAMINATE = """
problem:
  mesh: {cells: [4, 3, 2], extent: [2, 1, 1], regions: [{name: core, where: "x < 1"}]}
  element: {order: 2}
  coefficient: {core: "1", default: "3"}
  boundary:
    - {ids: [0, 1], type: periodic, value: "2"}
    - {ids: [2, 3], type: periodic}
    - {ids: all, type: neumann, value: "0"}
"""


def test_a_jump_drives_a_flux_through_a_laminate(poisson):
    """In series: the harmonic mean. u rises by 2 over a length of 2."""
    q = run(poisson, LAMINATE, "output.quantities={conductivity: '-flux.1 * 2 / (2 * area.1)'}")["quantities"]
    assert q["conductivity"] == pytest.approx(1.5, rel=1e-9)
    assert q["flux.0"] == pytest.approx(1.5, rel=1e-9) and q["flux.1"] == pytest.approx(-1.5, rel=1e-9)
    for side in (2, 3, 4, 5):
        assert q[f"flux.{side}"] == pytest.approx(0, abs=1e-9)
    assert q["mean"] == pytest.approx(0, abs=1e-10)
    assert q["max"] - q["min"] == pytest.approx(2, rel=1e-9)


def test_which_boundary_is_first_decides_the_sign(poisson):
    q = run(poisson, LAMINATE, "problem.boundary[0].ids=[1, 0]")["quantities"]
    assert q["flux.1"] == pytest.approx(1.5, rel=1e-9)


def test_a_layer_along_the_jump_has_the_arithmetic_mean(poisson):
    text = LAMINATE.replace('"x < 1"', '"z < 0.5"')
    assert run(poisson, text)["quantities"]["flux.1"] == pytest.approx(-2, rel=1e-9)


@pytest.mark.parametrize("format", ["csr", "crs_t", "sell_c_sigma", "cod_sell"])
def test_every_format(poisson, format):
    expected = run(poisson, ONE % (1, 1))["quantities"]
    found = run(poisson, ONE % (1, 1), f"matrix.format={format}")
    assert found["matrix"]["format"] == format
    assert found["quantities"]["energy"] == pytest.approx(expected["energy"], rel=1e-9)


@pytest.mark.parametrize("preconditioner", ["none", "jacobi", "ic0", "multigrid"])
@pytest.mark.parametrize("problem", [ONE, ALL], ids=["one direction", "all directions"])
def test_every_preconditioner(poisson, problem, preconditioner):
    expected = run(poisson, problem % (1, 1))["quantities"]["energy"]
    found = run(poisson, problem % (1, 1), f"solver.preconditioner={preconditioner}")
    assert found["status"] == "converged" and found["quantities"]["energy"] == pytest.approx(expected, rel=1e-8)


SUBSETS = [list(s) for n in (1, 2, 3) for s in itertools.combinations(range(3), n)]
SIDES = [["{ids: [0], type: dirichlet, value: '1 + z*(1-z)'}", "{ids: [1], type: robin, alpha: '2', value: '1'}"],
         ["{ids: [2], type: neumann, value: '0.5'}", "{ids: [3], type: dirichlet, value: '2'}"],
         ["{ids: [4], type: robin, alpha: '1 + x', value: '0'}", "{ids: [5], type: neumann, value: 'x*y'}"]]
FREE = [["{ids: [0, 1], type: neumann, value: '0'}"], ["{ids: [2, 3], type: neumann, value: '0'}"], ["{ids: [4, 5], type: neumann, value: '0'}"]]


@pytest.mark.parametrize("subset", SUBSETS, ids=lambda s: "".join("xyz"[d] for d in s))
@pytest.mark.parametrize("others", [SIDES, FREE], ids=["conditions", "free"])
@pytest.mark.parametrize("mesh", ["cells: [8, 6, 4]", "cells: [6, 4, 8], growth: [1.2, 1, 0.8]", "cells: [5, 3, 7]"])
def test_joined_sides_are_those_of_csr(poisson, subset, others, mesh):
    """The same unknowns, entries and solution, however they are assembled: half_cds by gpu/elements, CSR on the host."""
    periodic = [f"{{ids: [{2 * d + 1}, {2 * d}], type: periodic, value: '{jump}'}}" for d, jump in zip(subset, ("0.5", "-2", "1"))]
    kept = [side for d in range(3) if d not in subset for side in others[d]]
    if others is SIDES and len(subset) < 3:  # Dirichlet values fit no jumps at edges
        periodic = [p.replace("'0.5'", "'0'").replace("'-2'", "'0'").replace("'1'", "'0'") for p in periodic]
        kept = [side.replace("1 + z*(1-z)", "1 + sin(pi*z)^2*sin(pi*y)^2") for side in kept]
    text = f"""
problem:
  mesh: {{{mesh}, regions: [{{name: core, where: "x < 0.5 && y > 0.3"}}]}}
  coefficient: {{core: "1 + x*y", default: "5"}}
  source: "4*x - z - 1.75"
  point_sources: [{{at: [0, 0.3, 1], value: 0.25}}]
  boundary: [{", ".join(periodic + kept)}]
"""
    probes = "output.probes=[{name: a, at: [0, 0.3, 0.4]}, {name: b, at: [1, 0.3, 0.4]}, {name: c, at: [0.5, 1, 1]}]"
    expected = run(poisson, text, probes, "matrix.format=csr", "solver.preconditioner=jacobi")
    for preconditioner in ("jacobi", "multigrid"):
        found = run(poisson, text, probes, "matrix.format=half_cds", f"solver.preconditioner={preconditioner}")
        assert found["matrix"]["format"] == "half_cds" and found["status"] == "converged"
        assert (found["dofs"], found["nnz"]) == (expected["dofs"], expected["nnz"])
        assert found["solver"]["residual_true"] < 2e-12
        assert found["solver"]["iterations"] < 16 or preconditioner == "jacobi"
        scale = max(abs(expected["quantities"][name]) for name in ("min", "max"))
        for name, value in expected["quantities"].items():
            size = scale if name.startswith(("probe", "m")) else max(abs(value), 1)
            assert found["quantities"][name] == pytest.approx(value, rel=1e-8, abs=1e-8 * size), name


def test_a_held_unknown_costs_no_iterations(poisson):
    """Where a constant may be added to u an unknown is held, on no level of multigrid."""
    text = """
problem:
  mesh: {cells: [64, 64, 64], regions: [{name: core, where: "(x-0.4)^2 + (y-0.5)^2 + (z-0.6)^2 < 0.1"}]}
  coefficient: {core: "1000", default: "1"}
  boundary: [%s]
"""
    periodic = run(poisson, text % "{ids: [0, 1], type: periodic, value: '1'}, {ids: [2, 3], type: periodic}, {ids: [4, 5], type: periodic}")
    fixed = run(poisson, text % "{ids: [0], type: dirichlet, value: '0'}, {ids: [1], type: dirichlet, value: '1'}, {ids: all, type: neumann, value: '0'}")
    assert periodic["status"] == fixed["status"] == "converged" and periodic["matrix"]["format"] == "half_cds"
    assert periodic["solver"]["iterations"] <= fixed["solver"]["iterations"] + 1
    assert periodic["quantities"]["flux.0"] == pytest.approx(-periodic["quantities"]["flux.1"], rel=1e-9)


def test_check_tells_how_sides_are_joined(poisson):
    done = poisson("check", poisson.write(QUIET + ONE % (1, 1)), code=0)
    assert "half_cds" in done.stdout and "periodic sides are joined" in done.stdout
    done = poisson("check", poisson.write(QUIET + (ONE % (0, 1)).replace("[4, 4, 4]", "[75, 50, 50]")), code=0)
    assert "csr" in done.stdout and "even number of cells" in done.stdout


def test_boundaries_of_a_file_and_by_name(poisson):
    text = f"""
problem:
  mesh: {{file: {ROOT / "meshes/two_materials.msh"}, refinements: 1}}
  coefficient: {{1: "1", 2: "3"}}
  boundary: [{{ids: [1, 2], type: periodic, value: "2"}}, {{ids: all, type: neumann, value: "0"}}]
"""
    assert run(poisson, text)["quantities"]["flux.2"] == pytest.approx(-1.5, rel=1e-9)
    named = text.replace("refinements: 1", 'boundaries: [{name: left, where: "x < 0.01"}, {name: right, where: "x > 1.99"}]')
    named = named.replace("ids: [1, 2]", "names: [left, right]")
    assert run(poisson, named)["quantities"]["flux.right"] == pytest.approx(-1.5, rel=1e-9)


def test_values_are_tied_and_dirichlet_values_reach_over(poisson):
    text = """
problem:
  mesh: {cells: [4, 4, 4], boundaries: [{name: held, where: "z > 0.999"}]}
  source: "1 + x"
  boundary:
    - {ids: [0, 1], type: periodic}
    - {names: [held], type: dirichlet, value: "2"}
    - {ids: all, type: neumann, value: "0"}
output: {picture: false, report: false, vtk: {enabled: false}, probes: [{name: a, at: [0, 0.3, 0.4]}, {name: b, at: [1, 0.3, 0.4]}, {name: c, at: [0, 0.5, 1]}]}
"""
    poisson("run", poisson.write(text), "--output", "out", "--quiet")
    q = poisson.record()["quantities"]
    assert q["probe.a"] == pytest.approx(q["probe.b"], rel=1e-10) and q["probe.c"] == pytest.approx(2, rel=1e-10)
    assert q["flux.0"] + q["flux.1"] == pytest.approx(0, abs=1e-9)
    assert q["flux.held"] == pytest.approx(1.5, rel=1e-9)


@pytest.mark.parametrize("boundary, words", [
    ("[{ids: [0], type: periodic}, {ids: all, type: dirichlet}]", ["joins two boundaries", "has 1"]),
    ("[{ids: [0, 1, 2], type: periodic}, {ids: all, type: dirichlet}]", ["joins two boundaries", "has 3"]),
    ("[{ids: all, type: periodic}]", ["two ids"]),
    ("[{ids: [0, 2], type: periodic}, {ids: all, type: dirichlet}]", ["not boundary 0 moved by a translation"]),
    ("[{ids: [0, 1], type: periodic, value: '1/x'}, {ids: all, type: dirichlet}]", []),
    ("[{ids: [0, 1], type: periodic, alpha: '1'}, {ids: all, type: dirichlet}]", ["alpha"]),
    ("[{ids: [0, 1], type: periodic, value: 'y'}, {ids: [2, 3], type: periodic}, {ids: all, type: dirichlet}]", ["contradict"]),
])
def test_what_is_refused(poisson, boundary, words):
    text = "problem:\n  mesh: {cells: [4, 4, 4]}\n  source: '1'\n  boundary: " + boundary + "\n"
    if not words:
        run(poisson, text)  # values are those on the second side
        return
    done = run(poisson, text, code=1)
    for word in words:
        assert word in done.stderr


def test_meshes_that_do_not_match(poisson):
    text = """
problem:
  mesh: {cells: [4, 4, 4], boundaries: [{name: a, where: "x < 0.01 && y < 0.5"}, {name: b, where: "x > 0.99 && y > 0.25 && y < 0.75"}]}
  source: "1"
  boundary: [{names: [a, b], type: periodic}, {ids: all, type: dirichlet, value: "0"}]
"""
    run(poisson, text)  # moved by (1, 0.25, 0)
    done = run(poisson, text.replace("y < 0.5", "y < 0.7"), code=1)
    assert "not boundary" in done.stderr
    done = run(poisson, text, "matrix.format=matrix_free", code=1)
    assert "periodic" in done.stderr


@pytest.mark.skipif("POISSON_REAL_DATA" not in os.environ, reason="POISSON_REAL_DATA is not set")
def test_the_pairs_of_a_gmsh_file(poisson):
    """A sixth of a torus with cubic cells, whose ends Gmsh joins by a rotation; u does not know where the cut is."""
    mesh = pathlib.Path(os.environ["POISSON_REAL_DATA"]) / "meshes/periodic-torus-sector.msh"
    probes = ", ".join(f"{{name: {name}, at: [{r * math.cos(phi)}, {r * math.sin(phi)}, 0.2]}}"
                       for name, r, phi in (("a0", 2.3, 1e-9), ("a1", 2.3, math.pi / 3 - 1e-9), ("am", 2.3, math.pi / 6)))
    text = f"""
problem:
  mesh: {{file: {mesh}}}
  element: {{order: 3}}
  source: "1"
  boundary: [{{ids: [1, 2], type: periodic}}, {{ids: all, type: dirichlet, value: "0"}}]
output: {{picture: false, report: false, vtk: {{enabled: false}}, probes: [{probes}]}}
"""
    poisson("run", poisson.write(text), "--output", "out", "--quiet")  # the rotation is the file's
    q = poisson.record()["quantities"]
    assert q["volume.1"] == pytest.approx(2 * math.pi ** 2 * 2 / 6, rel=1e-3)
    assert q["probe.a0"] == pytest.approx(q["probe.a1"], rel=1e-6) and q["probe.am"] == pytest.approx(q["probe.a0"], rel=2e-3)
    assert abs(q["flux.1"]) < 1e-3 and q["flux.1"] == pytest.approx(-q["flux.2"])
    # Conditions of one's own are heeded, and told.
    done = poisson("run", poisson.write(text.replace("type: periodic", 'type: neumann, value: "0"')), "--output", "out",
                   "--overwrite", "--quiet")
    assert "gives them other conditions" in done.stderr
    assert poisson.record()["quantities"]["probe.am"] == pytest.approx(q["probe.am"], rel=2e-3)
    # So is a condition for all boundaries: u is 0 on the ends, too.
    done = poisson("run", poisson.write(text.replace("{ids: [1, 2], type: periodic}, ", "")), "--output", "out", "--overwrite", "--quiet")
    assert "add {ids: [1, 2], type: periodic}" in done.stderr
    assert abs(poisson.record()["quantities"]["probe.a0"]) < 1e-6


def test_direct_takes_a_periodic_box_in_one_piece(poisson):
    text = ONE % (1, 1) + "\nsolver: {preconditioner: direct}\n"
    one = run(poisson, text.replace("solver: {preconditioner: direct}", ""))
    config = poisson.write(QUIET.replace("solver: {tolerance: 1.0e-12}\n", "") + text, "direct.yaml")
    assert "direct takes the matrix in one piece" in poisson("check", config).stdout
    poisson("run", config, "--output", "direct", "--quiet")
    direct = poisson.record("direct")
    assert direct["status"] == "converged" and direct["solver"]["preconditioner"] == "direct"
    assert direct["quantities"]["energy"] == pytest.approx(one["quantities"]["energy"], rel=1e-9)


@pytest.mark.parametrize("mesh, sets", [
    ("{cells: [4, 4, 4]}", []), ("{cells: [4, 4, 4]}", ["matrix.format=csr"]), ("{cells: [3, 3, 3]}", ["problem.element.order=2"]),
    ("{generator: hyper_cube, arguments: [0, 1, true], refinements: 2}", []),
    ("{cells: [4, 4, 4], adaptive: {tolerance: 1.0e-6, max_cycles: 4}}", [])])
def test_dirichlet_values_that_contradict_the_jump_are_told(poisson, mesh, sets):
    """u = 0 on z = 0 on both sides of a jump of 1: the side that counts does not depend on the mesh or its numbers."""
    text = f"""
problem:
  mesh: {mesh}
  boundary:
    - {{ids: [0, 1], type: periodic, value: 1}}
    - {{ids: [4], type: dirichlet, value: "0"}}
    - {{ids: all, type: neumann, value: "0"}}
output: {{picture: false, report: false, vtk: {{enabled: false}}, probes: [{{name: a, at: [0, 0.5, 0]}}, {{name: b, at: [1, 0.5, 0]}}]}}
"""
    words = [f"--set={one}" for one in sets]
    done = poisson("run", poisson.write(text), "--output", "out", "--quiet", *words, code=(0, 2))
    assert "problem.boundary[0].value: problem.boundary[1] holds u at 0" in done.stderr and "both cannot be" in done.stderr
    q = poisson.record()["quantities"]
    assert q["probe.a"] == pytest.approx(0, abs=1e-12) and q["probe.b"] == pytest.approx(1)
    done = poisson("run", poisson.write(text.replace(
        'dirichlet, value: "0"', 'dirichlet, value: "x"')), "--output", "fits", "--quiet", *words, code=(0, 2))
    assert "both cannot be" not in done.stderr
