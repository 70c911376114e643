"""Meshes of lattices on several ranks, assembled into half_cds where they are solved: the answers of one rank."""

import pytest
from conftest import ROOT
from test_rank_matrix_out import both as both_systems
from test_rank_matrix_out import compare as compare_systems
from ranks import both, compare_records, errors_told, on_ranks, pytestmark, residuals  # noqa: F401

# All conditions, materials, a coefficient and a source that vary. Boundary 0 of the shell is its inner sphere.
SHELL = """
backend: cpu
problem:
  mesh: {generator: hyper_shell, arguments: "0,0,0 : 0.5 : 1 : 6 : true", refinements: 4}
  coefficient: "1 + x*x + 0.5*y"
  source: "sin(3*x) + y*z"
  boundary:
    - {ids: [0], type: robin, alpha: "2 + z", value: "1 - x"}
    - {ids: [1], type: dirichlet, value: "x + 2*y - z"}
  exact: "x*y + z"
output: {picture: false, vtk: {enabled: false}}
"""
BALL = """
backend: cpu
problem:
  mesh: {generator: hyper_ball, refinements: 4}
  source: "1"
  boundary: [{ids: all, type: dirichlet, value: "y"}]
  exact: "y"
output: {picture: false, vtk: {enabled: false}}
"""
NATURAL = ("problem.boundary=[{ids: [0], type: robin, alpha: '1 + z', value: x}, {ids: [1], type: neumann, value: '1 + y'}]",)
FREE = ("problem.boundary=[{ids: all, type: neumann, value: '0'}]", "problem.source=x*y")
PLACES = ("problem.mesh.boundaries=[{name: top, where: 'z > 0.3'}]",
          "problem.boundary=[{names: [top], type: dirichlet, value: x}, {ids: all, type: robin, alpha: 2, value: z}]")
POINTS = ("problem.point_sources=[{at: [0.6, 0.1, 0.2], value: 2}, {at: [-0.7, 0, 0.1], value: -1}]",)


@pytest.mark.parametrize("n, settings", [(2, ()), (3, NATURAL), (2, FREE), (5, PLACES), (3, POINTS),
                                         (2, ("problem.mesh.refinements=5",)), (3, ("solver.precision=refined",)),
                                         (2, ("solver.precision=double_double", "solver.tolerance=1e-20")),
                                         (3, ("solver.preconditioner=jacobi",)), (3, ("solver.method=bicgstab",))])
def test_ranks_solve_what_one_solves(poisson, n, settings):
    one, other = both(poisson, SHELL, n, "matrix.format=half_cds", *settings)
    assert one["matrix"]["format"] == other["matrix"]["format"] == "half_cds"
    compare_records(one, other, n)
    if settings == ():
        for a, b in zip(residuals(poisson, "one")[:5], residuals(poisson, "ranks")[:5]):
            assert b == pytest.approx(a, rel=0.1)  # levels are in single precision


def test_jacobi_has_the_residuals_of_one_rank(poisson):
    both(poisson, SHELL, 3, "matrix.format=half_cds", "solver.preconditioner=jacobi")
    first, second = residuals(poisson, "one"), residuals(poisson, "ranks")
    for a, b in zip(first[:20], second[:20]):
        assert b == pytest.approx(a, rel=1e-8)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_auto_takes_lattices(poisson, n):
    one, other = both(poisson, BALL, n, "problem.coefficient='1 + x*x'")
    assert one["matrix"]["format"] == other["matrix"]["format"] == "half_cds"
    assert other["solver"]["preconditioner"] == one["solver"]["preconditioner"] == "multigrid"
    assert other["solver"]["iterations"] == one["solver"]["iterations"]


def test_materials_of_lattices(poisson):
    """Lattices of two materials, one of which conducts a thousand times better."""
    config = f"""
backend: cpu
problem:
  mesh: {{file: "{ROOT / 'meshes/two_materials.msh'}", refinements: 3}}
  coefficient: {{1: "1", 2: "1000 + x"}}
  source: "1"
  boundary: [{{ids: all, type: dirichlet, value: "x + 2*y - 3*z"}}]
  exact: "0"
output: {{picture: false, vtk: {{enabled: false}}}}
"""
    one, other = both(poisson, config, 2, "matrix.format=half_cds")
    assert other["matrix"]["format"] == "half_cds"
    compare_records(one, other, 2)


def test_the_system_is_that_of_one_rank(poisson):
    config = poisson.write(BALL.replace("refinements: 4", "refinements: 3"))
    compare_systems(*both_systems(poisson, config, 2, "matrix.format=half_cds"))


# Without entries, elements of any order.
@pytest.mark.parametrize("n, order, settings", [(2, 2, ()), (3, 2, NATURAL), (2, 2, FREE), (3, 2, PLACES), (3, 2, POINTS), (2, 1, ()), (2, 3, ()),
                                                (3, 2, ("solver.precision=refined",)), (3, 2, ("solver.preconditioner=jacobi",)),
                                                (2, 2, ("solver.precision=double_double", "solver.tolerance=1e-20")),
                                                (2, 2, ("solver.method=bicgstab",))])
def test_ranks_solve_without_entries(poisson, n, order, settings):
    refinements = 4 if order == 1 else 3
    one, other = both(poisson, SHELL, n, "matrix.format=matrix_free", f"problem.element.order={order}",
                      f"problem.mesh.refinements={refinements}", *settings)
    assert one["matrix"]["format"] == other["matrix"]["format"] == "matrix_free"
    compare_records(one, other, n)


def test_auto_takes_operators_of_higher_order(poisson):
    one, other = both(poisson, BALL, 3, "problem.element.order=2", "problem.mesh.refinements=3", "problem.coefficient='1 + x*x'")
    assert other["matrix"]["format"] == "matrix_free"
    assert other["solver"]["preconditioner"] == one["solver"]["preconditioner"] == "multigrid"
    assert other["solver"]["iterations"] == one["solver"]["iterations"]


def test_materials_without_entries(poisson):
    config = BALL.replace("{generator: hyper_ball, refinements: 4}",
                          f"{{file: '{ROOT / 'meshes/two_materials.msh'}', refinements: 2}}")
    one, other = both(poisson, config, 2, "matrix.format=matrix_free", "problem.element.order=2",
                      "problem.coefficient={1: '1', 2: '1000 + x'}")
    compare_records(one, other, 2)


def test_the_rows_without_entries_are_those_of_one_rank(poisson):
    config = poisson.write(BALL.replace("refinements: 4", "refinements: 3"))
    compare_systems(*both_systems(poisson, config, 2, "matrix.format=matrix_free"))


@pytest.mark.parametrize("order", [1, 2])
def test_small_pieces_without_entries_are_cells(poisson, order):
    one, other = both(poisson, BALL, 5, "matrix.format=matrix_free", f"problem.element.order={order}", f"problem.mesh.refinements={4 - order}",
                      "solver.preconditioner=multigrid")
    compare_records(one, other, 5)


def test_small_pieces_go_by_rows(poisson):
    one, other = both(poisson, BALL, 5, "problem.mesh.refinements=3")
    compare_records(one, other, 5)


@pytest.mark.parametrize("setting", ["problem.coefficient='1 - 2*x*x'", "problem.source='sqrt(x)'"])
def test_what_is_wrong_is_told_once(poisson, setting):
    config = poisson.write(BALL)
    chosen = ("--set", "matrix.format=half_cds", "--set", setting)
    one = poisson("run", config, "--output", "one", *chosen, code=1)
    done = on_ranks(poisson, 3, "run", config, "--output", "ranks", *chosen, code=1)
    assert len(errors_told(done)) == 1
    assert one.stderr.split(" at (x, y, z)")[0].split(": ", 2)[-1][:30] in done.stderr
