"""Boxes of elements of higher order on several ranks, without entries: the answers of one rank."""

import re

import pytest
from test_rank_matrix_out import both as both_systems
from test_rank_matrix_out import compare as compare_systems
from ranks import both, compare_records, errors_told, on_ranks, pytestmark  # noqa: F401

# All conditions, a coefficient and a source that vary, and blocks of several sizes.
BOX = """
backend: cpu
problem:
  mesh: {cells: [9, 8, 10], extent: [1, 1.5, 2]}
  element: {order: 2}
  coefficient: "1 + x*x + 0.5*y"
  source: "sin(3*x) + y*z"
  boundary:
    - {ids: [0], type: robin, alpha: "2 + z", value: "1 - x"}
    - {ids: [3, 4], type: neumann, value: "x - z"}
    - {ids: all, type: dirichlet, value: "x + 2*y - z"}
  exact: "x*y + z"
output: {picture: false, vtk: {enabled: false}}
"""
FREE = ("problem.boundary=[{ids: all, type: neumann, value: '0'}]", "problem.source=x - 0.5 + 0.3*(y - 0.75) + 0.1*(z - 1)")
PLACES = ("problem.mesh.boundaries=[{name: lid, where: 'z > 1.9 && x < 0.6'}]",
          "problem.boundary=[{names: [lid], type: dirichlet, value: x}, {ids: all, type: robin, alpha: 2, value: z}]")
MATERIALS = ("problem.mesh.regions=[{name: core, where: 'x > 0.4'}]", "problem.coefficient={0: 1, core: '1000 + y'}")
POINTS = ("problem.point_sources=[{at: [0.6, 0.1, 0.2], value: 2}, {at: [0.5, 0.75, 1], value: -1}]", "problem.source_total=3")


@pytest.mark.parametrize("n, settings", [
    (2, ()), (3, ()), (5, ()), (2, ("problem.element.order=3",)), (3, ("problem.element.order=4", "problem.mesh.cells=[4, 3, 6]")),
    (3, FREE), (5, PLACES), (3, MATERIALS), (2, POINTS), (3, ("problem.mesh.growth=[1.2, 1, 0.9]",)),
    (3, ("solver.precision=refined", "solver.tolerance=1e-18")), (2, ("solver.precision=double_double", "solver.tolerance=1e-20")),
    (3, ("solver.preconditioner=jacobi",)), (2, ("solver.method=bicgstab", "solver.preconditioner=multigrid")), (2, ("problem.mesh.cells=[1, 7, 6]",)),
    (2, ("problem.mesh.cells=[2, 1, 1]",)), (3, ("problem.mesh.cells=[1, 1, 2]",)),
    (3, ("problem.mesh.cells=[1, 1, 2]", "solver.preconditioner=multigrid"))])
def test_ranks_solve_what_one_solves(poisson, n, settings):
    one, other = both(poisson, BOX, n, "matrix.format=matrix_free", *settings)
    assert one["matrix"]["format"] == other["matrix"]["format"] == "matrix_free"
    compare_records(one, other, n)


def test_levels_are_those_of_one_rank(poisson):
    one, other = both(poisson, BOX, 3, "matrix.format=matrix_free", "solver.preconditioner=multigrid", "problem.mesh.cells=[16, 12, 20]")
    assert other["solver"]["iterations"] == one["solver"]["iterations"]
    rows = [[level["rows"] for level in record["solver"]["multigrid"]["levels"]] for record in (one, other)]
    assert rows[0] == rows[1] and rows[0][1] == 17 * 13 * 21


def test_the_system_is_that_of_one_rank(poisson):
    compare_systems(*both_systems(poisson, poisson.write(BOX), 3, "matrix.format=matrix_free", "problem.mesh.cells=[5, 4, 6]"))


def test_a_coefficient_without_order_one(poisson):
    """k is positive at the points of order 2, but not at those of order 1: auto takes what works, as on one rank."""
    one, other = both(poisson, BOX, 3, "matrix.format=matrix_free", "problem.mesh.cells=[8, 6, 9]",
                      "problem.coefficient='(cos(16*pi*x) - 0.2407)^2 - 0.01'", "problem.exact=0")
    assert one["solver"]["preconditioner"] == other["solver"]["preconditioner"] == "jacobi"
    compare_records(one, other, 3)


def test_multigrid_without_order_one(poisson):
    """Where it is asked for, its levels come from the entries, as on one rank."""
    one, other = both(poisson, BOX, 3, "matrix.format=matrix_free", "problem.mesh.cells=[8, 6, 9]", "solver.preconditioner=multigrid",
                      "problem.coefficient='(cos(16*pi*x) - 0.2407)^2 - 0.01'", "problem.exact=0")
    assert one["solver"]["preconditioner"] == other["solver"]["preconditioner"] == "multigrid"
    assert one["status"] == other["status"] == "converged"
    assert abs(one["solver"]["iterations"] - other["solver"]["iterations"]) <= 1


@pytest.mark.parametrize("setting, word", [("problem.coefficient='1 - 2*x*x'", "the coefficient is -"),
                                           ("problem.source='sqrt(x - 0.5)'", "the source 'sqrt(x - 0.5)' is -nan")])
def test_what_is_wrong_is_told_once(poisson, setting, word):
    done = on_ranks(poisson, 3, "run", poisson.write(BOX), "--output", "ranks", "--set", "matrix.format=matrix_free", "--set", setting,
                    code=1)
    told = errors_told(done)
    assert len(told) == 1 and word in told[0] and "(x, y, z)" in told[0], done.stderr


@pytest.mark.parametrize("settings", [("problem.mesh.cells=[40, 40, 40]",),
                                      ("problem.mesh={generator: hyper_ball, refinements: 4}", "problem.element.order=2",
                                       "problem.boundary=[{ids: all, type: dirichlet, value: x}]"),
                                      ("problem.mesh={generator: hyper_ball, refinements: 5}", "problem.element.order=1",
                                       "problem.boundary=[{ids: all, type: dirichlet, value: x}]")])
def test_check_forecasts_memory(poisson, settings):
    config = poisson.write(BOX)
    chosen = [word for setting in settings for word in ("--set", setting)]
    if "order=1" not in str(settings):
        chosen += ["--set", "matrix.format=matrix_free"]
    told = poisson("check", config, "--ranks", 2, *chosen).stdout
    on_ranks(poisson, 2, "run", config, "--output", "out", "--quiet", *chosen)
    record = poisson.record("out")
    assert re.search(r"format +(\w+)", told)[1] == record["matrix"]["format"]
    assert re.search(r"preconditioner +(\w+)", told)[1] == record["solver"]["preconditioner"]
    memory = float(re.search(r"host memory +about ([\d.]+) MiB", told)[1]) * 2**20
    assert 0.75 * memory < record["of_ranks"]["host_peak_bytes"]["max"] < 1.15 * memory
