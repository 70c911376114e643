"""Sources by material, with a given total, at points and along lines."""

import math

import pytest
import ranks
from conftest import ROOT

HEAD = """
output: {picture: false, vtk: {enabled: false}}
problem:
  mesh: {cells: [8, 8, 8]}
"""


def run(poisson, text, *sets, name="out", **more):
    return poisson("run", poisson.write(HEAD + text), "--output", name, "--overwrite", "--quiet", *[f"--set={s}" for s in sets], **more)


def outflow(record):
    return sum(value for name, value in record["quantities"].items() if name.startswith("flux."))


POINT = """
  coefficient: "1 + x"
  source: "y"
  point_sources: [{at: [0.3, 0.4, 0.55], value: 2}, {at: [0.999, 0.5, 0.5], value: -1}]
  line_sources: [{from: [0.2, 0.2, 0.1], to: [0.7, 0.3, 0.9], value: "x"}]
  boundary: [{ids: all, type: dirichlet, value: "0"}]
"""


def test_points_and_lines_in_every_format(poisson):
    """The balance is exact: what enters leaves through the boundary, also from a point in a cell at the boundary."""
    line = 0.45 * math.sqrt(0.25 + 0.01 + 0.64)
    probe = "output.probes=[{name: p, at: [0.41, 0.52, 0.63]}]"
    expected = {}
    for backend_format in ["csr", "half_cds", "cod_sell", "matrix_free", "auto"]:
        for order in [1, 2]:
            if backend_format == "half_cds" and order == 2:
                continue
            run(poisson, POINT, f"matrix.format={backend_format}", f"problem.element.order={order}", probe, "solver.tolerance=1e-13")
            record = poisson.record()
            q = record["quantities"]
            assert q["integral_f"] == pytest.approx(0.5 + 2 - 1 + line, rel=1e-12)
            assert outflow(record) == pytest.approx(q["integral_f"], rel=1e-9)
            assert q["probe.p"] == pytest.approx(expected.setdefault(order, q["probe.p"]), rel=1e-9), backend_format


def test_points_on_lattices(poisson):
    text = """
  mesh: {generator: hyper_ball, refinements: 3}
  point_sources: [{at: [0.1, 0.2, 0.3], value: 5}, {at: [0, 0, 0], value: 1}]
  boundary: [{ids: all, type: robin, alpha: "2", value: "0"}]
"""
    head = HEAD.replace("  mesh: {cells: [8, 8, 8]}\n", "")
    values = []
    for storage in ["csr", "half_cds", "matrix_free"]:
        poisson("run", poisson.write(head + text), "--output", "out", "--overwrite", "--quiet", "--set", f"matrix.format={storage}",
                "--set", "output.probes=[{name: p, at: [0.41, 0.12, 0.13]}]")
        record = poisson.record()
        assert outflow(record) == pytest.approx(6, rel=1e-9)
        values.append(record["quantities"]["probe.p"])
    assert values == pytest.approx([values[0]] * 3, rel=1e-9)


def test_a_point_source_has_the_solution_of_the_whole_space(poisson):
    """u = 1 / (4 pi r), given on the boundary: away from the point the error is O(h^2)."""
    text = """
  point_sources: [{at: [0.5, 0.5, 0.5], value: 1}]
  boundary: [{ids: all, type: dirichlet, value: "1/(4*pi*sqrt((x - 0.5)^2 + (y - 0.5)^2 + (z - 0.5)^2))"}]
"""
    errors = []
    for n in [10, 20, 40]:
        run(poisson, text, f"problem.mesh.cells=[{n}, {n}, {n}]", "output.probes=[{name: p, at: [0.8, 0.6, 0.5]}]")
        errors.append(abs(poisson.record()["quantities"]["probe.p"] - 1 / (4 * math.pi * math.sqrt(0.1))))
    assert math.log2(errors[1] / errors[2]) > 1.7 and errors[2] < 2e-4


def test_a_line_source_has_the_logarithm(poisson):
    text = """
  line_sources: [{from: [0.5, 0.5, 0], to: [0.5, 0.5, 1], value: 2}]
  boundary:
    - {ids: [4, 5], type: neumann, value: "0"}
    - {ids: all, type: dirichlet, value: "-2*log(hypot(x - 0.5, y - 0.5))/(2*pi)"}
"""
    errors = []
    for n in [10, 20, 40]:
        run(poisson, text, f"problem.mesh.cells=[{n}, {n}, 4]", "output.probes=[{name: p, at: [0.8, 0.6, 0.4]}]")
        errors.append(abs(poisson.record()["quantities"]["probe.p"] + math.log(math.sqrt(0.1)) / math.pi))
    assert math.log2(errors[1] / errors[2]) > 1.7 and errors[2] < 1e-3


def test_sources_by_material_are_exact(poisson):
    """-u'' = 2 in the left half, 0 in the right one, u = 0 at both ends: a parabola and a line, which elements of order 2 hold."""
    text = """
  element: {order: 2}
  source: {left: "2"}
  boundary:
    - {ids: [0, 1], type: dirichlet, value: "0"}
    - {ids: all, type: neumann, value: "0"}
"""
    region = "problem.mesh.regions=[{name: left, where: 'x < 0.5'}]"
    probes = "output.probes=[{name: a, at: [0.3, 0.5, 0.5]}, {name: b, at: [0.7, 0.2, 0.5]}]"
    run(poisson, text, region, probes, "solver.tolerance=1e-13")
    q = poisson.record()["quantities"]
    # u = s x - x^2 on the left, and on the right (s - 1) (x - 1) with s = 3/4
    assert q["probe.a"] == pytest.approx(0.75 * 0.3 - 0.09, abs=1e-11)
    assert q["probe.b"] == pytest.approx(0.25 * 0.3, abs=1e-11)
    assert q["integral_f"] == pytest.approx(1)
    resolved = poisson("run", "out/resolved.yaml", "--output", "again", "--quiet")
    assert resolved.returncode == 0 and poisson.record("again")["quantities"]["probe.a"] == q["probe.a"]
    for storage in ["matrix_free", "csr"]:
        run(poisson, text, region, probes, "solver.tolerance=1e-13", f"matrix.format={storage}")
        again = poisson.record()
        assert again["matrix"]["format"] == storage and again["quantities"]["probe.a"] == pytest.approx(q["probe.a"], abs=1e-12)


@pytest.mark.parametrize("order, expected", [(1, "half_cds"), (2, "matrix_free")])
def test_sources_by_material_on_refined_meshes_need_no_csr(poisson, order, expected):
    """The block [0, 2] x [0, 1] x [0, 1] with f = 2 beyond x = 1 and u = 0 at x = 2: -u'' = f, u'(0) = 0."""
    text = f"""
problem:
  mesh: {{file: {ROOT}/meshes/two_materials.msh, refinements: 2}}
  element: {{order: {order}}}
  source: {{1: "0", 2: "f"}}
  boundary:
    - {{ids: [2], type: dirichlet, value: "0"}}
    - {{ids: all, type: neumann, value: "0"}}
parameters: {{f: 2}}
"""
    probes = "output.probes=[{name: a, at: [0.5, 0.5, 0.5]}, {name: b, at: [1.5, 0.25, 0.5]}]"

    def run_alone(words, *sets, **more):
        config = poisson.write("output: {picture: false, vtk: {enabled: false}}\n" + words)
        return poisson("run", config, "--output", "out", "--overwrite", "--quiet", *[f"--set={one}" for one in sets], **more)

    run_alone(text, probes, "solver.tolerance=1e-13")
    record = poisson.record()
    assert record["matrix"]["format"] == expected
    q = record["quantities"]
    assert q["probe.a"] == pytest.approx(1, abs=1e-9) and q["probe.b"] == pytest.approx(0.75, abs=1e-9)  # nodes are exact in 1D
    assert q["integral_f"] == pytest.approx(2) and q["flux.2"] == pytest.approx(2, abs=1e-9)
    error = run_alone(text.replace('2: "f"', '2: "f/(x - x)"'), code=1).stderr
    assert "problem.source[2]" in error and "at (x, y, z) = (1." in error


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("order, expected", [(1, "half_cds"), (2, "matrix_free")])
def test_regions_inside_of_coarse_cells_need_no_csr(poisson, order, expected, n):
    """k = 4 beyond x = 1.5, which halves a coarse cell, and f = 1 between 0.5 and 1.5: u and its flux in x follow by hand."""
    if n > 1 and (ranks.MPIRUN is None or not ranks.LIBRARY.exists()):
        pytest.skip("no mpirun, or built without MPI")
    config = poisson.write(f"""
problem:
  mesh: {{file: {ROOT}/meshes/two_materials.msh, refinements: 4, regions: [{{name: hot, where: "x > 0.5"}}, {{name: thick, where: "x > 1.5"}}]}}
  element: {{order: {order}}}
  coefficient: {{thick: ["4", "1", "2"], default: "1"}}
  source: {{hot: "1", default: "0"}}
  boundary:
    - {{ids: [2], type: dirichlet, value: "0"}}
    - {{ids: all, type: neumann, value: "0"}}
output: {{picture: false, vtk: {{enabled: false}}, probes: [{{name: a, at: [0.25, 0.5, 0.5]}}, {{name: b, at: [1.75, 0.25, 0.5]}}]}}
solver: {{tolerance: 1.0e-13}}
""")
    if n == 1:
        poisson("run", config, "--output", "out", "--quiet", "--backend", "cpu")
    else:
        ranks.on_ranks(poisson, n, "run", config, "--output", "out", "--quiet", "--backend", "cpu")
    record = poisson.record()
    assert record["matrix"]["format"] == expected
    q = record["quantities"]
    # All that is made flows out at x = 2: u = (2 - x) / 4 beyond 1.5, u' = 0.5 - x in the middle
    assert q["flux.2"] == pytest.approx(1, abs=1e-9) and q["integral_f"] == pytest.approx(1)
    assert q["probe.b"] == pytest.approx(0.0625, abs=1e-9) and q["probe.a"] == pytest.approx(0.125 + 0.5, abs=1e-9)
    # 1/2 int k u'^2 = 1/2 (1/3 + 4 * 1/2 * 1/16), of which the middle is exact for order 2, and for order 1 up to h^2 / 24 = 1/24576
    assert q["energy"] == pytest.approx(1 / 6 + 1 / 16, abs=1e-10 if order == 2 else 1 / 24576)
    assert q["energy.thick"] == pytest.approx(1 / 16, abs=1e-10)


@pytest.mark.parametrize("order, storage", [(1, "half_cds"), (1, "matrix_free"), (2, "matrix_free"), (3, "matrix_free")])
def test_curved_regions_are_those_of_csr(poisson, order, storage):
    config = poisson.write(f"""
problem:
  mesh: {{generator: hyper_ball, refinements: {5 - order}, regions: [{{name: a, where: "(x - 0.2)^2 + y^2 < 0.2"}}, {{name: b, where: "z > 0.1*x"}}]}}
  element: {{order: {order}}}
  coefficient: {{a: "1 + x^2", b: ["4", "5 + y^2", "6", "1", "0.5", "-0.7"], default: "1000"}}
  source: {{a: "x*y", b: "3", default: "-1"}}
  boundary: [{{ids: all, type: robin, alpha: "2 + x^2", value: "1 + z"}}]
output: {{picture: false, vtk: {{enabled: false}}}}
solver: {{tolerance: 1.0e-12}}
""")
    records = {}
    for format in ("csr", storage):
        poisson("run", config, "--output", format, "--quiet", "--backend", "cpu", "--set", f"matrix.format={format}")
        records[format] = poisson.record(format)
        assert records[format]["status"] == "converged"
    for name, value in records["csr"]["quantities"].items():
        assert records[storage]["quantities"][name] == pytest.approx(value, rel=1e-8, abs=1e-8), name


@pytest.mark.parametrize("storage", ["csr", "half_cds"])
def test_the_total_scales_the_source(poisson, storage):
    text = """
  source: "x*exp(y)"
  source_total: 5
  boundary: [{ids: all, type: dirichlet, value: "0"}]
"""
    run(poisson, text, f"matrix.format={storage}", "solver.tolerance=1e-13")
    record = poisson.record()
    assert record["quantities"]["integral_f"] == pytest.approx(5, rel=1e-12)
    assert outflow(record) == pytest.approx(5, rel=1e-9)


def test_opposite_points_without_any_fixed_value(poisson):
    text = """
  point_sources: [{at: [0.25, 0.5, 0.5], value: 1}, {at: [0.75, 0.5, 0.5], value: -1}]
  boundary: [{ids: all, type: neumann, value: "0"}]
"""
    for storage in ["csr", "half_cds", "matrix_free"]:
        run(poisson, text, f"matrix.format={storage}", "output.probes=[{name: p, at: [0.5, 0.3, 0.2]}]")
        q = poisson.record()["quantities"]
        assert abs(q["probe.p"]) < 1e-9 and q["max"] == pytest.approx(-q["min"], rel=1e-9) and q["max"] > 0.1  # antisymmetric
    found = run(poisson, text, "problem.point_sources=[{at: [0.5, 0.5, 0.5], value: 1}]", code=1)
    assert "the problem has no solution" in found.stderr


@pytest.mark.parametrize("sets, words", [
    (["problem.point_sources=[{at: [2, 0, 0], value: 1}]"], ["problem.point_sources[0].at", "outside the mesh", "nearest node is 1 away"]),
    (["problem.point_sources=[{at: [0, 0], value: 1}]"], ["problem.point_sources[0].at", "found a list of 2; allowed: [x, y, z]"]),
    (["problem.point_sources=[{at: [0, 0, 0]}]"], ["problem.point_sources[0].value", "say how much"]),
    (["problem.point_sources=[{at: [0, 0, 0], value: .nan}]"], ["problem.point_sources[0].value"]),
    (["problem.point_sources={at: [0, 0, 0], value: 1}"], ["problem.point_sources", "list of maps"]),
    (["problem.point_sources=[{at: [0, 0, 0], valeu: 1}]"], ["problem.point_sources[0].valeu", "did you mean 'value'"]),
    (["problem.line_sources=[{from: [0, 0, 0], to: [0, 0, 2], value: 1}]"], ["problem.line_sources[0]", "leaves the mesh"]),
    (["problem.line_sources=[{from: [0, 0, 0], to: [0, 0, 1], value: 'log(z - 1)'}]"], ["problem.line_sources[0].value", "finite"]),
    (["problem.source={7: '1'}"], ["problem.source[7]", "no material 7"]),
    (["problem.source={die: '1'}"], ["problem.source.die", "no material named 'die'"]),
    (["problem.source=['1', '2']"], ["problem.source", "found a list of 2"]),
    (["problem.source_total=big"], ["problem.source_total", "found 'big'"]),
    (["problem.source=0", "problem.source_total=1"], ["problem.source_total", "the integral of problem.source is 0"]),
])
def test_bad_sources(poisson, sets, words):
    text = """
  boundary: [{ids: all, type: dirichlet, value: "0"}]
"""
    found = run(poisson, text, *sets, code=1)
    for word in words:
        assert word in found.stderr, found.stderr


BY_REGION = """
problem:
  mesh: {cells: [12, 10, 8], regions: [{name: die, where: "z < 0.5"}, {name: hot, where: "x > 0.75 && y > 0.5"}]GRADING}
  fields: [{name: measured, file: k.csv}]
  coefficient: {die: "100 + measured", default: ["1", "2", "1 + x"]}
  source: {hot: "5 + measured", default: "y"}
  boundary:
    - {ids: [0, 4], type: dirichlet, value: "z"}
    - {ids: [1], type: robin, alpha: "2", value: "1"}
    - {ids: all, type: neumann, value: "0.1"}
output: {picture: false, report: false}
solver: {tolerance: 1.0e-12}
"""


@pytest.mark.parametrize("grading", ["", ", growth: [1, 1, 1.2]"])
def test_boxes_with_values_by_region_and_from_files_need_no_csr(poisson, grading):
    """The same solution by the assembly into CSR, which is tested elsewhere; and less memory."""
    poisson.write("x,y,z,value\n" + "".join(f"{x},{y},{z},{1 + x * y}\n" for x in (0, 1) for y in (0, 1) for z in (0, 1)), "k.csv")
    config = poisson.write(BY_REGION.replace("GRADING", grading))
    records = {}
    for format in ("csr", "half_cds", "auto"):
        poisson("run", config, "--output", format, "--quiet", "--backend", "cpu", "--set", f"matrix.format={format}")
        records[format] = poisson.record(format)
    assert records["auto"]["matrix"]["format"] == "half_cds"
    for format in ("half_cds", "auto"):
        assert records[format]["status"] == "converged" and "convert" not in records[format]["timing"] or records[format]["timing"]["convert"] == 0
        for name, value in records["csr"]["quantities"].items():
            assert records[format]["quantities"][name] == pytest.approx(value, rel=1e-8, abs=1e-9), name


def test_a_bad_coefficient_of_a_region_is_named(poisson):
    text = BY_REGION.replace("GRADING", "").replace("fields: [{name: measured, file: k.csv}]", "").replace("100 + measured", "y - 0.2").replace("5 + measured", "5")
    for format in ("csr", "half_cds"):
        done = poisson("run", poisson.write(text), "--output", format, "--set", f"matrix.format={format}", code=1)
        assert "problem.coefficient.die" in done.stderr and "must be positive" in done.stderr
