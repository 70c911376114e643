"""Adaptive refinement from the configuration: the loop, how it ends, targets, files, what is refused."""

import json
import math
import re
import statistics

import pytest
from conftest import ROOT, Poisson

CORNER = (ROOT / "configs/adaptive_corner.yaml").read_text()
QUIET = ["--set", "output.picture=false", "--set", "output.report=false", "--set", "output.vtk.enabled=false"]
PLATE = """
problem:
  mesh:
    cells: [4, 4, 4]
    boundaries: [{name: heater, where: "z > 0.99 && x < 0.5"}]
    adaptive: {tolerance: 2%}
  coefficient: "1 + x"
  boundary:
    - {names: [heater], type: dirichlet, value: 1}
    - {ids: [4], type: robin, alpha: 3, value: 0}
    - {ids: all, type: neumann, value: 0}
output: {probes: [{name: tip, at: [0.3, 0.2, 0.6]}]}
"""


def run(poisson, text, *sets, code=0, output="out"):
    done = poisson("run", poisson.write(text), "--output", output, "--overwrite", *QUIET, *[word for s in sets for word in ("--set", s)], code=code)
    return (poisson.record(output), done) if code in (0, 2) else done


def rate(cycles, key):
    """The exponent of a figure over the unknowns: the slope through all of the last two thirds of the cycles."""
    last = cycles[len(cycles) // 3:]
    return statistics.linear_regression([math.log(c["dofs"]) for c in last], [math.log(c[key]) for c in last]).slope


def test_a_wrong_expression_is_told_with_its_key(poisson):
    done = poisson("run", poisson.write(CORNER), "--output", "out", "--set", "problem.source=1+", code=1)
    assert "problem.source: the expression ends" in done.stderr


def test_the_loop_ends_by_the_tolerance_and_the_estimate_is_near_the_error(poisson):
    record, done = run(poisson, CORNER)
    adaptive = record["adaptive"]
    assert adaptive["ended"] == "tolerance" and adaptive["target"] == "energy_norm" and record["warnings"] == []
    cycles = adaptive["cycles"]
    last = cycles[-1]
    assert last["estimate"] <= 0.04 * last["value"] < cycles[-2]["estimate"] * 1.0001
    assert last["dofs"] == record["dofs"] and last["cells"] == record["mesh"]["cells"]
    assert record["errors_of"]["energy_norm"] == {"estimate": last["estimate"], "guaranteed": False}
    for i, (before, cycle) in enumerate(zip(cycles, cycles[1:])):  # the first meshes take their Dirichlet values at few nodes
        assert cycle["dofs"] > before["dofs"] and (i < 2 or cycle["error"] < before["error"])
    assert last["error"] < 0.25 * cycles[0]["error"]
    for cycle in cycles[1:]:
        assert 0.5 < cycle["effectivity"] < 2
    assert f"cycle {len(cycles)}" in done.stdout and "(estimated)" in done.stdout and "ended by tolerance" in done.stdout


# Boundaries with given u that meet at an edge: the flux through one of them is of the order p + 1 there.
MEETING = """
problem:
  mesh: {cells: [3, 3, 3], refinements: %d, adaptive: {target: "%s", tolerance: 1.0e-9, max_cycles: 1}}
  element: {order: %d}
  source: "(2*pi^2 - 0.25)*sin(pi*x + 0.3)*cos(pi*y + 0.2)*exp(z/2)"
  boundary:
    - {ids: [0, 3], type: dirichlet, value: "sin(pi*x + 0.3)*cos(pi*y + 0.2)*exp(z/2)"}
    - {ids: 1, type: neumann, value: "pi*cos(pi*x + 0.3)*cos(pi*y + 0.2)*exp(z/2)"}
    - {ids: 2, type: neumann, value: "pi*sin(pi*x + 0.3)*sin(pi*y + 0.2)*exp(z/2)"}
    - {ids: 4, type: neumann, value: "-0.5*sin(pi*x + 0.3)*cos(pi*y + 0.2)*exp(z/2)"}
    - {ids: 5, type: neumann, value: "0.5*sin(pi*x + 0.3)*cos(pi*y + 0.2)*exp(z/2)"}
output: {picture: false, report: false, vtk: {enabled: false}, quantities: {half: "flux.0 / 2", mixed: "flux.0 - 3 * probe.inside"}, probes: [{name: inside, at: [0.6, 0.4, 0.3]}]}
"""


@pytest.mark.parametrize("order, refinements, target", [(1, 2, "flux.0"), (2, 0, "flux.0"), (2, 1, "flux.0"), (2, 1, "half"), (2, 1, "mixed"), (1, 2, "mixed"), (3, 1, "flux.0")])
def test_a_flux_whose_boundary_meets_another_one_with_given_u(poisson, order, refinements, target):
    record, _ = run(poisson, MEETING % (refinements, target, order))
    pi = math.pi
    exact = -pi * math.cos(0.3) * (math.sin(pi + 0.2) - math.sin(0.2)) / pi * 2 * (math.exp(0.5) - 1) * -1
    inside = math.sin(pi * 0.6 + 0.3) * math.cos(pi * 0.4 + 0.2) * math.exp(0.15)
    exact = {"flux.0": exact, "half": exact / 2, "mixed": exact - 3 * inside}[target]
    error = abs(record["quantities"][target] - exact)
    assert error < 0.02 and 0.5 < record["adaptive"]["cycles"][0]["estimate"] / error < 2


JUMP = """
problem:
  mesh: {cells: [8, 8, 8], adaptive: {tolerance: 0.001%, max_unknowns: 15e3, max_cycles: 15}}
  coefficient: "(x - 0.25)*(y - 0.5) < 0 ? 1e6 : 1"
  source: "exp(-200*((x-0.3)^2 + (y-0.4)^2 + (z-0.5)^2))"
  boundary: [{ids: all, type: dirichlet, value: 0}]
solver: {preconditioner: multigrid, tolerance: 1e-10}
output: {vtk: {enabled: false}, picture: false}
"""


@pytest.mark.parametrize("order", [1, 2, 3])
def test_hanging_nodes_and_jumps_hardly_cost_iterations(poisson, order):
    record, _ = run(poisson, JUMP, f"problem.element.order={order}", f"problem.mesh.adaptive.max_unknowns={15e3 * order}")
    iterations = [cycle["iterations"] for cycle in record["adaptive"]["cycles"]]
    assert len(iterations) >= 8 and iterations[0] <= 11 and max(iterations) <= iterations[0] + 4, iterations


@pytest.mark.parametrize("order", [1, 2])
def test_a_mesh_with_too_many_unknowns_is_not_made(poisson, order):
    """Every limit that ends a run tells a lower bound of the next mesh, which the run without that limit has."""
    sets = (f"problem.element.order={order}", "problem.mesh.adaptive.coarsen_fraction=0.1", "solver.preconditioner=jacobi", "solver.tolerance=1e-6")
    record, _ = run(poisson, JUMP, *sets)
    counts = [cycle["dofs"] for cycle in record["adaptive"]["cycles"]]
    assert len(counts) >= 4
    for n, following in list(zip(counts, counts[1:]))[1:]:
        ended = run(poisson, JUMP, *sets, f"problem.mesh.adaptive.max_unknowns={n}")[0]["adaptive"]
        assert ended["ended"] == "unknowns" and ended["cycles"][-1]["dofs"] == n
        told = re.search(r"the next mesh has (at least )?([\d ]+) unknowns", ended["reason"])
        assert told, ended["reason"]
        least = int(told[2].replace(" ", ""))
        assert n < least <= following and (told[1] or least == following)


FALLING = "exp(-20*x)"  # falls within a cell of the first mesh
REST = "{ids: all, type: neumann, value: 0}"


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(("target", "data", "exact"), [
    ("mean", f"boundary: [{{ids: 4, type: dirichlet, value: 0}}, {{ids: 5, type: dirichlet, value: '{FALLING}'}}, {REST}]", 0.025),
    ("flux.4", f"boundary: [{{ids: 4, type: dirichlet, value: 0}}, {{ids: 5, type: dirichlet, value: '{FALLING}'}}, {REST}]", 0.05),
    ("flux.0", f"boundary: [{{ids: 0, type: dirichlet, value: 0}}, {{ids: 5, type: neumann, value: 'exp(-20*(1 - x))'}}, {REST}]", 0.05),
    ("flux.0", f"source: '{FALLING}'\n  boundary: [{{ids: 0, type: dirichlet, value: 0}}, {REST}]", 0.05),
    ("integral_u", f"source: '{FALLING}'\n  boundary: [{{ids: all, type: robin, alpha: 0.1, value: 0}}]", 0.0833),
    ("integral_u", "boundary: [{ids: 4, type: robin, alpha: 1, value: 0}, "
                   f"{{ids: 5, type: robin, alpha: 1, value: '{FALLING}'}}, {REST}]", 0.025),
])
def test_targets_see_data_that_the_mesh_does_not_resolve(poisson, target, data, exact, order):
    record, _ = run(poisson, f"problem:\n  mesh: {{cells: [4, 4, 4], adaptive: {{target: {target}, tolerance: 1%}}}}\n"
                             f"  element: {{order: {order}}}\n  {data}\n")
    adaptive = record["adaptive"]
    assert adaptive["ended"] == "tolerance"
    for cycle in adaptive["cycles"]:  # "exact" leaves out exp(-20), and of the source with Robin's conditions what is below 0.1 %
        assert abs(cycle["value"] - exact) <= 2 * cycle["estimate"] + 1e-3 * exact, cycle
    assert abs(adaptive["cycles"][-1]["value"] - exact) < 0.02 * exact


BOUND = """
problem:
  mesh: {cells: [3, 3, 3], adaptive: {tolerance: 20%, estimator: equilibrated, max_cycles: 8}}
  coefficient: "x < 1/3 ? 1 : 10"
  source: "1"
  boundary: [{ids: [0, 1, 2, 3], type: dirichlet, value: 0}, {ids: [4], type: robin, alpha: 2, value: 1}, {ids: all, type: neumann, value: "z - x"}]
"""


def test_a_bound_is_told_as_one(poisson):
    record, done = run(poisson, BOUND)
    cycles = record["adaptive"]["cycles"]
    assert record["adaptive"]["ended"] == "tolerance" and len(cycles) > 1
    assert all(cycle["guaranteed"] is True and "not_guaranteed_because" not in cycle for cycle in cycles)
    assert record["errors_of"]["energy_norm"] == {"estimate": cycles[-1]["estimate"], "guaranteed": True}
    assert "(guaranteed)" in done.stdout and "(estimated)" not in done.stdout
    # A fine solution lies within all bounds. The norms of errors are those of differences of energies but for Robin's part.
    fine, _ = run(poisson, BOUND, "problem.element.order=3", "problem.mesh.adaptive.tolerance=1%", output="fine")
    for cycle in cycles:
        assert abs(fine["adaptive"]["cycles"][-1]["value"] - cycle["value"]) < cycle["estimate"] + fine["adaptive"]["cycles"][-1]["estimate"]
    assert fine["adaptive"]["cycles"][-1]["estimate"] < 0.3 * cycles[-1]["estimate"]


@pytest.mark.parametrize("sets, why", [(("problem.coefficient=1 + x",), "k varies inside cells"),
                                       (("problem.source='x < 0.4 ? 1 : 2'",), "the source may jump inside cells"),
                                       (("problem.source='exp(-1000*x)'",), "the mesh is too coarse for the source"),
                                       (("problem.mesh.generator=hyper_ball",), "some cells are no parallelepipeds")])
def test_why_an_estimate_is_no_bound(poisson, sets, why):
    text = BOUND
    if "hyper_ball" in sets[0]:
        text, sets = """
problem:
  mesh: {generator: hyper_ball, adaptive: {tolerance: 1%, estimator: equilibrated}}
  source: "1"
  boundary: [{ids: all, type: dirichlet, value: 0}]
""", ()
    record, done = run(poisson, text, *sets, "problem.mesh.adaptive.max_cycles=2")
    for cycle in record["adaptive"]["cycles"]:
        assert cycle["guaranteed"] is False and cycle["not_guaranteed_because"] == why
    assert record["errors_of"]["energy_norm"]["guaranteed"] is False
    assert done.stdout.count(f"the estimate is no proven bound: {why}") == 1 and "(guaranteed)" not in done.stdout


def test_bounds_are_of_the_energy_norm_only(poisson):
    done = run(poisson, BOUND, "problem.mesh.adaptive.target=mean", code=1)
    assert "problem.mesh.adaptive.estimator" in done.stderr and "energy norm" in done.stderr


@pytest.mark.parametrize("order, exponent", [(1, 1 / 3), (2, 2 / 3)])
def test_an_edge_costs_no_order(poisson, order, exponent):
    """The rate of smooth solutions, N^(-p/3), where equal cells have N^(-2/9)."""
    record, _ = run(poisson, CORNER, f"problem.element.order={order}", "problem.mesh.adaptive.tolerance=0.1%",
                    f"problem.mesh.adaptive.max_unknowns={20e3 * order}")
    assert record["adaptive"]["ended"] == "unknowns" and len(record["warnings"]) == 1
    assert rate(record["adaptive"]["cycles"], "error") < -0.85 * exponent, record["adaptive"]["cycles"]


@pytest.mark.parametrize("target", ["flux.heater", "flux.4", "probe.tip", "mean", "integral_u", "max"])
def test_a_target_has_the_error_that_is_told(poisson, target):
    fine, _ = run(poisson, PLATE, "problem.element.order=2", "problem.mesh.adaptive.tolerance=0.02%", "problem.mesh.adaptive.target=" +
                  ("flux.heater" if target == "max" else target), "problem.mesh.adaptive.max_unknowns=20e3", output="fine")
    record, _ = run(poisson, PLATE, f"problem.mesh.adaptive.target={target}", "problem.mesh.adaptive.tolerance=1%")
    adaptive = record["adaptive"]
    exact = fine["quantities"][target] if target != "max" else 1
    last = adaptive["cycles"][-1]
    assert adaptive["ended"] == "tolerance" and last["value"] == pytest.approx(record["quantities"][target], rel=1e-9)
    assert abs(last["value"] - exact) <= 3 * last["estimate"] + 1e-3 * abs(exact)
    assert last["estimate"] <= 0.01 * abs(last["value"])


def test_fluxes_balance_on_every_mesh(poisson):
    record, _ = run(poisson, PLATE, "problem.source=x*y", "problem.mesh.adaptive.max_cycles=4", "problem.mesh.adaptive.tolerance=0.01%")
    q = record["quantities"]
    assert sum(value for name, value in q.items() if name.startswith("flux.")) == pytest.approx(q["integral_f"], abs=1e-9)
    assert len(record["adaptive"]["cycles"]) == 4 and record["adaptive"]["ended"] == "cycles"


@pytest.mark.parametrize("order", [1, 2, 3])
def test_linear_functions_are_exact(poisson, order):
    record, _ = run(poisson, """
problem:
  mesh: {cells: [3, 2, 2], adaptive: {tolerance: 1e-30, max_cycles: 3, marking: fixed_fraction, fraction: 0.2, coarsen_fraction: 0.1}}
  coefficient: "2"
  boundary: [{ids: all, type: dirichlet, value: "x + 2*y - 3*z"}]
  exact: "x + 2*y - 3*z"
""", f"problem.element.order={order}")
    assert record["errors"]["linf"] < 1e-11
    for side, flux in enumerate((2, -2, 4, -4, -6, 6)):
        assert record["quantities"][f"flux.{side}"] == pytest.approx(flux, abs=1e-9)


FEW = "problem.mesh.adaptive.max_cycles=4"


@pytest.fixture(scope="module")
def default_flux(tmp_path_factory):
    record, _ = run(Poisson(tmp_path_factory.mktemp("default")), PLATE, FEW)
    return record["quantities"]["flux.heater"]


@pytest.mark.parametrize("sets", [("matrix.format=crs_t",), ("matrix.format=sell_c_sigma",), ("matrix.format=cod_sell",), ("solver.preconditioner=ic0",),
                                  ("solver.preconditioner=ilu0", "solver.method=bicgstab"), ("solver.preconditioner=multigrid",), ("solver.preconditioner=jacobi",)])
def test_formats_and_preconditioners(poisson, default_flux, sets):
    record, _ = run(poisson, PLATE, *sets, FEW)
    assert record["status"] == "converged" and len(record["adaptive"]["cycles"]) > 2
    # Cells with equal errors stand in an order that rounding decides, so that meshes may differ by some cells.
    assert record["quantities"]["flux.heater"] == pytest.approx(default_flux, rel=1e-4)


def test_the_same_mesh_for_any_number_of_threads(poisson):
    cycles = []
    for threads in (1, 2):
        config = poisson.write(PLATE.replace("tolerance: 2%", "tolerance: 2%, max_cycles: 6"))
        poisson("run", config, "--output", f"t{threads}", "--threads", threads, *QUIET)
        cycles.append([(c["cells"], c["value"], c["estimate"]) for c in poisson.record(f"t{threads}")["adaptive"]["cycles"]])
    assert cycles[0] == cycles[1]


def test_files_have_levels_and_estimator(poisson):
    from vtkmodules.vtkIOXML import vtkXMLUnstructuredGridReader

    poisson("run", poisson.write(PLATE), "--output", "out", "--set", "problem.mesh.adaptive.keep_cycles=true", "--set", "problem.mesh.adaptive.tolerance=5%")
    record = poisson.record()
    n = len(record["adaptive"]["cycles"])
    assert n > 1
    for name in ["solution.vtu"] + [f"cycle_{i}.vtu" for i in range(1, n + 1)]:
        assert name in record["files"]
        reader = vtkXMLUnstructuredGridReader()
        reader.SetFileName(str(poisson.directory / "out" / name))
        reader.Update()
        grid = reader.GetOutput()
        level = grid.GetCellData().GetArray("level")
        estimator = grid.GetCellData().GetArray("estimator")
        assert level.GetNumberOfTuples() == estimator.GetNumberOfTuples() == grid.GetNumberOfCells()
        square = sum(estimator.GetValue(i) ** 2 for i in range(grid.GetNumberOfCells()))
        if name == "solution.vtu":
            assert level.GetRange()[1] == record["adaptive"]["cycles"][-1]["levels"]
            assert math.sqrt(square) == pytest.approx(record["adaptive"]["cycles"][-1]["estimate"], rel=1e-5)
    assert "cycles.pvd" in record["files"]


def test_a_sweep_has_it_without_more(poisson):
    poisson("sweep", poisson.write(PLATE + "sweep:\n  problem.mesh.adaptive.tolerance: [10%, 5%]\n"), "--output", "out", *QUIET)
    cases = [json.loads(path.read_text()) for path in sorted((poisson.directory / "out/cases").glob("*/result.json"))]
    assert [case["adaptive"]["ended"] for case in cases] == ["tolerance", "tolerance"]
    assert cases[0]["dofs"] < cases[1]["dofs"]


def test_an_interrupt_leaves_the_last_finished_cycle(poisson):
    code, errors = poisson.interrupted(poisson.command("run", poisson.write(CORNER), "--output", "out", *QUIET, "--set", "problem.mesh.adaptive.tolerance=0.001%",
                                                       "--set", "problem.mesh.adaptive.max_unknowns=5e6", "--set", "problem.mesh.adaptive.max_cycles=100"), "cycle 6")
    assert code == 130, errors
    record = poisson.record()
    assert record["status"] == "interrupted" and len(record["adaptive"]["cycles"]) >= 6
    assert record["dofs"] == record["adaptive"]["cycles"][-1]["dofs"] and record["errors"]["l2"] < 0.1


AUTO = "problem.mesh.adaptive.orders=auto"


def test_the_order_is_that_with_the_least_work(poisson):
    """A smooth solution takes a high order for a small tolerance, and none where the first mesh of order 1 will do."""
    smooth = """
problem:
  mesh: {cells: [2, 2, 2], adaptive: {tolerance: 1%, orders: auto}}
  source: "3*pi^2*sin(pi*x)*sin(pi*y)*sin(pi*z)"
  boundary: [{ids: all, type: dirichlet, value: 0}]
  exact: "sin(pi*x)*sin(pi*y)*sin(pi*z)"
"""
    record, done = run(poisson, smooth)
    tried = record["adaptive"]["orders"]
    assert [one["order"] for one in tried] == list(range(1, len(tried) + 1)) and record["adaptive"]["ended"] == "tolerance"
    best = min(tried, key=lambda one: one["work"])
    assert record["order"] == best["order"] >= 2 and f": {best['order']} is taken, with the least work" in done.stdout
    given, _ = run(poisson, smooth, "problem.mesh.adaptive.orders=given", f"problem.element.order={best['order']}", output="given")
    figures = lambda r: [(c["dofs"], c["estimate"]) for c in r["adaptive"]["cycles"]]  # noqa: E731
    assert figures(record) == figures(given) and record["quantities"] == given["quantities"]
    # Cells are refined where the error is, so that a mesh of the order that is taken needs no more unknowns than any other order.
    lowest, _ = run(poisson, smooth, "problem.mesh.adaptive.orders=given", output="lowest")
    assert record["dofs"] < 0.1 * lowest["dofs"]
    coarse, _ = run(poisson, smooth, "problem.mesh.adaptive.tolerance=99%", output="coarse")
    assert coarse["order"] == 1 and len(coarse["adaptive"]["orders"]) == 1
    assert record["device"] == given["device"]


SHELL = """
problem:
  mesh: {generator: hyper_shell, arguments: [[0, 0, 0], 0.3, 1.0, 6, true], adaptive: {tolerance: 1%}}
  boundary: [{ids: [0], type: dirichlet, value: "1/0.3"}, {ids: [1], type: dirichlet, value: 1}]
  exact: "1/sqrt(x^2 + y^2 + z^2)"
"""
# Of u = 1/r between spheres of radius 0.3 and 1.
OF_SHELL = {"flux.1": 4 * math.pi, "integral_u": 2 * math.pi * (1 - 0.3**2), "energy": 2 * math.pi * (1 / 0.3 - 1),
            "mean": 1.5 * (1 - 0.3**2) / (1 - 0.3**3)}


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_curved_cells_of_a_generator_have_any_order(poisson, order):
    record, _ = run(poisson, SHELL, f"problem.element.order={order}", f"problem.mesh.adaptive.tolerance={8 if order == 1 else 2}%")
    assert record["adaptive"]["ended"] == "tolerance" and record["order"] == order
    for cycle in record["adaptive"]["cycles"][1:]:
        assert 0.7 < cycle["estimate"] / cycle["error"] < 1.5, cycle


@pytest.mark.parametrize("target", OF_SHELL)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_what_the_mesh_misses_of_a_curved_surface_is_in_the_estimate(poisson, target, order):
    """The estimate is not of the mesh's polyhedron, but of the sphere: with order 1 most of the error of an integral is in what lies
    between the two. Parts of the error may cancel, but those of the estimate do not."""
    exact = OF_SHELL[target]
    record, _ = run(poisson, SHELL, f"problem.element.order={order}", f"problem.mesh.adaptive.target={target}")
    assert record["adaptive"]["ended"] == "tolerance"
    for cycle in record["adaptive"]["cycles"][1:]:
        assert abs(cycle["value"] - exact) < 1.6 * cycle["estimate"], cycle
    assert abs(record["adaptive"]["cycles"][-1]["value"] - exact) < 0.016 * exact


def test_heat_that_enters_through_a_curved_surface(poisson):
    """1 enters through each unit of the inner sphere, whose area order 1 makes too small: all of it, 4 pi 0.3^2, leaves by the outer one."""
    record, _ = run(poisson, SHELL, "problem.boundary=[{ids: [0], type: neumann, value: 1}, {ids: [1], type: dirichlet, value: 0}]",
                    "problem.exact=0.09*(1/sqrt(x^2 + y^2 + z^2) - 1)",
                    "problem.mesh.adaptive.target=flux.1")
    assert record["adaptive"]["ended"] == "tolerance"
    exact = 4 * math.pi * 0.3**2
    for cycle in record["adaptive"]["cycles"]:
        assert abs(cycle["value"] - exact) < 1.6 * cycle["estimate"], cycle


# Of the same problem, u = 0.09 (1/r - 1): on the inner sphere, and what is made of it.
HEATED = {"mean.0": 0.21, "integral_u.0": 0.21 * 4 * math.pi * 0.3**2, "resistance": 0.21 / (4 * math.pi * 0.3**2), "area": 4 * math.pi * 0.3**2 + 0.21}


@pytest.mark.parametrize("target", HEATED)
@pytest.mark.parametrize("order", [1, 2])
def test_a_target_on_a_boundary_and_one_of_the_user(poisson, target, order):
    record, _ = run(poisson, SHELL, "problem.boundary=[{ids: [0], type: neumann, value: 1}, {ids: [1], type: dirichlet, value: 0}]",
                    "problem.exact=0.09*(1/sqrt(x^2 + y^2 + z^2) - 1)", f"problem.element.order={order}",
                    "output.quantities={resistance: (mean.0 - mean.1)/flux.1, twice: 2*area.0, area: twice/2 + mean.0}",
                    f"problem.mesh.adaptive.target={target}")
    adaptive = record["adaptive"]
    assert adaptive["ended"] == "tolerance" and adaptive["cycles"][-1]["value"] == pytest.approx(record["quantities"][target], rel=1e-12)
    for cycle in adaptive["cycles"][1:]:
        assert abs(cycle["value"] - HEATED[target]) < 1.6 * cycle["estimate"], cycle
        assert cycle["estimate"] < 8 * abs(cycle["value"] - HEATED[target]), cycle


@pytest.mark.parametrize(("target", "exact"), [("mean.core", 2 * (math.e - math.sqrt(math.e))), ("integral_u.core", math.e - math.sqrt(math.e)),
                                               ("integral_u.material.0", math.sqrt(math.e) - 1), ("mean.5", math.e - 1), ("mean.4", math.e - 1),
                                               ("own", 4 * (math.e - math.sqrt(math.e))**2 / math.exp(0.3) - math.e)])
def test_a_target_in_a_material_and_on_a_side(poisson, target, exact):
    """u = e^x, from half of a box on and on sides: where it is given, and where its flux is."""
    text = """
problem:
  mesh: {cells: [4, 2, 2], regions: [{name: core, where: x > 0.5}], adaptive: {tolerance: 0.2%}}
  source: "-exp(x)"
  boundary: [{ids: [0, 4], type: dirichlet, value: exp(x)}, {ids: [1], type: robin, alpha: 1, value: 2*exp(1)}, {ids: all, type: neumann, value: 0}]
output: {probes: [{name: tip, at: [0.3, 0.4, 0.5]}], quantities: {own: mean.core^2/probe.tip - mean.1}}
"""
    record, _ = run(poisson, text, f"problem.mesh.adaptive.target={target}")
    assert record["adaptive"]["ended"] == "tolerance"
    for cycle in record["adaptive"]["cycles"]:
        assert abs(cycle["value"] - exact) < 1.6 * cycle["estimate"], cycle
    assert abs(record["adaptive"]["cycles"][-1]["value"] - exact) < 0.003 * abs(exact)


def test_where_u_is_constant_the_loop_ends_by_rounding(poisson):
    record, _ = run(poisson, SHELL, "problem.boundary=[{ids: all, type: dirichlet, value: 10/3}]", "problem.element.order=2", "problem.exact=10/3")
    assert record["adaptive"]["ended"] == "rounding" and len(record["adaptive"]["cycles"]) <= 4
    assert record["errors"]["linf"] < 1e-12


@pytest.mark.parametrize("name", sorted(path.stem for path in (ROOT / "configs/gallery").glob("*.yaml")))
def test_every_configuration_of_the_gallery(poisson, name):
    """All take `adaptive: {tolerance: 1%}`, but those whose analysis needs equal cells: they say so."""
    path = ROOT / f"configs/gallery/{name}.yaml"
    is_effective = "effective" in path.read_text()
    done = poisson("run", str(path), "--output", "out", *QUIET, "--set", "problem.mesh.adaptive.tolerance=1%", "--set", "problem.mesh.adaptive.max_cycles=3",
                   code=1 if is_effective else 0)
    if is_effective:
        assert "analysis.effective" in done.stderr and "adaptive" in done.stderr
        return
    adaptive = poisson.record()["adaptive"]
    assert adaptive["ended"] in ("tolerance", "cycles") and adaptive["cycles"][-1]["estimate"] > 0


def test_the_order_is_chosen_on_curved_cells_too(poisson):
    record, _ = run(poisson, SHELL, AUTO, "problem.mesh.adaptive.tolerance=2%")
    assert record["order"] > 1 and record["adaptive"]["ended"] == "tolerance"


def test_the_source_is_judged_on_the_last_mesh(poisson):
    """What a coarse mesh misses, and the last one does not, is no warning."""
    record, _ = run(poisson, PLATE, "problem.source=100*exp(-100*((x-0.3)^2+(y-0.4)^2+(z-0.5)^2))", "problem.element.order=2")
    assert record["warnings"] == [] and len(record["adaptive"]["cycles"]) > 3
    record, _ = run(poisson, PLATE, "problem.source=100*exp(-1000*((x-0.3)^2+(y-0.4)^2+(z-0.5)^2))", "problem.mesh.adaptive.max_cycles=2")
    assert sum("too coarse for this source" in warning for warning in record["warnings"]) == 1


@pytest.mark.parametrize("seconds", [0.1, 0.25, 0.4, 0.6])
def test_an_interrupt_at_any_time_leaves_a_whole_result(poisson, seconds):
    """In an estimate, too, which here takes most of the time: then the solution is of a mesh that was not judged."""
    code, errors = poisson.interrupted(poisson.command("run", poisson.write(CORNER), "--output", "out", *QUIET, "--set", "problem.mesh.adaptive.tolerance=0.001%",
                                                       "--set", "problem.mesh.adaptive.estimator=equilibrated", "--set", "problem.mesh.adaptive.max_unknowns=5e6"),
                                       "cycle 4", seconds)
    assert code == 130, errors
    record = poisson.record()
    cycles = record["adaptive"]["cycles"]
    assert record["status"] == "interrupted" and "complete" in record["reason"]
    judged = record["adaptive"]["ended"] == "interrupt"
    assert judged or record["adaptive"]["ended"] == "interrupted"
    assert (record["dofs"] == cycles[-1]["dofs"]) == judged and ("errors_of" in record) == judged


REFUSED = {
    "a target that is not there": (["problem.mesh.adaptive.target=flux.nose"], "problem.mesh.adaptive.target", "nose"),
    "a target that is no quantity": (["problem.mesh.adaptive.target=nonsense"], "problem.mesh.adaptive.target", "nonsense"),
    "a probe that is not there": (["problem.mesh.adaptive.target=probe.nose"], "problem.mesh.adaptive.target", "nose"),
    "a target that does not depend on u": (["problem.mesh.adaptive.target=volume.0"], "problem.mesh.adaptive.target", "does not depend on u"),
    "a target of one's own that is constant": (["problem.mesh.adaptive.target=own", "output.quantities={own: 2*area.heater}"], "problem.mesh.adaptive.target", "does not depend on u"),
    "a target that is made of what has no estimate": (["problem.mesh.adaptive.target=own", "output.quantities={own: max.heater}"], "problem.mesh.adaptive.target", "made of 'max"),
    "a flux that is given": (["problem.mesh.adaptive.target=flux.0"], "problem.mesh.adaptive.target", "flux.0"),
    "matrix_free": (["matrix.format=matrix_free"], "matrix.format", "hanging"),
    "a bound with periodic boundaries": (["problem.boundary=[{ids: [0, 1], type: periodic}, {ids: all, type: dirichlet, value: 0}]", "problem.mesh.adaptive.estimator=equilibrated"],
                                         "problem.mesh.adaptive.estimator", "periodic"),
    "a flux through periodic boundaries": (["problem.boundary=[{ids: [0, 1], type: periodic, value: 1}, {ids: all, type: dirichlet, value: x}]", "problem.mesh.adaptive.target=flux.0"],
                                           "problem.mesh.adaptive.target", "periodic"),
    "a tolerance of 0": (["problem.mesh.adaptive.tolerance=0"], "problem.mesh.adaptive.tolerance", "0.1%"),
    "a tolerance of all": (["problem.mesh.adaptive.tolerance=100%"], "problem.mesh.adaptive.tolerance", "0.1%"),
    "a key without the tolerance": (["problem.mesh.adaptive={max_cycles: 3}"], "problem.mesh.adaptive.max_cycles", "tolerance"),
    "an order that is given and found": ([AUTO, "problem.element.order=2"], "problem.element.order", "orders: auto"),
    "an image": (["output.vtk={enabled: true, format: image}"], "output.vtk.format", "box"),
}


def test_check_of_a_sweep_looks_at_the_target_of_every_case(poisson):
    sweep = "sweep: {problem.mesh.adaptive.target: [flux.heater, mean.nose]}\n"
    done = poisson("check", poisson.write(PLATE.replace("boundaries: [{name: heater, where: \"z > 0.99 && x < 0.5\"}]", "").replace("names: [heater]", "ids: [5]")
                                          + sweep.replace("heater", "5")), code=1)
    assert "1 of 2 cases are not valid" in done.stderr and "no boundary and no material 'nose'" in done.stderr


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_go_is_refused_by_name(poisson, case):
    sets, key, word = REFUSED[case]
    done = run(poisson, PLATE, *sets, code=1)
    assert key in done.stderr and word in done.stderr, done.stderr
    if case not in ("a target of one's own that is constant", "a target that is made of what has no estimate", "a flux that is given",
                    "a flux through periodic boundaries", "a target where u is fixed nowhere"):  # which the solution tells
        checked = poisson("check", poisson.write(PLATE), *[word for s in sets for word in ("--set", s)], code=1)
        assert checked.stderr.splitlines()[-1] == done.stderr.splitlines()[-1]


def adaptive_cycles(record, *keys):
    return [[cycle[key] for key in keys] for cycle in record["adaptive"]["cycles"]]


@pytest.mark.parametrize("order, estimator", [(1, "local_problems"), (2, "local_problems"), (1, "residual"), (3, "local_problems")])
def test_a_periodic_medium_does_not_know_where_it_begins(poisson, order, estimator):
    """A cube of high k in the middle, or in the eight corners: the same meshes, values and estimates, cycle by cycle."""
    text = """
problem:
  mesh:
    cells: [4, 4, 4]
    adaptive: {tolerance: 0.1%, max_cycles: 5, coarsen_fraction: 0.1}
  coefficient: "if((x-0.25)*(x-0.75) < 0 && (y-0.25)*(y-0.75) < 0 && (z-0.25)*(z-0.75) < 0, 100, 1)"
  boundary:
    - {ids: [0, 1], type: periodic, value: 1}
    - {ids: [2, 3], type: periodic}
    - {ids: [4, 5], type: periodic}
"""
    sets = [f"problem.element.order={order}", f"problem.mesh.adaptive.estimator={estimator}"]
    if order == 3:
        sets.append("problem.mesh.adaptive.max_cycles=3")
    one, _ = run(poisson, text, *sets)
    other, _ = run(poisson, text.replace("< 0", "> 0"), *sets)
    assert adaptive_cycles(one, "cells") == adaptive_cycles(other, "cells")
    assert one["dofs"] < other["dofs"]  # the corners are on the sides, whose nodes count twice
    for a, b in zip(adaptive_cycles(one, "value", "estimate"), adaptive_cycles(other, "value", "estimate")):
        assert a == pytest.approx(b, rel=1e-8)
    quantities = one["quantities"]
    assert quantities["energy"] == pytest.approx(quantities["flux.0"] / 2, rel=1e-8)
    assert quantities["flux.0"] == pytest.approx(-quantities["flux.1"], rel=1e-8)
    cycles = one["adaptive"]["cycles"]
    assert cycles[-1]["estimate"] < 0.7 * cycles[0]["estimate"] and cycles[-1]["value"] < cycles[0]["value"]


@pytest.mark.parametrize("target", ["", "flux.heater", "energy"])
@pytest.mark.parametrize("order", [1, 2])
def test_periodic_sides_of_what_does_not_depend_on_them_are_insulated_ones(poisson, order, target):
    sides = "    - {ids: [2, 3], type: periodic}\n"
    text = PLATE.replace("    - {ids: all", sides + "    - {ids: all").replace("type: robin, alpha: 3", "type: dirichlet")
    sets = [f"problem.element.order={order}", "problem.mesh.adaptive.max_cycles=5", "problem.mesh.adaptive.tolerance=1e-6",
            f"problem.mesh.adaptive.target={target}"]
    periodic, _ = run(poisson, text, *sets)
    insulated, _ = run(poisson, text.replace(sides, ""), *sets)
    assert adaptive_cycles(periodic, "dofs") == adaptive_cycles(insulated, "dofs") and len(periodic["adaptive"]["cycles"]) == 5
    for a, b in zip(adaptive_cycles(periodic, "value", "estimate"), adaptive_cycles(insulated, "value", "estimate")):
        assert a == pytest.approx(b, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("shape, order", [(2, 1), (2, 2), (3, 2), (3, 3)])
def test_curved_cells_of_a_file_keep_their_shape(poisson, shape, order):
    from test_curved import write_ring

    write_ring(poisson.directory / "ring.vtu", shape)
    text = """
problem:
  mesh: {file: ring.vtu, boundaries: [{name: inner, where: "x^2 + y^2 < 1.1"}, {name: outer, where: "x^2 + y^2 > 3.8"}]}
  boundary:
    - {names: [outer], type: dirichlet, value: 1}
    - {names: [inner], type: dirichlet, value: 0}
    - {ids: all, type: neumann, value: 0}
"""
    equal, _ = run(poisson, text, f"problem.element.order={order}")
    record, _ = run(poisson, text, f"problem.element.order={order}", "problem.mesh.adaptive={tolerance: 1e-9, max_cycles: 4, target: flux.inner}")
    parts = [name for name in equal["quantities"] if name.startswith("volume.")]
    for name in [*parts, "area.inner", "area.outer"]:
        assert record["quantities"][name] == pytest.approx(equal["quantities"][name], rel=1e-9 if name in parts else 1e-4)
    assert record["quantities"]["flux.inner"] == pytest.approx(math.pi / 4 / math.log(2), rel=0.02)
    assert record["quantities"]["flux.inner"] == pytest.approx(-record["quantities"]["flux.outer"], rel=1e-9)
