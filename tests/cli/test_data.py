"""What the data of a problem give reason to say: values that jump inside cells, sources that are lost, and more; `problem.quadrature`."""

import math

import numpy as np
import pytest
from conftest import array, read_vtk
from ranks import on_ranks

PLATES = """
output: {picture: false, report: false, vtk: {enabled: false}, probes: [{name: tip, at: [0.5, 0.5, 0.25]}]}
problem:
  mesh: {cells: [2, 2, 9]}
  boundary: [{ids: [4], type: dirichlet, value: 0}, {ids: [5], type: dirichlet, value: 1}, {ids: all, type: neumann, value: "0"}]
"""


def run(poisson, text, *sets, ranks=1, code=0):
    words = ["run", poisson.write(text), "--output", "out", "--overwrite", "--quiet", "--backend", "cpu", *[f"--set={s}" for s in sets]]
    poisson(*words, code=code) if ranks == 1 else on_ranks(poisson, ranks, *words, code=code)
    return poisson.record()


def warnings_on(record, key):
    return [w for w in record["warnings"] if key in w]


# The fifth of nine layers of cells, four of them, is cut in its middle; every route of the assembly.
@pytest.mark.parametrize("sets,ranks", [([], 1), (["matrix.format=half_cds"], 1), (["problem.element.order=2", "matrix.format=matrix_free"], 1),
                                        ([], 2)])
def test_a_coefficient_that_jumps_inside_cells_is_told(poisson, sets, ranks):
    record = run(poisson, PLATES, "problem.coefficient=if(z<0.5, 1, 100)", *sets, ranks=ranks)
    (told,) = warnings_on(record, "problem.coefficient")
    assert "of 4 cells" in told and "problem.mesh.regions" in told and "problem.quadrature" in told, told
    # Cells that end where it jumps, and a coefficient that varies smoothly: nothing to say.
    for smooth in (["problem.mesh.cells=[2, 2, 8]", "problem.coefficient=if(z<0.5, 1, 100)"], ["problem.coefficient=1 + z"]):
        assert not run(poisson, PLATES, *smooth, *sets, ranks=ranks)["warnings"]


def test_more_gauss_points_see_where_the_coefficient_jumps(poisson):
    # Through a layer of 9, of which 4.6 have k = 1: exact is 1 / (4.6 / 9 + 4.4 / 900).
    exact = 1 / (4.6 / 9 + 4.4 / 900)
    sets = ["problem.coefficient=if(z<4.6/9, 1, 100)"]
    found = [run(poisson, PLATES, *sets, f"problem.quadrature={n}")["quantities"] for n in (2, 5, 20)]
    flux = [-q["flux.5"] for q in found]
    assert len(set(flux)) == 3
    # In the layer that is cut u is linear, so that the mean of k counts there, with the share that the points see.
    for n, value in zip((2, 5), flux):
        share = {2: 1 / 2, 5: 0.5 + 0.2844444444444444 / 2}[n]
        assert value == pytest.approx(1 / (4 / 9 + 1 / 9 / (share + 100 * (1 - share)) + 4 / 900), rel=1e-10)
    for q in found:
        assert -q["flux.5"] == pytest.approx(2 * q["energy"], rel=1e-10)
    assert exact < min(flux)  # cells that are cut conduct too well in any case


def test_quadrature_needs_enough_points(poisson):
    for sets in (["problem.quadrature=2", "problem.element.order=2"], ["problem.quadrature=3", "matrix.format=matrix_free"]):
        done = poisson("run", poisson.write(PLATES), "--output", "out", *[f"--set={s}" for s in sets], code=1)
        assert "quadrature" in done.stderr, done.stderr
    order_two = ["problem.element.order=2", "problem.source=x*y*z"]
    usual, same = run(poisson, PLATES, *order_two), run(poisson, PLATES, *order_two, "problem.quadrature=3")
    assert same["quantities"]["energy"] == pytest.approx(usual["quantities"]["energy"], rel=1e-12)
    more = run(poisson, PLATES, *order_two, "problem.quadrature=6", ranks=2)
    assert more["quantities"]["energy"] == pytest.approx(usual["quantities"]["energy"], rel=1e-10)


@pytest.mark.parametrize("ranks", [1, 2])
def test_sources_and_patches_that_jump_inside_cells_are_told(poisson, ranks):
    source = run(poisson, PLATES, "problem.source=if(z < 0.52, 0, 1)", ranks=ranks)
    (told,) = warnings_on(source, "problem.source")
    assert "4 cells" in told
    # A patch of the area 0.3 on a side of 2 x 9 faces: two Gauss points of four in each of two columns are on it.
    text = PLATES.replace('value: "0"', 'value: "if(y < 0.3, 1, 0)"')
    patch = run(poisson, text, ranks=ranks)
    (told,) = warnings_on(patch, "problem.boundary[2].value")
    # Its sides are -x and +x, 0.3 each, and -y, all of it: 1.6; by the Gauss points 0.25 for each 0.3.
    assert "is 1.5 by" in told and "problem.mesh.boundaries" in told, told
    finer = float(told.split("about ")[1].split(" ")[0])
    assert finer == pytest.approx(1.6, abs=0.02)
    smooth = run(poisson, PLATES.replace('value: "0"', 'value: "sin(9*y)"'), "problem.source=sin(20*z)*sin(9*x)", ranks=ranks)
    assert not warnings_on(smooth, "jumps"), smooth["warnings"]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_is_lost_or_not_finite_is_told(poisson, ranks):
    lost = run(poisson, PLATES, "problem.point_sources=[{at: [0.5, 0.5, 0.4], value: 1}, {at: [0.3, 0.5, 1], value: 1}]", ranks=ranks)
    (told,) = [w for w in lost["warnings"] if "nothing of the source enters" in w]
    assert "problem.point_sources[1]" in told
    jump = run(poisson, PLATES.replace("ids: all, type: neumann", "ids: all, type: dirichlet"), ranks=ranks)
    (told,) = [w for w in jump["warnings"] if "Dirichlet values" in w]
    assert "1 of problem.boundary[1] and 0 of this one meet at 8 nodes" in told, told
    # On every cut between ranks, and where a source is on the rim of one face alone.
    for cells in ("[4, 1, 1]", "[1, 4, 1]", "[1, 1, 4]"):
        wall = run(poisson, PLATES.replace("ids: all, type: neumann", "ids: all, type: dirichlet"), f"problem.mesh.cells={cells}",
                   "problem.point_sources=[{at: [0, 0, 0.5], value: 1}]", ranks=ranks)
        (told,) = [w for w in wall["warnings"] if "Dirichlet values" in w and "meet" in w]
        assert f"meet at {4 if cells == '[1, 1, 4]' else 10} nodes" in told, told
        assert [w for w in wall["warnings"] if "nothing of the source enters" in w]
    none = run(poisson, PLATES, "output.quantities.bad=1/(flux.0 - flux.0)", ranks=ranks)
    (told,) = [w for w in none["warnings"] if "not a finite number" in w]
    assert "output.quantities.bad" in told


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_robin_conditions_that_hold_u_at_two_values_at_an_edge_are_told(poisson, ranks):
    text = """
parameters: {a: 1}
output: {picture: false, report: false, vtk: {enabled: false}}
problem:
  mesh: {cells: [8, 8, 2]}
  boundary:
    - {ids: [0], type: robin, alpha: a, value: a}
    - {ids: [2], type: robin, alpha: a, value: 0}
    - {ids: all, type: neumann, value: 0}
"""
    def told(*sets):
        return warnings_on(run(poisson, text, *sets, ranks=ranks), "alpha h / k")
    # h = 1/8: 2.9 and 3.1; over the order; over k.
    assert not told("parameters.a=23") and told("parameters.a=25")
    assert not told("parameters.a=47", "problem.element.order=2") and told("parameters.a=49", "problem.element.order=2")
    assert not told("parameters.a=100", "problem.coefficient=5")
    (one,) = told("parameters.a=240")
    assert "problem.boundary[1]" in one and "up to 30 where" in one and "0 and 1" in one and "at 3 nodes" in one, one
    assert "too large, by 5 to 16 %" in one and "take smaller cells" in one, one
    # With the same value far away nothing flows between them; opposite sides do not meet; a Dirichlet condition does.
    assert not told("parameters.a=240", "problem.boundary[1].value=a")
    assert not told("parameters.a=240", "problem.boundary[1].ids=[1]")
    plate = ["problem.boundary[1]={ids: [2], type: dirichlet, value: 0}"]
    assert told("parameters.a=17", *plate) and not told("parameters.a=15", *plate)
    named = ["problem.mesh.boundaries=[{name: hot, where: x < 1e-6}, {name: cold, where: y < 1e-6}]",
             "problem.boundary[0]={names: [hot], type: robin, alpha: a, value: a}",
             "problem.boundary[1]={names: [cold], type: robin, alpha: a, value: 0}"]
    (one,) = told("parameters.a=240", *named)
    assert "at 3 nodes" in one, one


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("condition, source", [("type: robin, alpha: 1e-12, value: 0", 1), ("type: dirichlet, value: 1", 1e-13)])
def test_fluxes_of_a_solution_that_is_constant_to_its_last_digits(poisson, condition, source, ranks):
    """u is 1.7e11, or 1: of its differences few digits are left, or none. All that the source gives flows out all the same."""
    record = run(poisson, f"""
output: {{picture: false, report: false, vtk: {{enabled: false}}}}
problem:
  mesh: {{cells: [8, 8, 8]}}
  source: {source}
  boundary: [{{ids: all, {condition}}}]
""", ranks=ranks)
    quantities = record["quantities"]
    assert record["status"] == "converged" and 0 < quantities["balance"] < 1e-6
    for side in range(6):
        assert quantities[f"flux.{side}"] == pytest.approx(source / 6, rel=1e-6)
    if source == 1:
        assert quantities["mean"] == pytest.approx(1e12 / 6, rel=1e-6)


def test_a_region_in_a_part_that_is_left_out_is_told(poisson):
    text = """
problem:
  mesh: {cells: [10, 2, 2], regions: [{name: wall, where: "x > 0.4 && x < 0.6"}, {name: lost, where: "x > 0.8"}]}
  coefficient: {wall: void, lost: 5, default: 1}
  boundary: [{ids: [0], type: dirichlet, value: 1}, {ids: all, type: neumann, value: 0}]
"""
    for ranks in (1, 2):
        words = ["run", poisson.write(text), "--output", "out", "--overwrite", "--quiet"]
        done = poisson(*words, code=1) if ranks == 1 else on_ranks(poisson, ranks, *words, code=1)
        assert "problem.mesh.regions[1].where" in done.stderr and "without the parts that touch no boundary where u is fixed" in done.stderr


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("mesh", ["{cells: [16, 16, 16]}", "{generator: hyper_rectangle, arguments: [[0, 0, 0], [1, 1, 1], true], refinements: 4}"])
def test_k_that_hides_between_gauss_points_is_told(poisson, mesh, ranks):
    def told(k, *sets):
        return warnings_on(run(poisson, PLATES, f"problem.mesh={mesh}", f"problem.coefficient={k}", *sets, ranks=ranks),
                           "between the Gauss points")
    (one,) = told("if(abs(z - 0.47) < 0.002, 1e-3, 1)")  # an insulating film in one of 16 layers of cells
    assert "problem.coefficient" in one and "problem.mesh.regions" in one, one
    n, looked_at = (int(one.split(text)[0].split()[-1]) for text in (" cells, of", " cells that were"))
    assert 120 < looked_at < 170 and looked_at / 32 < n < looked_at / 8, one
    assert told("[1, \"if(abs(x - 0.03) < 0.002, 50, 1)\", 1]")
    # Points that meet it, or a k that only varies; one that jumps is told as before.
    assert told("if(abs(z - 0.47) < 0.012, 1e-3, 1)") and not told("if(abs(z - 0.47) < 0.012, 1e-3, 1)", "problem.quadrature=8")
    assert not told("exp(8*x)") and not told("if(z < 0.47, 1, 100)") and not told("2 + sin(9*x)*cos(9*z)")


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_given_u_that_varies_between_nodes_is_told(poisson, ranks):
    def told(value, *sets):
        return warnings_on(run(poisson, PLATES, "problem.mesh.cells=[8, 8, 8]", f"problem.boundary[1].value={value}", *sets,
                               ranks=ranks), "too coarse for this value")
    spike = "exp(-1e4*((x - 0.56)^2 + (y - 0.44)^2))"
    (one,) = told(spike)
    assert "problem.boundary[1].value" in one
    mean = float(one.split("about ")[1].split(" ")[0])  # pi/1e4
    assert mean == pytest.approx(3.14e-4, rel=0.2)
    assert told("293 - " + spike) and told("sin(25*x)", "problem.element.order=1")
    assert not told("sin(25*x)", "problem.element.order=2")
    assert not told("sin(3.14*x)*sin(3.14*y)") and not told("x*x") and not told("1 + 0*x") and not told("1e6 + x")


def test_a_solution_outside_its_boundary_values_is_told(poisson):
    # Very flat cells beside a short plate: bilinear elements undershoot there.
    text = """
output: {picture: false, report: false, vtk: {enabled: false}}
problem:
  mesh: {cells: [20, 1, 2], extent: [1, 1, 20]}
  boundary: [{ids: [0], type: dirichlet, value: 0}, {ids: [4], type: dirichlet, value: 1}, {ids: all, type: neumann, value: 0}]
"""
    record = run(poisson, text)
    outside = record["quantities"]["min"] < -1e-6 or record["quantities"]["max"] > 1 + 1e-6
    assert outside == bool([w for w in record["warnings"] if "boundary values allow" in w]), record["warnings"]
    assert outside


CYLINDER = """
output: {picture: false, report: false, vtk: {enabled: false}}
problem:
  mesh: {generator: cylinder, arguments: [1.0, 1.0], refinements: 2}
  line_sources: [{from: [-1, 0, 0], to: [1, 0, 0], value: 2}]
  boundary: [{ids: [0], type: dirichlet, value: 0}, {ids: all, type: neumann, value: 0}]
"""


def test_a_line_source_on_the_rims_of_parts(poisson):
    one = run(poisson, CYLINDER)["quantities"]
    assert one["flux.0"] == pytest.approx(4, rel=1e-10)
    for n in (2, 3):
        assert run(poisson, CYLINDER, ranks=n)["quantities"]["energy"] == pytest.approx(one["energy"], rel=1e-9)


@pytest.mark.parametrize("ranks", [1, 2])
def test_points_beside_a_curved_surface_are_moved_onto_it(poisson, ranks):
    angle, r = math.pi / 16, 1.001  # a node of the surface is at r = 1
    at = f"[0, {r * math.cos(angle)}, {r * math.sin(angle)}]"
    record = run(poisson, CYLINDER, f"output.probes=[{{name: rim, at: {at}}}]", "problem.mesh.refinements=3", ranks=ranks)
    (told,) = warnings_on(record, "output.probes[0].at")
    assert "by 0.001; it was moved onto it" in told
    assert abs(record["quantities"]["probe.rim"]) < 1e-3  # u is 0 on the surface
    far = run_refused(poisson, "output.probes=[{name: rim, at: [0, 1.05, 0]}]", ranks)
    assert "outside the mesh" in far


def run_refused(poisson, setting, ranks):
    words = ["run", poisson.write(CYLINDER), "--output", "out", "--overwrite", "--backend", "cpu", f"--set={setting}"]
    return (poisson(*words, code=1) if ranks == 1 else on_ranks(poisson, ranks, *words, code=1)).stderr


# Two layers, k = 1 below z = 0.5 and 100 above; q flows down. Points in the interface see the gradient of the layer with the lower id.
LAYERS = """
output:
  picture: false
  report: false
  vtk: {enabled: false}
  probes: [{name: low, at: [0.4, 0.6, 0.49]}, {name: on, at: [0.5, 0.5, 0.5]}, {name: high, at: [0.4, 0.6, 0.51]}]
  lines: [{name: up, from: [0.3, 0.5, 0], to: [0.3, 0.5, 1], points: 5}]
  planes: [{name: cut, origin: [0, 0, 0.5], first: [1, 0, 0], second: [0, 1, 0], points: [3, 4]}]
problem:
  mesh: {cells: [4, 4, 4], regions: [{name: board, where: "z < 0.5"}, {name: die, where: "z > 0.5"}]}
  coefficient: {board: 1, die: 100}
  boundary: [{ids: [4], type: dirichlet, value: 0}, {ids: [5], type: dirichlet, value: 1}, {ids: all, type: neumann, value: "0"}]
"""
BY_EXPRESSION = ["problem.mesh.regions=[]", "problem.coefficient=if(z<0.5, 1, 100)"]
REVERSED = ['problem.mesh.regions=[{name: die, where: "z > 0.5"}, {name: board, where: "z < 0.5"}]']
LATTICE = ["problem.mesh={generator: hyper_cube, refinements: 2, arguments: [0, 1, true], regions: [{name: board, where: \"z < 0.5\"}, "
           "{name: die, where: \"z > 0.5\"}]}"]


@pytest.mark.parametrize("sets,ranks,side", [([], 1, "'board'"), ([], 3, "'board'"), (["problem.element.order=3"], 2, "'board'"),
                                             (REVERSED, 1, "'die'"), (REVERSED, 2, "'die'"), (LATTICE, 1, "'board'"),
                                             (LATTICE, 3, "'board'"), (BY_EXPRESSION, 1, "k = 1"), (BY_EXPRESSION, 2, "k = 1")])
def test_a_gradient_between_two_materials_says_its_side(poisson, sets, ranks, side):
    record = run(poisson, LAYERS, *sets, ranks=ranks)
    q, found = 1 / (0.5 + 0.005), record["quantities"]
    on = 100 if side == "'die'" else 1
    for name, k in (("low", 1), ("on", on), ("high", 100)):
        assert found[f"probe.{name}.gradient"] == pytest.approx([0, 0, q / k], abs=1e-9)
        assert found[f"probe.{name}.flux"] == pytest.approx([0, 0, -q], abs=1e-8)
    (told,) = warnings_on(record, "output.probes[1].at")
    assert "(0.5, 0.5, 0.5)" in told and f"are those in {'the cell with ' if '=' in side else ''}{side}" in told and "k = 100" in told, told
    (told,) = warnings_on(record, "output.planes[0]")  # which lies in the interface; the line crosses it
    assert "12 of 12 points lie where the gradient jumps" in told, told
    assert len(record["warnings"]) == 2
    for name in ("line_up", "plane_cut"):
        rows = (poisson.directory / "out" / f"{name}.csv").read_text().splitlines()
        head = rows[0].split(",")
        for row in rows[1:]:
            values = dict(zip(head, map(float, row.split(","))))
            k = 1 if values["z"] < 0.5 else 100 if values["z"] > 0.5 else on
            assert values["gradient_z"] == pytest.approx(q / k, abs=1e-9) and values["flux_z"] == pytest.approx(-q, abs=1e-8)


def test_no_word_where_the_gradient_is_one(poisson):
    for sets in (["problem.coefficient=2"], ["problem.coefficient={board: 3, die: 3}"],
                 ["problem.coefficient=1 + z*z", "problem.mesh.regions=[]"]):
        assert not run(poisson, LAYERS, *sets)["warnings"]


def test_the_flux_at_nodes_between_cells_where_an_expression_jumps(poisson):
    run(poisson, LAYERS, *BY_EXPRESSION, "output.vtk={enabled: true, fields: [u, flux_points]}", "output.surface=true")
    expected = [0, 0, -1 / (0.5 + 0.005)]
    for name in ("solution.vti", "surface.vtp"):
        grid = read_vtk(poisson.directory / "out" / name)
        flux = array(grid.GetPointData(), "flux_points" if "vti" in name else "flux")
        assert flux == pytest.approx(np.tile(expected, (grid.GetNumberOfPoints(), 1)), abs=1e-8)


# On a line r = 1 of a round surface; the boundary takes all that enters, as alpha is 1: the integral of u over it is that of the sources.
ROUND = CYLINDER.replace("line_sources: [{from: [-1, 0, 0], to: [1, 0, 0], value: 2}]", "SOURCES").replace(
    "{ids: [0], type: dirichlet, value: 0}, {ids: all, type: neumann, value: 0}", '{ids: all, type: robin, alpha: 1, value: "0"}')


def beside(refinements):
    """A place outside by 0.0012, over the middle of a chord of the circle."""
    angle = math.pi / 2**(refinements + 2)
    r = math.cos(angle) + 0.0012
    return f"{r * math.cos(angle)}, {r * math.sin(angle)}"


@pytest.mark.parametrize("refinements", [1, 2])
def test_sources_beside_a_curved_surface_are_moved_onto_it(poisson, refinements):
    text = ROUND.replace("SOURCES", f"point_sources: [{{at: [0, 0, 0], value: 1}}, {{at: [0, {beside(refinements)}], value: 3}}]")
    text = text.replace("refinements: 2", f"refinements: {refinements}")
    one = run(poisson, text)
    (told,) = warnings_on(one, "problem.point_sources[1].at")
    assert "is outside the mesh by 0.0012; it was moved onto it" in told and len(one["warnings"]) == 1
    found = one["quantities"]
    assert found["integral_f"] == 4 and sum(found[f"flux.{i}"] for i in range(3)) == pytest.approx(4, rel=1e-9)
    for n in (2, 3):
        record = run(poisson, text, ranks=n)
        assert [w for w in record["warnings"] if "sources" in w] == one["warnings"]
        for name in ("energy", "integral_u", "max", "integral_f"):
            assert record["quantities"][name] == pytest.approx(found[name], rel=1e-8)


def test_a_line_source_along_a_curved_surface(poisson):
    at = beside(2)
    text = ROUND.replace("SOURCES", f"line_sources: [{{from: [-1, {at}], to: [1, {at}], value: 2}}]")
    one = run(poisson, text)
    (told,) = warnings_on(one, "problem.line_sources[0]")
    assert "partly outside the mesh, by 0.0012 at most" in told
    assert one["quantities"]["integral_f"] == pytest.approx(4, rel=1e-12)
    assert sum(one["quantities"][f"flux.{i}"] for i in range(3)) == pytest.approx(4, rel=1e-9)
    for n in (2, 3):
        assert run(poisson, text, ranks=n)["quantities"]["energy"] == pytest.approx(one["quantities"]["energy"], rel=1e-8)


@pytest.mark.parametrize("ranks", [1, 2])
def test_sources_beside_a_box(poisson, ranks):
    text = PLATES.replace("{ids: [5], type: dirichlet, value: 1}, ", "") + "  point_sources: [{at: [0.5, 1.0001, 0.5], value: 1}]\n"
    record = run(poisson, text, ranks=ranks)
    assert record["quantities"]["flux.4"] == pytest.approx(1, rel=1e-10)
    (told,) = warnings_on(record, "problem.point_sources[0].at")
    assert "by 0.0001;" in told


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize(("value", "is_told"), [
    ("exp(-((x - 0.5)^2 + (y - 0.5)^2)/2e-4)", True), ("exp(-((x - 0.5)^2 + (y - 0.5)^2)/1e-3)", True),
    ("exp(-((x - 0.5)^2 + (y - 0.5)^2)/1e-2)", False), ("x < 0.05 && y < 0.05 ? 100 : 0", True), ("sin(20*x)*y", False), ("exp(-3*x)", False)])
@pytest.mark.parametrize("condition", ["neumann", "robin"])
def test_a_mesh_that_is_too_coarse_for_a_boundary_value_is_told(poisson, value, is_told, condition, ranks):
    """Gauss points miss a narrow peak, or take it for a wide one."""
    record = run(poisson, f"""
output: {{picture: false, report: false, vtk: {{enabled: false}}}}
problem:
  mesh: {{cells: [8, 8, 8]}}
  boundary:
    - {{ids: [4], type: dirichlet, value: 0}}
    - {{ids: [5], type: {condition}, {"alpha: 1, " if condition == "robin" else ""}value: "{value}"}}
    - {{ids: all, type: neumann, value: 0}}
""", ranks=ranks)
    told = warnings_on(record, "problem.boundary[1].value")
    assert len(told) == is_told
    assert all("too coarse for this value" in w or "?" in value and "the value jumps" in w for w in told)
