import csv
import math
import os
import signal
import subprocess

import numpy as np
import pytest
from conftest import array, read_solution, solution_file


def test_record_and_files(cube):
    poisson, config = cube
    done = poisson("run", config, "--output", "out")
    r = poisson.record()
    assert r["status"] == "converged"
    assert r["mesh"]["cells"] == 512 and r["mesh"]["vertices"] == 729 and r["dofs"] == 729
    # 7^3 free rows form the 27-point matrix of a box of 7^3 nodes; every Dirichlet row keeps its diagonal.
    assert r["nnz"] == (3 * 7 - 2) ** 3 + (729 - 343)
    assert r["matrix"]["format"] in ("csr", "half_cds")
    assert r["matrix"]["csr_bytes"] == 12 * r["nnz"] + 8 * 730
    assert 0 < r["matrix"]["bytes"] and r["matrix"]["padding_ratio"] >= 1
    assert r["solver"]["method"] == "cg" and r["solver"]["precision"] == "double" and r["solver"]["preconditioner"] == "none"
    assert r["solver"]["residual_recursive"] <= 1e-12 and r["solver"]["residual_true"] <= 2e-12
    assert 0 < r["errors"]["l2"] < 0.02 and r["errors"]["l2"] < r["errors"]["h1_seminorm"]
    assert set(r["timing"]) >= {"mesh", "assembly", "convert", "transfer", "solve", "analysis", "output", "total"}
    assert r["memory"]["host_peak_bytes"] > 1e6
    for name in r["files"]:
        assert (poisson.directory / "out" / name).stat().st_size > 0
    assert set(r["files"]) == set(os.listdir(poisson.directory / "out"))
    assert {"result.json", "residuals.csv", "solution.vti", "solution.pvd", "resolved.yaml"} <= set(r["files"])
    rows = list(csv.DictReader(open(poisson.directory / "out/residuals.csv")))
    assert len(rows) == r["solver"]["iterations"] + 1
    assert math.isclose(float(rows[0]["relative_residual"]), 1.0)
    assert math.isclose(float(rows[-1]["relative_residual"]), r["solver"]["residual_recursive"])
    for word in ("mesh", "assembly", "solve", "unknowns", "non-zeros", "iterations", "GB/s", "solution.vti"):
        assert word in done.stdout, word


@pytest.mark.parametrize("format, name", [("auto", "solution.vti"), ("image", "solution.vti"), ("vtu", "solution.vtu"), ("hdf", "solution.hdf")])
def test_solution_in_the_file_is_the_solution(cube, format, name):
    poisson, config = cube
    poisson("run", config, "--output", "out", "--set", f"output.vtk.format={format}")
    assert solution_file(poisson.directory / "out").name == name
    grid = read_solution(poisson.directory / "out")
    assert grid.GetNumberOfPoints() == 729 and grid.GetNumberOfCells() == 512
    u, exact, error = (array(grid.GetPointData(), name) for name in ("u", "exact", "error"))
    x = np.array([grid.GetPoint(i) for i in range(729)])
    assert np.allclose(exact, np.prod(np.sin(np.pi * x), axis=1), atol=1e-14)
    assert np.array_equal(error, u - exact)
    assert 1e-4 < np.abs(error).max() < 0.05
    flux = array(grid.GetCellData(), "flux")
    assert flux.shape == (512, 3)
    centres = np.array([np.mean([grid.GetPoint(grid.GetCell(c).GetPointId(i)) for i in range(8)], axis=0) for c in range(512)])
    expected = -np.pi * np.stack([np.cos(np.pi * centres[:, d]) * np.prod(np.delete(np.sin(np.pi * centres), d, axis=1), axis=1) for d in range(3)], axis=1)
    assert np.abs(flux - expected).max() < 0.1
    assert np.all(array(grid.GetCellData(), "coefficient") == 1)
    assert np.all(array(grid.GetCellData(), "material") == 0)


def test_quantities(cube):
    poisson, config = cube
    done = poisson("run", config, "--output", "out", "--set", "problem.mesh.cells=[32,32,32]")
    q = poisson.record()["quantities"]
    # u = sin sin sin: 1 in the middle, (2/pi)^3 on average, 1/2 int |grad u|^2 = 3 pi^2 / 16; f = 3 pi^2 u
    assert q["max"] == pytest.approx(1, rel=2e-3) and q["max_at"] == [0.5, 0.5, 0.5]
    assert abs(q["min"]) < 1e-12 and 0 in q["min_at"]
    assert q["integral_u"] == pytest.approx((2 / math.pi) ** 3, rel=4e-3) and q["mean"] == pytest.approx(q["integral_u"], rel=1e-12)
    assert q["energy"] == pytest.approx(3 * math.pi**2 / 16, rel=4e-3)
    assert q["integral_f"] == pytest.approx(3 * math.pi**2 * (2 / math.pi) ** 3, rel=1e-5)
    assert "energy" in done.stdout and "(0.5, 0.5, 0.5)" in done.stdout and poisson.record()["warnings"] == []


def test_quantities_of_a_linear_solution(poisson):
    # u = 1 + 2 x on a box of volume 6 with k = 3: exact in the space, so everything is exact.
    config = poisson.write("""
        problem:
          mesh: {origin: [0, 0, 0], extent: [1, 2, 3], cells: [3, 2, 2]}
          coefficient: "3"
          source: "0"
          boundary:
            - {ids: [0, 1], type: dirichlet, value: "1 + 2*x"}
            - {ids: [2, 3, 4, 5], type: neumann, value: "0"}
        """)
    poisson("run", config, "--output", "out", "--quiet")
    q = poisson.record()["quantities"]
    assert [q["min"], q["max"], q["mean"], q["integral_u"]] == pytest.approx([1, 3, 2, 12], rel=1e-10)
    assert q["energy"] == pytest.approx(0.5 * 3 * 4 * 6, rel=1e-10) and q["integral_f"] == 0
    assert q["min_at"] == [0, 0, 0] and q["max_at"] == [1, 0, 0]


@pytest.mark.parametrize("centre", [(0.5, 0.5, 0.5), (0.3, 0.41, 0.57)])
def test_a_source_finer_than_the_mesh(poisson, centre):
    x, y, z = centre
    config = poisson.write(f"""
        problem:
          mesh: {{cells: [16, 16, 16]}}
          source: "1e6*exp(-((x-{x})^2 + (y-{y})^2 + (z-{z})^2)/0.005^2)"
          boundary: [{{ids: all, type: dirichlet, value: "0"}}]
        """)
    done = poisson("run", config, "--output", "out", "--quiet", "--backend", "cpu")
    assert "case.yaml:4" in done.stderr and "problem.source" in done.stderr and "too coarse" in done.stderr
    # The integral is 1e6 (0.005 sqrt(pi))^3 = 0.696.
    fine = float(done.stderr.split("about ")[1].split()[0])
    assert fine == pytest.approx(1e6 * (0.005 * math.sqrt(math.pi)) ** 3, rel=0.05)
    assert poisson.record()["quantities"]["integral_f"] < 0.01 * fine
    assert len(poisson.record()["warnings"]) == 1 and poisson.record()["warnings"][0] in done.stderr


@pytest.mark.parametrize("source, warned", [
    ("(x-0.5)^2+(y-0.5)^2+(z-0.5)^2 < 0.01^2 ? 1e6 : 0", True),  # zero at every point of the quadrature; a vertex is in its middle
    ("sin(200*x)", True),                                          # six waves in a cell
    ("exp(-((x-0.5)^2 + (y-0.5)^2 + (z-0.5)^2)/0.15^2)", False),
    ("x < 0.3 ? 1 : 0", False),
    ("abs(x-0.5) < 0.25 && abs(y-0.5) < 0.25 ? 100 : 0", False),
    ("1/sqrt(x^2+y^2+z^2)", False),
    ("sin(20*x)*cos(15*y)", False),
    ("10", False),
    ("0*x", False),
])
def test_which_sources_are_warned_of(poisson, source, warned):
    config = poisson.write(f"""
        problem:
          mesh: {{cells: [16, 16, 16]}}
          source: "{source}"
          boundary: [{{ids: all, type: dirichlet, value: "0"}}]
        """)
    done = poisson("run", config, "--output", "out", "--quiet", "--backend", "cpu", "--set", "output.picture=false")
    assert ("too coarse for this source" in done.stderr) == warned, done.stderr


def test_a_source_finer_than_a_curved_mesh(poisson):
    config = poisson.write("""
        problem:
          mesh: {generator: hyper_ball, refinements: 2}
          element: {order: 2}
          source: "exp(-((x-0.31)^2 + (y-0.2)^2 + (z+0.1)^2)/0.01^2)"
          boundary: [{ids: all, type: dirichlet, value: "0"}]
        """)
    words = ("run", config, "--output", "out", "--overwrite", "--quiet", "--set", "output.picture=false")
    assert "too coarse" in poisson(*words).stderr
    assert poisson(*words, "--set", "problem.source=exp(x)*(1-x^2-y^2-z^2)").stderr == ""


def table_rows(lines):
    """First words of the lines of the table of formats, header included."""
    begin = next(i for i, line in enumerate(lines) if "bytes a product" in line)
    return lines[begin], {line.split()[0]: line for line in lines[begin + 1 : begin + 8]}


def test_auto_tells_what_it_decided_from(cube):
    poisson, config = cube
    done = poisson("run", config, "--output", "out", "--verbose", "--backend", "cpu", "--set", "matrix.expected_products=2000")
    m = poisson.record()["matrix"]
    assert m["expected_products"] == 2000
    formats = ["csr", "crs_t", "sell_c_sigma", "cod_sell", "cds", "half_cds", "matrix_free"]
    assert [row["format"] for row in m["auto"]] == formats
    taken = [row for row in m["auto"] if not row["refusal"]]
    for row in taken:
        assert row["total_seconds"] == pytest.approx(row["conversion_seconds"] + 2000 * row["product_seconds"])
        assert row["product_seconds"] > 0 and row["bytes_per_product"] == row["bytes"] + 16 * 729
    assert min(taken, key=lambda row: row["total_seconds"])["format"] == m["format"]
    assert next(row for row in taken if row["format"] == m["format"])["bytes"] == m["bytes"]
    header, rows = table_rows(done.stdout.splitlines())
    assert "2 000 products ms" in header and list(rows) == formats
    assert [name for name, line in rows.items() if line.endswith("taken")] == [m["format"]]


def test_auto_counts_on_products(cube):
    poisson, config = cube
    poisson("run", config, "--output", "few", "--backend", "cpu", "--quiet", "--set", "matrix.expected_products=1")
    assert poisson.record("few")["matrix"]["format"] == "csr"
    assert poisson("run", config, "--output", "default", "--backend", "cpu", "--quiet").stdout == ""
    assert poisson.record("default")["matrix"]["expected_products"] == 27


def test_the_table_of_formats_only_with_verbose(cube):
    poisson, config = cube
    done = poisson("run", config, "--output", "out", "--backend", "cpu")
    assert "bytes a product" not in done.stdout and "auto, for" in done.stdout
    assert "auto" in poisson.record()["matrix"]
    assert "--verbose" in poisson("run", config, "--quiet", "--verbose", code=1).stderr


def test_a_short_run_measures_no_bandwidth(cube):
    poisson, config = cube
    done = poisson("run", config, "--output", "out", "--backend", "cpu")
    r = poisson.record()
    assert "copy_bytes_per_second" in r["solver"] and r["solver"]["bytes_per_second"] > 0
    # Measuring takes 0.05 s at least, 1 % of 5 s.
    if r["timing"]["total"] < 5:
        assert r["solver"]["copy_bytes_per_second"] is None and "bandwidth not measured" in done.stdout
    else:
        assert (r["solver"]["copy_bytes_per_second"] is None) == ("bandwidth not measured" in done.stdout)


def test_no_table_for_a_given_format(cube):
    poisson, config = cube
    done = poisson("run", config, "--output", "out", "--verbose", "--backend", "cpu", "--set", "matrix.format=csr")
    assert "bytes a product" not in done.stdout
    assert not {"auto", "expected_products"} & poisson.record()["matrix"].keys()


def test_formats_agree(cube):
    poisson, config = cube
    results = {}
    for fmt in ("csr", "half_cds"):
        poisson("run", config, "--output", fmt, "--set", f"matrix.format={fmt}", "--backend", "cpu", "--quiet")
        r = poisson.record(fmt)
        assert r["matrix"]["format"] == fmt and r["backend"] == "cpu"
        results[fmt] = array(read_solution(poisson.directory / fmt).GetPointData(), "u")
    assert np.allclose(results["csr"], results["half_cds"], rtol=0, atol=1e-12)


@pytest.mark.parametrize("precision", ["double", "refined", "double_double"])
def test_matrix_free_agrees(cube, precision):
    poisson, config = cube
    conditions = ["--set", "problem.boundary=[{ids: [0, 3], type: dirichlet, value: x*y}, {ids: [1], type: robin, alpha: 1+z, value: '2'}, "
                  "{ids: all, type: neumann, value: '0.5'}]", "--set", "problem.coefficient=['2', '1', '0.5']", "--set", "problem.mesh.cells=[16,16,16]"]
    results = {}
    for fmt in ("csr", "half_cds", "matrix_free"):
        poisson("run", config, "--output", fmt, "--set", f"matrix.format={fmt}", "--backend", "cpu", "--quiet", *conditions,
                "--set", f"solver.precision={precision}")
        r = poisson.record(fmt)
        assert r["status"] == "converged" and r["matrix"]["format"] == fmt
        results[fmt] = (array(read_solution(poisson.directory / fmt).GetPointData(), "u"), r["quantities"]["energy"], r["nnz"])
    for fmt in ("half_cds", "matrix_free"):
        assert np.allclose(results["csr"][0], results[fmt][0], rtol=0, atol=1e-10)
        assert results[fmt][1] == pytest.approx(results["csr"][1], rel=1e-10) and results[fmt][2] == results["csr"][2]
    r = poisson.record("matrix_free")
    assert r["matrix"]["bytes"] < 0.5 * r["matrix"]["csr_bytes"]


@pytest.mark.parametrize("preconditioner", ["jacobi", "ic0"])
def test_matrix_free_with_preconditioners(cube, preconditioner):
    poisson, config = cube
    poisson("run", config, "--output", "out", "--set", "matrix.format=matrix_free", "--backend", "cpu", "--quiet",
            "--set", f"solver.preconditioner={preconditioner}")
    assert poisson.record()["status"] == "converged"


@pytest.mark.parametrize("changes", [["problem.coefficient='1+x'"], ["problem.element.order=2"], ["problem.mesh.cells=[1, 4, 5]"],
                                     ["problem.mesh={generator: hyper_ball, arguments: '0, 0, 0 : 1', refinements: 2}", "problem.element.order=3"],
                                     ["problem.mesh={generator: hyper_ball, arguments: '0, 0, 0 : 1', refinements: 1}", "problem.element.order=2"]])
@pytest.mark.parametrize("precision", ["double", "double_double"])
def test_matrix_free_on_any_mesh(cube, changes, precision):
    poisson, config = cube
    settings = [word for change in changes for word in ("--set", change)] + ["--set", f"solver.precision={precision}"]
    for fmt in ("csr", "matrix_free"):
        poisson("run", config, "--output", fmt, "--set", f"matrix.format={fmt}", "--backend", "cpu", "--quiet", *settings)
    csr, free = poisson.record("csr"), poisson.record("matrix_free")
    assert free["status"] == "converged" and free["nnz"] == csr["nnz"]
    assert free["quantities"]["energy"] == pytest.approx(csr["quantities"]["energy"], rel=1e-10)
    u, v = (array(read_solution(poisson.directory / fmt).GetPointData(), "u") for fmt in ("csr", "matrix_free"))
    assert np.allclose(u, v, rtol=0, atol=1e-10 * np.abs(u).max())


@pytest.mark.parametrize("change, key, reason", [("solver.matrix_precision=double_double", "solver.matrix_precision", "no entries to store"),
                                                 ("analysis.svd=[{of: field}]", "matrix.format", "no matrix for analysis.svd")])
def test_matrix_free_is_refused(cube, change, key, reason):
    poisson, config = cube
    done = poisson("run", config, "--output", "out", "--set", "matrix.format=matrix_free", "--set", change, "--set", "solver.precision=double_double",
                   code=1)
    assert key in done.stderr and reason in done.stderr


def test_same_bits_twice(cube):
    poisson, config = cube
    for name in ("a", "b"):
        poisson("run", config, "--output", name, "--threads", 2, "--quiet")
    a, b = (array(read_solution(poisson.directory / n).GetPointData(), "u") for n in "ab")
    assert a.tobytes() == b.tobytes()


def test_earlier_results_are_refused_and_kept(cube):
    poisson, config = cube
    poisson("run", config, "--output", "out", "--quiet")
    before = {f: (poisson.directory / "out" / f).read_bytes() for f in os.listdir(poisson.directory / "out")}
    done = poisson("run", config, "--output", "out", code=1)
    assert "--overwrite" in done.stderr
    # a failing run with --overwrite must not cost the earlier results
    poisson("run", config, "--output", "out", "--overwrite", "--set", "problem.boundary[0].ids=[77]", code=1)
    assert before == {f: (poisson.directory / "out" / f).read_bytes() for f in os.listdir(poisson.directory / "out")}
    poisson("run", config, "--output", "out", "--overwrite", "--set", "output.vtk.enabled=false", "--set", "output.picture=false")
    assert not [f for f in os.listdir(poisson.directory / "out") if f.startswith("solution")]


def test_not_converged_is_written_and_marked(cube):
    poisson, config = cube
    done = poisson("run", config, "--output", "out", "--set", "problem.source='exp(x)*y'", "--set", "solver.max_iterations=3", code=2)
    r = poisson.record()
    assert r["status"] == "max_iterations" and r["solver"]["iterations"] == 3 and r["reason"]
    assert r["solver"]["residual_true"] > 1e-12
    assert solution_file(poisson.directory / "out").exists()
    assert "max_iterations" in done.stdout


def test_quiet_says_nothing(cube):
    poisson, config = cube
    done = poisson("run", config, "--output", "out", "--quiet")
    assert done.stdout == "" and done.stderr == ""


def test_default_directory_is_the_name(cube):
    poisson, config = cube
    poisson("run", config)
    assert poisson.record("results/cube")["status"] == "converged"


def test_resolved_configuration_gives_the_same_run(cube):
    poisson, config = cube
    poisson("run", config, "--output", "a", "--quiet")
    poisson("run", "a/resolved.yaml", "--output", "b", "--quiet")
    a, b = poisson.record("a"), poisson.record("b")
    assert a["fingerprint"] == b["fingerprint"] and a["errors"] == b["errors"]


def test_single_precision_file_is_smaller(cube):
    poisson, config = cube
    poisson("run", config, "--output", "d", "--quiet", "--set", "output.vtk.compression=none")
    poisson("run", config, "--output", "s", "--quiet", "--set", "output.vtk.compression=none", "--set", "output.vtk.precision=single")
    d, s = (solution_file(poisson.directory / n) for n in "ds")
    assert s.stat().st_size < 0.8 * d.stat().st_size
    assert np.allclose(*(array(read_solution(f.parent).GetPointData(), "u") for f in (d, s)), atol=1e-6)


def test_pure_neumann(poisson):
    config = poisson.write("""
        problem:
          mesh: {cells: [8, 8, 8]}
          source: "3*pi^2*cos(pi*x)*cos(pi*y)*cos(pi*z)"
          boundary: [{ids: all, type: neumann, value: "0"}]
          exact: "cos(pi*x)*cos(pi*y)*cos(pi*z)"
        """)
    done = poisson("run", config, "--output", "out")
    r = poisson.record()
    assert r["status"] == "converged" and r["errors"]["l2"] < 0.02
    assert abs(r["compatibility_defect"]) < 1e-10
    assert "Neumann" in done.stdout
    incompatible = poisson("run", config, "--output", "no", "--set", "problem.source=1", code=1)
    assert "problem.boundary" in incompatible.stderr


@pytest.mark.parametrize("format", ["vtu", "hdf"])
def test_higher_order_and_lagrange_cells(cube, format):
    poisson, config = cube
    errors = []
    for order in (1, 2, 3):
        poisson("run", config, "--output", f"o{order}", "--quiet", "--set", f"problem.element.order={order}", "--set", "problem.mesh.cells=[4,4,4]",
                "--set", f"output.vtk.format={format}")
        r = poisson.record(f"o{order}")
        assert r["dofs"] == (4 * order + 1) ** 3
        errors.append(r["errors"]["l2"])
        grid = read_solution(poisson.directory / f"o{order}")
        assert grid.GetNumberOfPoints() == r["dofs"] and grid.GetCellType(0) == (12 if order == 1 else 72)
    assert errors[0] > 5 * errors[1] > 25 * errors[2]


@pytest.mark.parametrize("order", [2, 3])
def test_higher_order_boxes_are_a_lattice_of_their_nodes(cube, order):
    """The nodes are those of the unknowns, where `exact` is met best; the parts of a cell have its flux."""
    poisson, config = cube
    words = ["--quiet", "--set", f"problem.element.order={order}", "--set", "problem.mesh={cells: [4, 3, 2], extent: [2, 1, 1]}", "--set",
             "problem.boundary[0].value='x + 2*y*z'", "--set", "problem.exact='x + 2*y*z'", "--set", "problem.coefficient='1 + x'",
             "--set", "problem.source='-1'"]
    poisson("run", config, "--output", "r", *words)
    poisson("run", config, "--output", "u", *words, "--set", "output.vtk.format=vtu")
    assert solution_file(poisson.directory / "r").name == "solution.vtr"
    grid, other = (read_solution(poisson.directory / d) for d in "ru")
    n = [order * c + 1 for c in (4, 3, 2)]
    assert list(grid.GetDimensions()) == n and grid.GetNumberOfPoints() == poisson.record("r")["dofs"]
    x = np.array([grid.GetPoint(i) for i in range(grid.GetNumberOfPoints())])
    lobatto = {2: [0, 0.5, 1], 3: [0, (1 - 5**-0.5) / 2, (1 + 5**-0.5) / 2, 1]}[order]
    assert np.allclose(x[: order + 1, 0], np.array(lobatto) / 2, atol=1e-15)
    u = array(grid.GetPointData(), "u")
    assert np.allclose(u, x[:, 0] + 2 * x[:, 1] * x[:, 2], atol=1e-10)
    assert np.array_equal(array(grid.GetPointData(), "error"), u - array(grid.GetPointData(), "exact"))
    flux, of_cells = (array(g.GetCellData(), "flux") for g in (grid, other))
    flux = flux.reshape(n[2] - 1, n[1] - 1, n[0] - 1, 3)
    for shift in range(order):
        assert np.array_equal(flux[shift::order, shift::order, ::order].reshape(-1, 3), of_cells)
        assert np.array_equal(flux[::order, ::order, shift::order].reshape(-1, 3), of_cells)


@pytest.mark.parametrize("format", ["image", "vtu", "hdf"])
def test_chosen_fields(cube, format):
    poisson, config = cube
    poisson("run", config, "--output", "out", "--set", f"output.vtk={{format: {format}, fields: [flux, error]}}")
    grid = read_solution(poisson.directory / "out")
    names = [[data.GetArrayName(i) for i in range(data.GetNumberOfArrays())] for data in (grid.GetPointData(), grid.GetCellData())]
    assert names == [["error"], ["flux"]]
    if format == "hdf":
        poisson("run", config, "--output", "out", "--overwrite", "--set", "output.vtk={format: hdf, fields: [flux, material, error, u]}")
        grid = read_solution(poisson.directory / "out")
        assert [grid.GetPointData().GetArrayName(i) for i in range(2)] == ["u", "error"]
    done = poisson("run", config, "--output", "no", "--set", "output.vtk.fields=[u, slope]", code=1)
    assert "output.vtk.fields[1]" in done.stderr and "coefficient" in done.stderr


def test_image_data_need_a_box(poisson):
    config = poisson.write("""
    problem:
      mesh: {generator: hyper_cube}
      boundary: [{ids: all, type: dirichlet, value: "0"}]
    output: {picture: false}
    """)
    done = poisson("run", config, "--output", "out", "--set", "output.vtk.format=image", code=1)
    assert "output.vtk.format" in done.stderr and "box" in done.stderr and not (poisson.directory / "out").exists()
    poisson("run", config, "--output", "out")
    assert solution_file(poisson.directory / "out").name == "solution.vtu"
    # A file of the format before is not left behind.
    poisson("run", config, "--output", "out", "--overwrite", "--set", "output.vtk={format: hdf, precision: single, compression: best}")
    assert solution_file(poisson.directory / "out").name == "solution.hdf" and not (poisson.directory / "out/solution.vtu").exists()
    assert read_solution(poisson.directory / "out").GetNumberOfCells() == poisson.record()["mesh"]["cells"]


def test_interrupt_writes_what_there_is(cube):
    poisson, config = cube
    # A rod held at its ends: nothing travels farther than one cell an iteration, so 50 000 of them are needed.
    words = poisson.command("run", config, "--output", "out", "--set", "problem.mesh.cells=[100000,1,1]", "--set",
                            "problem.mesh.extent=[100000,1,1]", "--set", "problem.boundary=[{ids: [0, 1], type: dirichlet, value: '0'}, "
                            "{ids: [2, 3, 4, 5], type: neumann, value: '0'}]", "--set", "problem.source='1'", "--set",
                            "solver.max_iterations=100000000", "--set", "solver.preconditioner=none", "--set", "solver.precision=double",
                            "--set", "output.picture=false")
    process = subprocess.Popen(words, cwd=poisson.directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in process.stdout:
        if "convert" in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    r = poisson.record()
    assert process.returncode == r["exit_code"] == 130, out + err
    assert r["status"] == "interrupted" and solution_file(poisson.directory / "out").exists()
    assert not [f for f in os.listdir(poisson.directory / "out") if f not in r["files"]]


def test_interrupt_after_the_solve_keeps_the_solution(cube):
    poisson, config = cube
    words = poisson.command("run", config, "--output", "out", "--set", "problem.mesh.cells=[40,40,40]", "--set", "problem.element.order=2", "--set",
                            "problem.source='1'", "--set", "problem.exact='" + "+".join(["exp(sin(x*y)*cos(z))"] * 200) + "'", "--set",
                            "output.picture=false", "--threads", "1")
    process = subprocess.Popen(words, cwd=poisson.directory, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in process.stdout:
        if line.startswith("  solve"):
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    r = poisson.record()
    assert process.returncode == r["exit_code"] == 130, out + err
    assert r["status"] == "interrupted" and solution_file(poisson.directory / "out").exists() and "errors" not in r
    assert "the solution is complete" in r["reason"]


def test_interrupt_before_the_solve(cube):
    poisson, config = cube
    process = subprocess.Popen(poisson.command("run", config, "--output", "out", "--set", "problem.mesh.cells=[90,90,90]"), cwd=poisson.directory,
                               text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert "cube.yaml" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130, out + err
    assert poisson.record()["status"] == "interrupted"


def test_plain_lines_when_not_on_a_terminal(cube):
    poisson, config = cube
    done = poisson("run", config, "--output", "out")
    assert "\r" not in done.stdout and "\x1b" not in done.stdout


def test_progress_bar_on_a_terminal(cube):
    import pty

    poisson, config = cube
    try:
        master, slave = pty.openpty()
    except OSError as error:
        pytest.skip(f"no pseudo-terminal here: {error}")
    process = subprocess.Popen(poisson.command("run", config, "--output", "out", "--set", "problem.mesh.cells=[40,40,40]", "--set", "problem.source='exp(3*x)*y'",
                                               "--set", "problem.element.order=2", "--set", "output.picture=false", "--threads", "1"),
                               cwd=poisson.directory, stdout=slave, stderr=slave)
    os.close(slave)
    shown = b""
    while True:
        try:
            piece = os.read(master, 4096)
        except OSError:
            break
        if not piece:
            break
        shown += piece
    assert process.wait(timeout=120) == 0
    assert b"\r" in shown and b"iteration" in shown and b"it/s" in shown
