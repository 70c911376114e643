"""Coefficients, sources and boundary values from files: tables of points, images, and earlier solutions."""

import os

import numpy as np
import pytest

HEAD = "output: {picture: false, vtk: {enabled: false}}\nsolver: {tolerance: 1.0e-13}\n"
LINEAR = """
problem:
  mesh: {cells: [5, 4, 3]}
  fields: [{name: edge, FIELD}]
  boundary: [{ids: all, type: dirichlet, value: "edge"}]
output:
  probes: [{name: p, at: [0.43, 0.21, 0.77]}]
"""


def run(poisson, text, *sets, name="out", **more):
    return poisson("run", poisson.write(HEAD.replace("output: {picture: false, vtk: {enabled: false}}\n", "") + text), "--output", name,
                   "--overwrite", "--quiet", "--set=output.picture=false", *[f"--set={s}" for s in sets], **more)


def u(x, y, z):
    return 1 + 2 * x - 3 * y + 0.5 * z


EXPECTED = u(0.43, 0.21, 0.77)


def table(points, header="x,y,z,value\n", separator=","):
    return header + "".join(separator.join(repr(float(v)) for v in (*p, u(*p))) + "\n" for p in points)


GRID = [(x, y, z) for z in (0, 0.3, 1) for y in (0, 0.5, 1) for x in (0, 0.2, 0.7, 1)]


@pytest.mark.parametrize("header, separator", [("x,y,z,value\n", ","), ("", " "), ("# a comment\nx;y;z;value\n", ";")])
def test_a_table_on_a_grid_is_interpolated_trilinearly(poisson, header, separator):
    poisson.write(table(reversed(GRID), header, separator), "edge.csv")
    run(poisson, LINEAR.replace("FIELD", "file: edge.csv"))
    assert poisson.record()["quantities"]["probe.p"] == pytest.approx(EXPECTED, abs=1e-10)


def test_boundary_values_from_a_table_in_adaptive_runs_and_with_tolerances_from_levels(poisson):
    """Both ask which boundary values are constant."""
    poisson.write(table(GRID), "edge.csv")
    text = LINEAR.replace("FIELD", "file: edge.csv")
    run(poisson, text, "problem.mesh.adaptive={tolerance: 1e-14, max_cycles: 5}", "problem.source=x*y")
    assert len(poisson.record()["adaptive"]["cycles"]) == 5
    run(poisson, text, "solver.initial=nested", "solver.tolerance=discretization")
    assert any("discretization follows from coarser levels" in w for w in poisson.record()["warnings"])
    assert poisson.record()["quantities"]["probe.p"] == pytest.approx(EXPECTED, abs=1e-10)


def test_points_in_no_order_are_fitted_by_planes(poisson):
    """Moving least squares hold a linear function, whatever the points."""
    points = np.random.default_rng(1).random((200, 3))
    poisson.write(table(points), "edge.csv")
    run(poisson, LINEAR.replace("FIELD", "file: edge.csv, array: value"))
    assert poisson.record()["quantities"]["probe.p"] == pytest.approx(EXPECTED, abs=1e-6)


def test_points_in_a_plane_say_nothing_of_the_slope_across(poisson):
    """Boreholes: values at places (x, y) only."""
    points = [(x, y, 0) for x, y in np.random.default_rng(2).random((60, 2))]
    poisson.write(table(points), "edge.csv")
    run(poisson, LINEAR.replace("FIELD", "file: edge.csv"))
    assert poisson.record()["quantities"]["probe.p"] == pytest.approx(u(0.43, 0.21, 0), abs=1e-5)


def test_the_nearest_point(poisson):
    poisson.write("x y z k other\n0.25 0.5 0.5 4 0\n0.75 0.5 0.5 1 0\n", "k.txt")
    run(poisson, """
problem:
  mesh: {cells: [4, 2, 2]}
  coefficient: {file: k.txt, array: k, interpolation: nearest}
  boundary:
    - {ids: [0], type: dirichlet, value: "0"}
    - {ids: [1], type: dirichlet, value: "1"}
    - {ids: all, type: neumann, value: "0"}
""")
    q = poisson.record()["quantities"]
    assert q["flux.0"] == pytest.approx(1 / (0.5 / 4 + 0.5 / 1), rel=1e-10)  # two layers in series
    resolved = poisson("run", "out/resolved.yaml", "--output", "again", "--quiet")
    assert resolved.returncode == 0 and poisson.record("again")["quantities"]["flux.0"] == q["flux.0"]


@pytest.mark.parametrize("vtk_format", ["image", "vtu", "hdf"])
@pytest.mark.parametrize("order", [1, 2])
def test_an_earlier_solution(poisson, vtk_format, order):
    """A linear u comes back exactly, on another mesh; the coefficient of the cells as well."""
    run(poisson, """
problem:
  mesh: {cells: [3, 4, 5]}
  coefficient: "x < 0.34 ? 1 : 2"
  source: "0"
  boundary: [{ids: all, type: dirichlet, value: "1 + 2*x - 3*y + 0.5*z"}]
""".replace('"x < 0.34 ? 1 : 2"', "1"), f"output.vtk.format={vtk_format}", f"problem.element.order={order}", name="first")
    files = [p.name for p in (poisson.directory / "first").iterdir() if p.name.startswith("solution.") and p.suffix != ".pvd"]
    run(poisson, LINEAR.replace("FIELD", f"file: first/{files[0]}"))
    assert poisson.record()["quantities"]["probe.p"] == pytest.approx(EXPECTED, abs=1e-9)
    run(poisson, LINEAR.replace("FIELD", f"file: first/{files[0]}, array: material, interpolation: nearest"))
    assert abs(poisson.record()["quantities"]["probe.p"]) < 1e-12


def test_an_image_as_source_and_coefficient(poisson):
    """Image data made by VTK: values of cells, as scanners give them."""
    from vtkmodules.util.numpy_support import numpy_to_vtk
    from vtkmodules.vtkCommonDataModel import vtkImageData
    from vtkmodules.vtkIOXML import vtkXMLImageDataWriter

    image = vtkImageData()
    image.SetDimensions(5, 3, 3)
    image.SetSpacing(0.25, 0.5, 0.5)
    array = numpy_to_vtk(np.tile([1.0, 1.0, 5.0, 5.0], 4), deep=True)
    array.SetName("k")
    image.GetCellData().AddArray(array)
    writer = vtkXMLImageDataWriter()
    writer.SetFileName(str(poisson.directory / "k.vti"))
    writer.SetInputData(image)
    assert writer.Write() == 1
    text = """
problem:
  mesh: {cells: [8, 2, 2]}
  coefficient: {file: k.vti, interpolation: nearest}
  source: {file: k.vti, interpolation: nearest}
  boundary:
    - {ids: [0], type: dirichlet, value: "0"}
    - {ids: [1], type: dirichlet, value: "0"}
    - {ids: all, type: neumann, value: "0"}
"""
    run(poisson, text)
    q = poisson.record()["quantities"]
    assert q["integral_f"] == pytest.approx(3, rel=1e-12) and q["flux.0"] + q["flux.1"] == pytest.approx(3, rel=1e-9)
    assert "file_1" in (poisson.directory / "out/resolved.yaml").read_text()
    # the same with expressions
    run(poisson, text.replace("{file: k.vti, interpolation: nearest}", '"x < 0.5 ? 1 : 5"'), name="expressions")
    same = poisson.record("expressions")["quantities"]
    assert q["energy"] == pytest.approx(same["energy"], rel=1e-10) and q["flux.1"] == pytest.approx(same["flux.1"], rel=1e-10)


@pytest.mark.parametrize("field, words", [
    ("file: nowhere.csv", ["problem.fields[0]", "nowhere.csv", "no such file"]),
    ("file: .", ["problem.fields[0]", "is no file"]),
    ("file: bad.csv", ["bad.csv", "line 3", "'oops' is no finite number"]),
    ("file: short.csv", ["short.csv", "line 1 has 3 columns"]),
    ("file: ragged.csv", ["ragged.csv", "line 2 has 5 columns"]),
    ("file: empty.csv", ["empty.csv", "no points"]),
    ("file: good.csv, array: q", ["good.csv", "no column 'q'"]),
    ("file: broken.vtu", ["broken.vtu", "cannot read"]),
    ("file: good.csv, interpolation: cubic", ["problem.fields[0].interpolation", "'cubic'", "linear"]),
    ("fiel: good.csv", ["problem.fields[0].fiel", "did you mean 'file'"]),
])
def test_bad_fields(poisson, field, words):
    poisson.write("x,y,z,v\n0,0,0,1\n0,0,1,oops\n", "bad.csv")
    poisson.write("0,0,0\n", "short.csv")
    poisson.write("0,0,0,1\n0,0,0,1,2\n", "ragged.csv")
    poisson.write("x,y,z,v\n", "empty.csv")
    poisson.write("x,y,z,v\n0,0,0,1\n", "good.csv")
    poisson.write("<VTKFile type='UnstructuredGrid'><Unstruct", "broken.vtu")
    done = run(poisson, LINEAR.replace("FIELD", field), code=1)
    for word in words:
        assert word in done.stderr, done.stderr


def test_names_of_fields(poisson):
    poisson.write("0,0,0,1\n", "k.csv")
    assert "'sin' is a name that expressions have already" in run(
        poisson, LINEAR.replace("FIELD", "file: k.csv"), "problem.fields=[{name: sin, file: k.csv}]", code=1).stderr
    assert "did you mean 'edge'" in run(
        poisson, LINEAR.replace("FIELD", "file: k.csv"), "problem.boundary=[{ids: all, type: dirichlet, value: edg}]", code=1).stderr
    assert "no fields from files" in run(poisson, LINEAR.replace("FIELD", "file: k.csv"), "matrix.format=matrix_free", code=1).stderr


SQUARE = """<?xml version="1.0"?>
<VTKFile type="UnstructuredGrid" version="1.0" byte_order="LittleEndian" header_type="UInt64">
<UnstructuredGrid><Piece NumberOfPoints="8" NumberOfCells="1">
<PointData><DataArray type="Float64" Name="u" format="ascii">1 1 1 1 1 1 1 1</DataArray></PointData>
<Points><DataArray type="Float64" NumberOfComponents="3" format="ascii">0 0 0 1 0 0 1 1 0 0 1 0 0 0 1 1 0 1 1 1 1 0 1 1</DataArray></Points>
<Cells><DataArray type="Int64" Name="connectivity" format="ascii">0 1 2 3 4 5 6 LAST</DataArray>
<DataArray type="Int64" Name="offsets" format="ascii">8</DataArray><DataArray type="UInt8" Name="types" format="ascii">12</DataArray></Cells>
</Piece></UnstructuredGrid></VTKFile>
"""
ONE = 'problem: {mesh: {cells: [2, 2, 2]}, coefficient: {file: FILE, array: u}, boundary: [{ids: all, type: dirichlet, value: "x"}]}\n'


def test_a_file_that_makes_the_library_crash_is_an_error(poisson):
    """A node that there is not: VTK reads beyond its arrays."""
    poisson.write(SQUARE.replace("LAST", "7"), "cell.vtu")
    run(poisson, ONE.replace("FILE", "cell.vtu"))
    poisson.write(SQUARE.replace("LAST", "7000000000000"), "cell.vtu")
    done = run(poisson, ONE.replace("FILE", "cell.vtu"), name="other", code=1)
    assert "problem.coefficient: " in done.stderr and "cell.vtu" in done.stderr and "damaged" in done.stderr
    assert not (poisson.directory / "other").exists()


@pytest.mark.parametrize("order, format, compression", [(1, "auto", "fast"), (2, "auto", "none"), (2, "vtu", "best"), (1, "vtu", "none"), (1, "hdf", "fast")])
def test_damaged_files_never_crash(poisson, order, format, compression):
    text = f'problem: {{mesh: {{cells: [3, 2, 2]}}, element: {{order: {order}}}, boundary: [{{ids: all, type: dirichlet, value: "1 + x"}}]}}\n'
    run(poisson, text, f"output.vtk={{format: {format}, compression: {compression}}}", name="good")
    file = next(f for f in (poisson.directory / "good").iterdir() if f.suffix in (".vti", ".vtr", ".vtu", ".hdf"))
    data = file.read_bytes()
    random = np.random.default_rng(1)
    for trial in range(0, 40, 1 if os.environ.get("POISSON_ALL_TESTS") else 3):
        damaged = bytearray(data)
        if trial < 15:  # truncated, as one that is still being written
            damaged = damaged[: len(data) * trial // 15]
        elif trial < 30:
            for place in random.integers(len(data), size=1 + trial % 3 * 8):
                damaged[place] = random.integers(256)
        else:
            first = random.integers(len(data))
            del damaged[first : first + random.integers(1, 200)]
        poisson.write(bytes(damaged), "damaged" + file.suffix)
        done = run(poisson, ONE.replace("FILE", "damaged" + file.suffix), code=(0, 1, 2, 3), timeout=60)
        # A warning, of values that jump, may come before.
        assert done.returncode in (0, 2) or (done.stderr.startswith(("poisson: error: ", "poisson: warning: "))
                                             and done.stderr.count("poisson: error: ") == 1), done.stderr


def test_a_field_without_a_name_is_called_by_its_key(poisson):
    text = 'problem: {coefficient: {default: {file: missing.vti}}, boundary: [{ids: all, type: dirichlet, value: "x"}]}\n'
    done = run(poisson, text, code=1)
    assert "problem.coefficient.default: missing.vti: there is no such file" in done.stderr
    done = run(poisson, text.replace("missing", "m" * 200 + "/" * 3000), code=1)
    assert len(done.stderr) < 1500
