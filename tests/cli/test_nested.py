"""solver.initial: nested, and solver.tolerance: discretization."""

import math

import pytest

PROBLEM = """
problem:
  mesh: {cells: [N, N, N]}
  coefficient: "K"
  source: "F"
  boundary: [{ids: all, type: dirichlet, value: "0"}]
  exact: "sin(pi*x)*sin(pi*y)*sin(pi*z)"
solver: {preconditioner: multigrid}
output: {picture: false, report: false, vtk: {enabled: false}}
"""
S, C = "sin(pi*{})", "cos(pi*{})"
SOURCES = {
    "1": "3*pi^2*sin(pi*x)*sin(pi*y)*sin(pi*z)",
    # k = 1 + 0.5 x: - d/dx (k du/dx) - ...
    "1 + 0.5*x": "(1 + 0.5*x)*3*pi^2*sin(pi*x)*sin(pi*y)*sin(pi*z) - 0.5*pi*cos(pi*x)*sin(pi*y)*sin(pi*z)",
}


def run(poisson, n, k, *sets, code=0):
    text = PROBLEM.replace("N", str(n)).replace('"K"', f'"{k}"').replace('"F"', f'"{SOURCES[k]}"')
    done = poisson("run", poisson.write(text), "--output", "out", "--overwrite", "--quiet", *[f"--set={s}" for s in sets], code=code)
    return poisson.record() if code == 0 else done


@pytest.mark.parametrize("format", ["half_cds", "matrix_free", "csr"])
@pytest.mark.parametrize("precision", ["double", "refined", "double_double"])
def test_nested_begins_near_the_solution(poisson, format, precision):
    zero = run(poisson, 32, "1", f"matrix.format={format}", f"solver.precision={precision}")
    nested = run(poisson, 32, "1", f"matrix.format={format}", f"solver.precision={precision}", "solver.initial=nested")
    first = [float(line.split(",")[1]) for line in (poisson.directory / "out/residuals.csv").read_text().splitlines()[1:]][0]
    assert first < 0.3
    assert nested["status"] == "converged" and nested["solver"]["iterations"] <= zero["solver"]["iterations"]
    assert nested["solver"]["initial"] == "nested" and zero["solver"]["initial"] == "zero"
    assert nested["errors"]["l2"] == pytest.approx(zero["errors"]["l2"], rel=1e-8)


@pytest.mark.parametrize("k", SOURCES)
@pytest.mark.parametrize("n", [16, 31, 64])
@pytest.mark.parametrize("format", ["half_cds", "csr"])
def test_the_error_is_that_of_the_discretisation(poisson, n, k, format):
    exact = run(poisson, n, k, f"matrix.format={format}", "solver.tolerance=1e-12")
    found = run(poisson, n, k, f"matrix.format={format}", "solver.initial=nested", "solver.tolerance=discretization")
    assert found["status"] == "converged"
    for norm in ("l2", "h1_seminorm", "linf"):
        assert found["errors"][norm] == pytest.approx(exact["errors"][norm], rel=0.05), norm
    assert found["solver"]["iterations"] < exact["solver"]["iterations"]
    assert found["solver"]["tolerance"] > 1e-8
    # Of u in the H1 seminorm: sqrt(3 pi^2 / 8).
    relative = exact["errors"]["h1_seminorm"] / math.sqrt(3 * math.pi ** 2 / 8)
    assert found["solver"]["discretization_error"] == pytest.approx(relative, rel=0.25)
    assert found["solver"]["algebraic_error"] < 0.05 * found["solver"]["discretization_error"]


@pytest.mark.parametrize("value", ["1", "100", "10*x"])
def test_boundary_values_are_not_on_the_levels(poisson, value):
    """The levels would have the layer of cells at the boundary in which these values fall to 0."""
    sets = [f'problem.boundary=[{{ids: all, type: dirichlet, value: "{value}"}}]', f'problem.exact="sin(pi*x)*sin(pi*y)*sin(pi*z) + {value}"']
    exact = run(poisson, 32, "1", "solver.tolerance=1e-12", *sets)
    found = run(poisson, 32, "1", "solver.initial=nested", "solver.tolerance=discretization", *sets)
    assert found["errors"]["l2"] == pytest.approx(exact["errors"]["l2"], rel=1e-6) and found["quantities"]["balance"] < 1e-9
    assert "discretization_error" not in found["solver"] and found["solver"]["tolerance"] <= 1e-12
    assert any("solver.tolerance: discretization follows from coarser levels" in str(text) for text in found["warnings"])


def test_auto_takes_multigrid_for_it(poisson):
    record = run(poisson, 8, "1", "solver.preconditioner=auto", "solver.initial=nested", "solver.tolerance=discretization")
    assert record["solver"]["preconditioner"] == "multigrid" and record["status"] == "converged"


def test_resolved_configurations_keep_it(poisson):
    run(poisson, 8, "1", "solver.initial=nested", "solver.tolerance=discretization")
    resolved = (poisson.directory / "out/resolved.yaml").read_text()
    assert "tolerance: discretization" in resolved and "initial: nested" in resolved
    poisson("check", "out/resolved.yaml")


@pytest.mark.parametrize("sets, words", [
    (["solver.preconditioner=jacobi", "solver.initial=nested"], ["solver.initial", "multigrid"]),
    (["solver.tolerance=discretization"], ["solver.tolerance", "initial: nested"]),
    (["solver.initial=nested", "solver.tolerance=discretization", "problem.element.order=2"], ["order 1"]),
    (["solver.initial=nested", "solver.tolerance=discretization", "problem.mesh={generator: hyper_ball}"], ["boxes"]),
    (["solver.tolerance=discretisation"], ["discretization"]),
    (["solver.initial=nestd"], ["solver.initial", "nested"]),
])
def test_what_is_refused(poisson, sets, words):
    done = run(poisson, 4, "1", *sets, code=1)
    for word in words:
        assert word in done.stderr
