"""solver.initial: neighbour, in a sweep the solution of the case before."""

import json

import pytest

PROBLEM = """
parameters: {a: 1}
problem:
  mesh: {cells: [9, 8, 7]}
  coefficient: "1 + x"
  source: "a*exp(x)*y"
  boundary: [{ids: all, type: dirichlet, value: "x*z"}]
solver: {tolerance: 1e-10}
output: {picture: false, report: false, vtk: {enabled: false}}
"""
BALL = "{generator: hyper_ball, refinements: 2}"


def sweep(poisson, text, *sets, options=("--jobs", "1"), folder="out", code=0):
    poisson("sweep", poisson.write(PROBLEM + text), "--output", folder, "--threads", "1", *options, *[f"--set={s}" for s in sets], code=code)
    cases = sorted((poisson.directory / folder / "cases").glob("case_*"))
    return [(case.name, json.loads((case / "result.json").read_text())) for case in cases]


def first_residual(poisson, name):
    return float((poisson.directory / "out/cases" / name / "residuals.csv").read_text().splitlines()[1].split(",")[1])


@pytest.mark.parametrize("sets", [
    (), ("problem.element.order=2", "matrix.format=csr", "solver.preconditioner=jacobi"), ("solver.precision=refined",), ("solver.precision=double_double",),
    ("solver.method=bicgstab", "matrix.format=csr", "solver.preconditioner=ilu0"), (f"problem.mesh={BALL}", "solver.preconditioner=multigrid"),
    ("problem.boundary=[{ids: all, type: neumann, value: 0}]", "problem.source=a*(x - 0.5)*exp(y)")])
def test_a_case_begins_at_the_solution_before(poisson, sets):
    """a grows by a thousandth, and so does the solution, as far as it comes from f: what is left of b is about as little."""
    text = "sweep: {parameters.a: [1, 1.001, 1.002]}"
    zero = sweep(poisson, text, *sets, folder="zero")
    cases = sweep(poisson, text, "solver.initial=neighbour", *sets)
    assert [record["solver"]["neighbour"] for _, record in cases] == [None, cases[0][0], cases[1][0]]
    assert "neighbour" not in zero[0][1]["solver"] and cases[0][1]["solver"]["initial"] == "neighbour"
    assert cases[0][1]["solver"]["iterations"] == zero[0][1]["solver"]["iterations"]
    for (name, record), (_, other) in list(zip(cases, zero))[1:]:
        assert first_residual(poisson, name) < 0.01
        assert record["solver"]["iterations"] < other["solver"]["iterations"]
        assert record["status"] == "converged" and record["solver"]["residual_true"] <= 2e-10
        assert record["quantities"]["energy"] == pytest.approx(other["quantities"]["energy"], rel=1e-8)
        assert record["quantities"]["max"] == pytest.approx(other["quantities"]["max"], rel=1e-8, abs=1e-12)
    assert f"began at the solution of {cases[0][0]}" in (poisson.directory / "out/cases" / cases[1][0] / "log.txt").read_text()


def test_other_meshes_and_worse_solutions_are_no_neighbours(poisson):
    """Of another mesh; of another order; on as many unknowns (9 x 8 x 7 and 7 x 8 x 9); and the negative, whose residual is 2 b."""
    cases = sweep(poisson, """
sweep:
  mode: zip
  parameters.a: [1, 1.001, 1.002, 1.003, 1.004, 1.005, -1.005, -1.006]
  problem.mesh.cells: [[9, 8, 7], [9, 8, 7], [7, 8, 9], [7, 8, 9], [7, 8, 9], [7, 8, 9], [7, 8, 9], [7, 8, 9]]
  problem.element.order: [1, 1, 1, 2, 2, 1, 1, 1]
""", "solver.initial=neighbour", "problem.boundary=[{ids: all, type: dirichlet, value: 0}]")
    names = [name for name, _ in cases]
    assert [record["solver"]["neighbour"] for _, record in cases] == [None, names[0], None, None, names[3], None, None, names[6]]


def test_a_solution_that_is_none_is_no_neighbour(poisson):
    cases = sweep(poisson, "sweep: {mode: zip, parameters.a: [1, 1, 1.1], solver.max_iterations: [2, 100, 100]}", "solver.initial=neighbour",
                  "solver.preconditioner=none", code=2)
    assert [record["solver"]["neighbour"] for _, record in cases] == [None, None, cases[1][0]]


def test_a_case_that_asks_for_zero_keeps_nothing(poisson):
    cases = sweep(poisson, "sweep: {mode: zip, parameters.a: [1, 1.1, 1.2, 1.3], solver.initial: [neighbour, zero, neighbour, neighbour]}")
    assert [record["solver"].get("neighbour", "-") for _, record in cases] == [None, "-", None, cases[2][0]]


def test_alone_there_is_no_neighbour(poisson):
    text = "sweep: {parameters.a: [1, 1.001]}"
    zero = sweep(poisson, text, folder="zero")
    for k in ("0", "1"):
        cases = sweep(poisson, text, "solver.initial=neighbour", options=("--case", k))
    assert [record["solver"]["neighbour"] for _, record in cases] == [None, None]
    assert [record["quantities"] for _, record in cases] == [record["quantities"] for _, record in zero]
    poisson("run", poisson.write(PROBLEM), "--output", "run", "--set=solver.initial=neighbour")
    record = json.loads((poisson.directory / "run/result.json").read_text())
    assert record["solver"]["neighbour"] is None and record["quantities"] == zero[0][1]["quantities"]
