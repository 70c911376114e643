"""Periodic boundaries on several ranks: the system of one, whatever is cut and joined."""

import pytest
from conftest import ROOT, read_vtk
from ranks import both, compare_records, errors_told, on_ranks, pytestmark, read_pieces, values  # noqa: F401

QUIET = "output: {picture: false, report: false}\nsolver: {preconditioner: jacobi}\n"
TWO_MATERIALS = ROOT / "meshes/two_materials.msh"


def compare(poisson, text, n, *settings):
    """The records of both, which agree."""
    one, other = both(poisson, QUIET + text, n, *settings)
    compare_records(one, other, n)
    return one, other


def box(cells, pairs, rest="dirichlet", order=1):
    joined = "".join(f"    - {{ids: {pair}, type: periodic, value: '{value}'}}\n" for pair, value in pairs)
    return f"""
problem:
  mesh: {{generator: box, extent: [1, 1.5, 2], cells: {cells}}}
  element: {{order: {order}}}
  coefficient: "1 + 0.5*sin(2*pi*x)"
  source: "cos(2*pi*x)*sin(pi*y) + z*z*(2 - z) - 2/3"
  boundary:
{joined}    - {{ids: all, type: {rest}, value: "{'0.5*z' if rest == 'dirichlet' else '0'}"}}
  exact: "sin(2*pi*x)*y"
"""


X, Y, Z = ([0, 1], "0"), ([3, 2], "0"), ([4, 5], "0")


@pytest.mark.parametrize("n, pairs", [(2, [X]), (3, [Y]), (2, [Z]), (5, [X, Y]), (3, [X, Z]), (5, [Y, Z])],
                         ids=["x", "y", "z", "xy", "xz", "yz"])
def test_directions_of_a_box(poisson, n, pairs):
    text = box([7, 6, 8], pairs)
    compare(poisson, text, n)
    one, pieces = read_vtk(poisson.directory / "one/solution.vti"), read_pieces(poisson.directory / "ranks/solution.pvti")
    assert [v[0] for v in values(pieces, "u")] == pytest.approx([v[0] for v in values(one, "u")], rel=1e-8, abs=1e-10)
    for a, b in zip(values(one, "flux", cells=True), values(pieces, "flux", cells=True)):
        assert b == pytest.approx(a, rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("n, pairs, jump", [(2, [X, Y, Z], "0"), (5, [X, Y, Z], "1.5"), (3, [X, Z], "1.5"), (3, [Y], "0")],
                         ids=["xyz", "xyz, jump", "xz, jump", "y"])
def test_without_dirichlet_values(poisson, n, pairs, jump):
    pairs = [(pairs[0][0], jump), *pairs[1:]]
    one, other = compare(poisson, box([6, 5, 7], pairs, "neumann"), n)
    assert other["quantities"]["mean"] == pytest.approx(0, abs=1e-10)
    if jump != "0":
        assert other["quantities"]["max"] - other["quantities"]["min"] > 1


@pytest.mark.parametrize("n, order, drive", [(2, 1, "plates"), (3, 2, "plates"), (3, 1, "jump")])
def test_fluxes_are_twice_the_energy(poisson, n, order, drive):
    """What reaches a plate over the edges that it shares with periodic sides is part of its flux."""
    sides = "{ids: [0, 1], type: periodic, value: '%s'}, {ids: [3, 2], type: periodic}" % (0 if drive == "plates" else 2)
    plates = "{ids: [4], type: dirichlet, value: '0'}, {ids: [5], type: dirichlet, value: '1'}"
    text = f"""
problem:
  mesh: {{cells: [6, 5, 4]}}
  element: {{order: {order}}}
  coefficient: "1 + 9*((x - 0.5)^2 + (y - 0.5)^2 + (z - 0.5)^2 < 0.09) + x"
  boundary: [{sides}, {plates if drive == "plates" else "{ids: [4, 5], type: periodic}"}]
  exact: "z"
"""
    _, other = compare(poisson, text, n, "solver.tolerance=1e-14")
    q = other["quantities"]
    assert -(q["flux.5"] if drive == "plates" else 2 * q["flux.1"]) == pytest.approx(2 * q["energy"], rel=1e-12)
    assert q["flux.0"] == pytest.approx(-q["flux.1"], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("n, cells", [(2, [1, 1, 4]), (7, [2, 2, 2]), (4, [1, 3, 1]), (4, [3, 1, 2])])
def test_blocks_of_one_cell(poisson, n, cells):
    compare(poisson, box(cells, [X, Z]), n)


@pytest.mark.parametrize("settings", [
    ["problem.element.order=2"], ["problem.element.order=3"], ["matrix.format=csr"], ["matrix.format=sell_c_sigma"],
    ["solver.precision=refined"], ["solver.method=bicgstab"], ["solver.preconditioner=none"],
    ["problem.mesh.growth=[1.2, 1, 1.5]"]])
def test_orders_formats_and_precisions(poisson, settings):
    config = box([6, 7, 5], [X, ([4, 5], "1 + x*0")])
    if "bicgstab" not in settings[0]:
        compare(poisson, config, 3, *settings)
        return
    text = poisson.write(QUIET + config)
    on_ranks(poisson, 3, "run", text, "--output", "out", "--quiet", "--backend", "cpu", "--set", settings[0])
    assert poisson.record()["status"] == "converged"


@pytest.mark.parametrize("n", [3])
def test_multigrid(poisson, n):
    config = poisson.write(QUIET + box([12, 12, 12], [X, Y]))
    words = ("run", config, "--quiet", "--backend", "cpu", "--set", "solver.preconditioner=multigrid")
    poisson(*words, "--output", "one")
    on_ranks(poisson, n, *words, "--output", "ranks")
    one, other = poisson.record("one"), poisson.record("ranks")
    assert other["status"] == "converged" and other["solver"]["residual_true"] <= 3e-12
    assert other["solver"]["iterations"] <= one["solver"]["iterations"] + 8
    assert other["quantities"]["energy"] == pytest.approx(one["quantities"]["energy"], rel=1e-9)


@pytest.mark.parametrize("n, refinements", [(2, 0), (5, 1), (3, 2)])
def test_a_mesh_file(poisson, n, refinements):
    text = f"""
problem:
  mesh: {{file: {TWO_MATERIALS}, refinements: {refinements}}}
  coefficient: {{1: "1", 2: "3"}}
  source: "y*z^2 - 1/6"
  boundary: [{{ids: [1, 2], type: periodic, value: "2"}}, {{ids: all, type: neumann, value: "0"}}]
  exact: "x + y"
"""
    one, other = compare(poisson, text, n)
    assert other["quantities"]["flux.2"] == pytest.approx(-1.5, rel=1e-9)


@pytest.mark.parametrize("n", [3])
@pytest.mark.parametrize("mesh", ["{cells: [5, 4, 6], ", f"{{file: {TWO_MATERIALS}, "], ids=["box", "file"])
def test_boundaries_by_name_and_dirichlet_values_that_reach_over(poisson, n, mesh):
    file = "file" in mesh
    long = 2 if file else 1
    text = f"""
problem:
  mesh: {mesh}boundaries: [{{name: left, where: "x < 0.01"}}, {{name: right, where: "x > {long - 0.01}"}}, {{name: held, where: "z > 0.999"}}]}}
  coefficient: {'{1: "1", 2: "3"}' if file else '"1"'}
  source: "1 + x + y*y"
  boundary:
    - {{names: [left, right], type: periodic}}
    - {{names: [held], type: dirichlet, value: "2"}}
    - {{ids: all, type: neumann, value: "0"}}
  exact: "x*z"
"""
    one, other = compare(poisson, text, n)
    assert other["quantities"]["flux.left"] + other["quantities"]["flux.right"] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("boundary, words", [
    ("[{ids: [0, 2], type: periodic}, {ids: all, type: dirichlet}]", ["not boundary 0 moved by a translation"]),
    ("[{ids: [0, 1], type: periodic, value: 'y'}, {ids: [2, 3], type: periodic}, {ids: all, type: dirichlet}]", ["contradict"]),
    ("[{ids: [0, 1], type: periodic, value: '1/x - 1/x'}, {ids: all, type: dirichlet}]", []),
])
def test_what_does_not_match_is_told_once(poisson, boundary, words):
    config = poisson.write("problem: {mesh: {cells: [4, 4, 4]}}")
    arguments = ("run", config, "--backend", "cpu", "--output", "out", "--set", f"problem.boundary={boundary}")
    code = 0 if not words else 1
    if code == 0:
        poisson(*arguments, "--quiet")
        on_ranks(poisson, 3, *arguments, "--quiet", "--overwrite")
        return
    alone = poisson(*arguments, code=1)
    done = on_ranks(poisson, 3, *arguments, code=1)
    assert [line.replace("rank 0: ", "") for line in errors_told(done)] == errors_told(alone) and len(errors_told(done)) == 1
    for word in words:
        assert word in done.stderr
