"""Nested iteration on several ranks, and a tolerance from the discretisation error: those of one rank."""

import pytest
from test_nested import PROBLEM, SOURCES
from ranks import compare_records, errors_told, on_ranks, pytestmark, residuals, write_chain  # noqa: F401


def both(poisson, cells, k, n, *settings):
    text = PROBLEM.replace("N", str(cells)).replace('"K"', f'"{k}"').replace('"F"', f'"{SOURCES[k]}"')
    config = poisson.write(text)
    words = ("run", config, "--quiet", "--backend", "cpu", *(f"--set={s}" for s in ("solver.initial=nested", *settings)))
    poisson(*words, "--output", "one")
    on_ranks(poisson, n, *words, "--output", "ranks")
    return poisson.record("one"), poisson.record("ranks")


@pytest.mark.parametrize("n, format, precision", [(2, "half_cds", "double"), (3, "csr", "double"), (5, "half_cds", "refined")])
def test_nested_begins_where_one_rank_does(poisson, n, format, precision):
    one, other = both(poisson, 20, "1 + 0.5*x", n, f"matrix.format={format}", f"solver.precision={precision}")
    compare_records(one, other, n)
    first, second = residuals(poisson, "one"), residuals(poisson, "ranks")
    assert second[0] == pytest.approx(first[0], rel=1e-3) and first[0] < 0.3
    assert other["solver"]["initial"] == "nested"


@pytest.mark.parametrize("n, cells", [(2, 16), (3, 31), (5, 16)])
def test_the_tolerance_is_that_of_one_rank(poisson, n, cells):
    one, other = both(poisson, cells, "1", n, "solver.tolerance=discretization")
    assert other["status"] == "converged" and other["solver"]["iterations"] == one["solver"]["iterations"]
    for key in ("tolerance", "discretization_error"):
        assert other["solver"][key] == pytest.approx(one["solver"][key], rel=1e-2), key
    assert other["solver"]["algebraic_error"] == pytest.approx(one["solver"]["algebraic_error"], rel=0.1)
    for name, error in one["errors"].items():
        assert other["errors"][name] == pytest.approx(error, rel=1e-3), name


def test_other_meshes_and_systems_of_files(poisson):
    one, other = both(poisson, 8, "1", 3, "problem.element.order=2")
    assert other["status"] == "converged" and other["errors"]["l2"] == pytest.approx(one["errors"]["l2"], rel=1e-6)
    matrix = write_chain(poisson, 900)
    on_ranks(poisson, 3, "solve", "--matrix", matrix, "--output", "solved", "--quiet", "--backend", "cpu", "--set", "solver.initial=nested",
             "--set", "solver.preconditioner=multigrid")
    assert poisson.record("solved")["status"] == "converged"


@pytest.mark.parametrize("setting", ["problem.mesh.cells=[1, 4, 4]",
                                     "problem.boundary=[{ids: [0, 1], type: periodic}, {ids: all, type: dirichlet, value: '0'}]"])
def test_a_tolerance_without_levels_of_boxes(poisson, setting):
    """One level, or those of aggregates: ranks find a tolerance where one rank does. How large it is depends on the levels, which differ;
    what it is made for does not."""
    one, other = both(poisson, 8, "1", 3, "solver.tolerance=discretization", setting)
    assert one["status"] == other["status"] == "converged"
    assert ("discretization_error" in one["solver"]) == ("periodic" in setting) == ("discretization_error" in other["solver"])
    if "periodic" not in setting:  # without levels there is no estimate
        assert other["solver"]["tolerance"] == one["solver"]["tolerance"]
    else:
        assert other["solver"]["discretization_error"] == pytest.approx(one["solver"]["discretization_error"], rel=0.1)
        for record in (one, other):
            assert record["solver"]["algebraic_error"] < 0.1 * record["solver"]["discretization_error"]
    assert other["errors"]["l2"] == pytest.approx(one["errors"]["l2"], rel=1e-2)
