"""What a run answers: fluxes through boundaries, probes, lines, and quantities of the user's own."""

import csv

import numpy as np
import pytest

from conftest import array, read_solution, read_vtk

LINEAR = """
problem:
  mesh: {cells: [4, 3, 5], extent: [2, 1, 3]}
  element: {order: ORDER}
  coefficient: ["2", "3", "5"]
  source: "0"
  boundary:
    - {ids: all, type: dirichlet, value: "1 + x - 2*y + 3*z"}
  exact: "1 + x - 2*y + 3*z"
solver: {tolerance: 1.0e-13}
output: {picture: false, vtk: {enabled: false}}
"""


@pytest.mark.parametrize("order", [1, 2, 3])
def test_fluxes_of_a_linear_solution_are_exact(poisson, order):
    """-k grad u = (-2, 6, -15): known on every side, also where all sides are held and share their edges."""
    config = poisson.write(LINEAR.replace("ORDER", str(order)))
    for name, sets in {"held": [], "mixed": ["--set", "problem.boundary=[{ids: [0, 3], type: dirichlet, value: '1 + x - 2*y + 3*z'}, "
                                             "{ids: [1], type: neumann, value: '2'}, {ids: [2], type: robin, alpha: '2', value: '6 + 2*(1 + x - 2*y + 3*z)'}, "
                                             "{ids: [4], type: neumann, value: '-15'}, {ids: [5], type: neumann, value: '15'}]"]}.items():
        poisson("run", config, "--output", name, "--quiet", *sets)
        q = poisson.record(name)["quantities"]
        areas = [3, 3, 6, 6, 2, 2]
        expected = [2 * 3, -2 * 3, -6 * 6, 6 * 6, 15 * 2, -15 * 2]
        for i in range(6):
            assert q[f"area.{i}"] == pytest.approx(areas[i], rel=1e-13)
            assert q[f"flux.{i}"] == pytest.approx(expected[i], abs=1e-9), (name, i)
        assert q["volume.0"] == pytest.approx(6, rel=1e-13)
        assert abs(sum(q[f"flux.{i}"] for i in range(6)) - q["integral_f"]) < 1e-9


def test_fluxes_balance_the_source(poisson):
    config = poisson.write("""
        problem:
          mesh: {generator: hyper_shell, arguments: [[0, 0, 0], 0.5, 1, 0, true], refinements: 2}
          element: {order: 2}
          coefficient: "1 + x^2"
          source: "exp(x)*y^2"
          boundary:
            - {ids: [0], type: dirichlet, value: "0"}
            - {ids: [1], type: robin, alpha: "2", value: "z"}
        output: {picture: false, vtk: {enabled: false}}
        """)
    poisson("run", config, "--output", "out", "--quiet")
    q = poisson.record()["quantities"]
    assert q["integral_f"] > 0.1 and q["flux.0"] + q["flux.1"] == pytest.approx(q["integral_f"], rel=1e-9)


def orders(values, exact):
    errors = [abs(v - exact) for v in values]
    return [np.log2(a / b) for a, b in zip(errors, errors[1:])]


@pytest.mark.parametrize("order, cells", [(1, [4, 8, 16]), (2, [2, 4, 8])])
def test_flux_converges_twice_as_fast_as_the_gradient(poisson, order, cells):
    """u = sin(pi x) exp(y) between sides that are insulated or held: the flux out of x = 0 is pi (e - 1)."""
    config = poisson.write(f"""
        problem:
          element: {{order: {order}}}
          source: "(pi^2 - 1)*sin(pi*x)*exp(y)"
          boundary:
            - {{ids: [0, 1], type: dirichlet, value: "0"}}
            - {{ids: [2], type: neumann, value: "-sin(pi*x)*exp(y)"}}
            - {{ids: [3], type: neumann, value: "sin(pi*x)*exp(y)"}}
            - {{ids: [4, 5], type: neumann, value: "0"}}
        output: {{picture: false, vtk: {{enabled: false}}}}
        """)
    found = []
    for n in cells:
        poisson("run", config, "--output", str(n), "--quiet", "--set", f"problem.mesh.cells=[{n}, {n}, 2]")
        found.append(poisson.record(str(n))["quantities"]["flux.0"])
    assert all(p > 2 * order - 0.25 for p in orders(found, np.pi * (np.e - 1))), found


def test_capacitance_of_concentric_spheres(poisson):
    """Between radii 1/2 and 1 the conductance is 4 pi / (1/a - 1/b) = 4 pi."""
    config = poisson.write("""
        problem:
          mesh: {generator: hyper_shell, arguments: [[0, 0, 0], 0.5, 1, 0, true]}
          element: {order: 2}
          boundary:
            - {ids: [0], type: dirichlet, value: "3"}
            - {ids: [1], type: dirichlet, value: "1"}
        output:
          picture: false
          vtk: {enabled: false}
          quantities: {conductance: "-flux.0 / (max - min)", error: "abs(conductance / (4*pi) - 1)"}
        """)
    errors = []
    for r in (1, 2, 3):
        done = poisson("run", config, "--output", str(r), "--set", f"problem.mesh.refinements={r}")
        assert "conductance" in done.stdout and "out of boundary 0:" in done.stdout
        errors.append(poisson.record(str(r))["quantities"]["error"])
    assert errors[2] < 1e-4 and all(b < a / 8 for a, b in zip(errors, errors[1:])), errors


@pytest.mark.parametrize("generator, order, error", [("box", 1, 1e-10), ("box", 3, 1e-10), ("hyper_ball", 2, 1e-5), ("hyper_ball", 3, 1e-6)])
def test_probes_and_lines_are_exact(poisson, generator, order, error):
    """Up to the quadrature in curved cells."""
    config = poisson.write(f"""
        problem:
          mesh: {{generator: {generator}}}
          element: {{order: {order}}}
          coefficient: "2 + x"
          source: "-1"
          boundary: [{{ids: all, type: dirichlet, value: "1 + x - 2*y + 3*z"}}]
          exact: "1 + x - 2*y + 3*z"
        output:
          picture: false
          vtk: {{enabled: false}}
          probes: [{{name: tip, at: [0.12, 0.23, 0.31]}}, {{name: node, at: [0.5, 0.5, 0.5]}}]
          lines: [{{name: axis, from: [0, 0.1, 0.2], to: [0.6, 0.3, 0.1], points: 7}}]
          quantities: {{slope: "probe.tip.gradient.z / probe.tip.gradient.x", sum: "probe.tip + probe.node"}}
        """)
    sets = ["--set", "problem.mesh.cells=[3, 5, 4]"] if generator == "box" else ["--set", "problem.mesh.refinements=1"]
    done = poisson("run", config, "--output", "out", *sets)
    q = poisson.record()["quantities"]
    assert q["probe.tip"] == pytest.approx(1 + 0.12 - 0.46 + 0.93, abs=error) and q["probe.node"] == pytest.approx(2, abs=error)
    assert q["probe.tip.exact"] == pytest.approx(q["probe.tip"], abs=error)
    assert q["probe.tip.gradient"] == pytest.approx([1, -2, 3], abs=100 * error)
    assert q["probe.tip.flux"] == pytest.approx([-2.12, 4.24, -6.36], abs=100 * error)
    assert q["slope"] == pytest.approx(3, abs=100 * error) and q["sum"] == pytest.approx(q["probe.tip"] + q["probe.node"])
    assert "probe.tip" in done.stdout and "slope" in done.stdout
    assert "line_axis.csv" in poisson.record()["files"]
    with open(poisson.directory / "out/line_axis.csv") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == 7
    for i, row in enumerate(rows):
        x, y, z = (a + (b - a) * i / 6 for a, b in zip((0, 0.1, 0.2), (0.6, 0.3, 0.1)))
        assert [float(row[c]) for c in "xyz"] == pytest.approx([x, y, z], abs=1e-14)
        assert float(row["u"]) == pytest.approx(1 + x - 2 * y + 3 * z, abs=error)
        assert float(row["gradient_y"]) == pytest.approx(-2, abs=100 * error) and float(row["flux_x"]) == pytest.approx(-2 - x, abs=100 * error)
        assert float(row["distance"]) == pytest.approx(i / 6 * np.sqrt(0.36 + 0.04 + 0.01), abs=1e-14)


def test_line_with_points_outside(cube):
    poisson, config = cube
    poisson("run", config, "--output", "out", "--quiet", "--set", "output.lines=[{name: a, from: [-1, 0.5, 0.5], to: [1, 0.5, 0.5], points: 5}]")
    with open(poisson.directory / "out/line_a.csv") as f:
        rows = list(csv.DictReader(f))
    assert [row["u"] == "" for row in rows] == [True, True, False, False, False]
    assert {"line_a.csv", "line_a.png"} <= set(poisson.record()["files"])


@pytest.mark.parametrize("generator, error", [("box", 1e-10), ("hyper_shell", 1e-5)])
def test_circles_and_planes(poisson, generator, error):
    """A function of the elements, linear in curved cells, on an oblique circle and an oblique parallelogram that leave the mesh."""
    shell = generator == "hyper_shell"
    a = 0 if shell else 1

    def exact(x, y, z):
        return 1 + x - 2 * y + 3 * z + a * (x * y + z * z)

    config = poisson.write(f"""
        problem:
          mesh: {'{generator: hyper_shell, arguments: [[0, 0, 0], 0.5, 1, 0, true], refinements: 2}' if shell else '{cells: [3, 4, 5]}'}
          element: {{order: 2}}
          coefficient: "2"
          source: "{-4 * a}"
          boundary: [{{ids: all, type: dirichlet, value: "1 + x - 2*y + 3*z + {a}*(x*y + z^2)"}}]
          exact: "1 + x - 2*y + 3*z + {a}*(x*y + z^2)"
        output:
          vtk: {{enabled: false}}
          circles: [{{name: rim, center: [0.1, 0.2, 0.3], normal: [1, 2, -2], radius: 0.6, points: 37}}]
          planes: [{{name: mid, origin: [0.1, -0.21, 0.2], first: [0.8, 0.4, 0.3], second: [0, 1.2, 0.4], points: [11, 7]}}]
        """)
    done = poisson("run", config, "--output", "out")
    files = poisson.directory / "out"
    assert {"circle_rim.csv", "circle_rim.png", "plane_mid.csv", "plane_mid.vts"} <= set(poisson.record()["files"])

    def inside(p):
        return 0.5 < np.linalg.norm(p) < 1 if shell else all(0 <= c <= 1 for c in p)

    def check(row, p):
        assert [float(row[c]) for c in "xyz"] == pytest.approx(p, abs=1e-13)
        assert (row["u"] != "") == inside(p)
        if inside(p):
            x, y, z = p
            assert float(row["u"]) == pytest.approx(exact(x, y, z), abs=error)
            assert float(row["exact"]) == pytest.approx(exact(x, y, z), abs=1e-12)
            assert [float(row["gradient_" + c]) for c in "xyz"] == pytest.approx([1 + a * y, -2 + a * x, 3 + 2 * a * z], abs=100 * error)
            assert [float(row["flux_" + c]) for c in "xyz"] == pytest.approx([-2 - 2 * a * y, 4 - 2 * a * x, -6 - 4 * a * z], abs=200 * error)

    normal, center = np.array([1, 2, -2]) / 3, np.array([0.1, 0.2, 0.3])
    first = np.array([1, 0, 0]) - normal[0] * normal
    first /= np.linalg.norm(first)
    with open(files / "circle_rim.csv") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == 37
    outside = 0
    for i, row in enumerate(rows):
        assert float(row["angle"]) == pytest.approx(10 * i)
        angle = np.radians(10 * i)
        p = center + 0.6 * (np.cos(angle) * first + np.sin(angle) * np.cross(normal, first))
        check(row, p)
        outside += not inside(p)
    assert 0 < outside < 37 and f"circle 'rim': {outside} of 37 points are outside the mesh" in done.stdout

    with open(files / "plane_mid.csv") as f:
        rows = list(csv.DictReader(f))
    assert len(rows) == 77
    points = [np.array([0.1, -0.21, 0.2]) + i / 10 * np.array([0.8, 0.4, 0.3]) + j / 6 * np.array([0, 1.2, 0.4])
              for j in range(7) for i in range(11)]
    for row, p in zip(rows, points):
        check(row, p)
    out = np.array([not inside(p) for p in points])
    assert 0 < out.sum() < 77 and f"plane 'mid': {out.sum()} of 77 points are outside the mesh" in done.stdout

    grid = read_vtk(files / "plane_mid.vts")
    assert grid.GetDimensions() == (11, 7, 1) and grid.GetPointData().GetScalars().GetName() == "u"
    data = {name: array(grid.GetPointData(), name) for name in ("u", "exact", "gradient", "flux")}
    assert [grid.GetPoint(i) for i in range(77)] == pytest.approx(np.array(points), abs=1e-13)
    for i, row in enumerate(rows):
        assert bool(grid.IsPointVisible(i)) == (not out[i]) == (not np.isnan(data["u"][i]))
        if not out[i]:
            assert data["u"][i] == float(row["u"]) and data["exact"][i] == float(row["exact"])
            assert list(data["flux"][i]) == [float(row["flux_" + c]) for c in "xyz"]
            assert list(data["gradient"][i]) == [float(row["gradient_" + c]) for c in "xyz"]
    assert "<AppendedData" not in (files / "plane_mid.vts").read_text()


def test_circle_around_x_begins_at_y(cube):
    poisson, config = cube
    poisson("run", config, "--output", "out", "--quiet", "--set", "output.picture=false",
            "--set", "output.circles=[{name: a, center: [0, 0.5, 0.5], normal: [-7, 0, 0], radius: 0.5, points: 5}]")
    with open(poisson.directory / "out/circle_a.csv") as f:
        rows = list(csv.DictReader(f))
    # Counterclockwise seen from -x: from y to -z.
    assert [float(row["y"]) for row in rows] == pytest.approx([1, 0.5, 0, 0.5, 1])
    assert [float(row["z"]) for row in rows] == pytest.approx([0.5, 0, 0.5, 1, 0.5])
    assert all(row["u"] != "" for row in rows) and "circle_a.png" not in poisson.record()["files"]


def points_of(surface):
    return np.array([surface.GetPoint(i) for i in range(surface.GetNumberOfPoints())])


def faces_of(surface):
    """Corners of the quadrangles, (n, 4, 3), and their normals times their areas."""
    ids = [[surface.GetCell(i).GetPointId(a) for a in range(4)] for i in range(surface.GetNumberOfCells())]
    corners = points_of(surface)[np.array(ids)]
    return corners, np.cross(corners[:, 2] - corners[:, 0], corners[:, 3] - corners[:, 1]) / 2


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("mesh", ["{cells: [3, 4, 5], extent: [2, 1, 3]}", "{generator: hyper_cube, arguments: [0, 1, true], refinements: 2}"])
def test_surface_of_a_linear_solution(poisson, order, mesh):
    """u = 1 + x - 2 y + 3 z with k = (2, 3, 5): the flux is (-2, 6, -15) everywhere."""
    poisson("run", poisson.write(LINEAR.replace("ORDER", str(order)).replace("{cells: [4, 3, 5], extent: [2, 1, 3]}", mesh)),
            "--output", "out", "--quiet", "--set", "output.surface=true")
    assert "surface.vtp" in poisson.record()["files"]
    surface = read_vtk(poisson.directory / "out/surface.vtp")
    box = "cells" in mesh
    n, extent = ([3, 4, 5], np.array([2, 1, 3])) if box else ([4, 4, 4], np.ones(3))
    assert surface.GetNumberOfCells() == 2 * order ** 2 * (n[0] * n[1] + n[1] * n[2] + n[2] * n[0])
    assert surface.GetNumberOfPoints() == surface.GetNumberOfCells() + 2  # Euler: no node is there twice
    x = points_of(surface)
    assert array(surface.GetPointData(), "u") == pytest.approx(1 + x @ [1, -2, 3], abs=1e-10)
    assert array(surface.GetPointData(), "flux") == pytest.approx(np.tile([-2, 6, -15], (len(x), 1)), abs=1e-8)
    corners, normals = faces_of(surface)
    boundary = array(surface.GetCellData(), "boundary")
    for side in range(6):
        d, sign = side // 2, 1 if side % 2 else -1
        on = boundary == side
        assert corners[on][:, :, d] == pytest.approx(np.full((on.sum(), 4), extent[d] if side % 2 else 0), abs=1e-14)
        outwards = np.zeros(3)
        outwards[d] = sign * np.prod(extent) / extent[d]
        assert normals[on].sum(axis=0) == pytest.approx(outwards, abs=1e-12) and (normals[on][:, d] * sign > 0).all()
        assert array(surface.GetCellData(), "outward_flux")[on] == pytest.approx(np.full(on.sum(), sign * [-2, 6, -15][d]), abs=1e-8)
    assert set(array(surface.GetCellData(), "material")) == {0}
    assert "<AppendedData" not in (poisson.directory / "out/surface.vtp").read_text()


def test_surface_has_the_names_of_its_ids(poisson):
    poisson("run", poisson.write("""
        problem:
          mesh:
            cells: [2, 2, 2]
            boundaries: [{name: hot_side, where: "x < 1e-9"}]
            regions: [{name: core, where: "x < 0.5"}]
          boundary: [{ids: all, type: dirichlet, value: "x"}]
        output: {picture: false, vtk: {enabled: false}, surface: true}
        """), "--output", "out", "--quiet")
    surface = read_vtk(poisson.directory / "out/surface.vtp")
    fields = surface.GetFieldData()
    found = {}
    for what in ("boundary", "material"):
        names = fields.GetAbstractArray(f"{what}_names")
        found[what] = {int(i): names.GetValue(k) for k, i in enumerate(array(fields, f"{what}_ids"))}
        assert set(array(surface.GetCellData(), what)) == set(found[what])
    named = {i for i, name in found["boundary"].items() if name == "hot_side"}
    assert len(named) == 1 and sorted(set(found["boundary"].values()) - {"hot_side"}) == ["+x", "+y", "+z", "-y", "-z"]
    corners, _ = faces_of(surface)
    assert ((array(surface.GetCellData(), "boundary") == named.pop()) == (corners[:, :, 0].max(axis=1) < 1e-9)).all()
    assert sorted(found["material"].values()) == ["0", "core"]


@pytest.mark.parametrize("mesh, order, format", [("cells: [4, 3, 2]", 1, "image"), ("cells: [4, 3, 2]", 3, "image"), ("cells: [4, 3, 2]", 3, "vtu"),
                                                 ("generator: hyper_ball, refinements: 2", 2, "vtu"), ("generator: hyper_shell, refinements: 1", 3, "hdf")])
def test_flux_at_nodes_of_a_linear_solution_is_exact(poisson, mesh, order, format):
    poisson("run", poisson.write(f"""
        problem:
          mesh: {{{mesh}}}
          element: {{order: {order}}}
          coefficient: ["1", "2", "3"]
          boundary: [{{ids: all, type: dirichlet, value: "x - 2*y + 3*z"}}]
        output: {{picture: false, vtk: {{format: {format}, fields: [u, flux_points, flux]}}}}
        """), "--output", "out", "--quiet")
    grid = read_solution(poisson.directory / "out")
    flux = array(grid.GetPointData(), "flux_points")
    curved = "shell" in mesh  # whose Q3 maps the quadrature does not integrate exactly
    assert flux == pytest.approx(np.tile([-1, 4, -9], (grid.GetNumberOfPoints(), 1)), abs=1e-3 if curved else 1e-8)
    assert array(grid.GetCellData(), "flux").shape[1] == 3


def test_flux_at_nodes_converges_and_is_the_mean_around(poisson):
    """u = sin(x) e^y on a curved mesh: at its nodes of the second order, in cells of order 1 too; and by hand on two cells."""
    config = poisson.write("""
        problem:
          mesh: {generator: hyper_shell}
          boundary: [{ids: all, type: dirichlet, value: "sin(x)*exp(y)"}]
        output: {picture: false, vtk: {format: vtu, fields: [u, flux_points]}}
        """)
    errors = []
    for r in (1, 2, 3):
        poisson("run", config, "--output", str(r), "--quiet", "--set", f"problem.mesh.refinements={r}")
        grid = read_solution(poisson.directory / str(r))
        x, y = (points_of(grid)[:, d] for d in (0, 1))
        exact = -np.stack([np.cos(x) * np.exp(y), np.sin(x) * np.exp(y), 0 * x], axis=1)
        errors.append(np.sqrt(((array(grid.GetPointData(), "flux_points") - exact) ** 2).mean()))
    assert errors[1] < errors[0] / 2 and errors[2] < errors[1] / 2, errors
    poisson("run", poisson.write("""
        problem:
          mesh: {cells: [2, 1, 1], regions: [{name: a, where: "x < 0.5"}]}
          coefficient: {a: "1", default: "10"}
          boundary: [{ids: all, type: dirichlet, value: "x^2"}]
        output: {picture: false, vtk: {fields: [flux_points]}}
        """, "by_hand.yaml"), "--output", "by_hand", "--quiet")
    grid = read_solution(poisson.directory / "by_hand")
    flux = array(grid.GetPointData(), "flux_points")
    assert flux == pytest.approx(np.array([[-0.5, 0, 0], [-(0.5 + 15) / 2, 0, 0], [-15, 0, 0]] * 4), abs=1e-12)
    for threads in (1, 3):
        poisson("run", config, "--output", f"t{threads}", "--quiet", "--threads", threads, "--set", "problem.mesh.refinements=2")
    assert (poisson.directory / "t1/solution.vtu").read_bytes() == (poisson.directory / "t3/solution.vtu").read_bytes()


def test_surface_of_a_ball_converges(poisson):
    """Its area, the volume inside, which needs all normals outwards, and the flux 1/3 out of a source of 1."""
    config = poisson.write("""
        problem:
          mesh: {generator: hyper_ball}
          element: {order: 2}
          source: "1"
          boundary: [{ids: all, type: dirichlet, value: "0"}]
        output: {picture: false, vtk: {enabled: false}, surface: true}
        """)
    errors = []
    for r in (1, 2, 3):
        poisson("run", config, "--output", str(r), "--quiet", "--set", f"problem.mesh.refinements={r}")
        surface = read_vtk(poisson.directory / str(r) / "surface.vtp")
        corners, normals = faces_of(surface)
        area = np.linalg.norm(normals, axis=1)
        flux = array(surface.GetCellData(), "outward_flux")
        errors.append([abs(area.sum() / (4 * np.pi) - 1),
                       abs((corners.mean(axis=1) * normals).sum() / (4 * np.pi) - 1),
                       abs(flux @ area / area.sum() - 1 / 3)])
    assert all(b < a / 3 for first, second in zip(errors, errors[1:]) for a, b in zip(first, second)), errors


@pytest.mark.parametrize("key, value, parts", [
    ("output.surface", "[1]", ["output.surface", "true or false"]),
    ("output.circles", "[{name: a, center: [5, 0, 0], radius: 1}]", ["output.circles[0]", "no point of this circle is in the mesh"]),
    ("output.circles", "[{name: a, center: [0, 0, 0], radius: 0}]", ["output.circles[0].radius", "0"]),
    ("output.circles", "[{name: a, center: [0, 0, 0]}]", ["output.circles[0].radius", "is missing"]),
    ("output.circles", "[{name: a, center: [0, 0, 0], radius: 1, normal: [0, 0, 0]}]", ["output.circles[0].normal", "no direction"]),
    ("output.circles", "[{name: a, center: [0, 0, 0], radius: 1, points: 1}]", ["output.circles[0].points", "from 2"]),
    ("output.planes", "[{name: a, origin: [5, 0, 0], first: [1, 0, 0], second: [0, 1, 0]}]",
     ["output.planes[0]", "no point of this plane is in the mesh"]),
    ("output.planes", "[{name: a, origin: [0, 0, 0], first: [1, 2, 0], second: [-2, -4, 0]}]", ["output.planes[0].second", "parallel"]),
    ("output.planes", "[{name: a, origin: [0, 0, 0], first: [0, 0, 0], second: [1, 0, 0]}]", ["output.planes[0].second", "zero"]),
    ("output.planes", "[{name: a, origin: [0, 0, 0], first: [1, 0, 0], second: [0, 1, 0], points: 9}]", ["output.planes[0].points", "[n, m]"]),
    ("output.planes", "[{name: a, origin: [0, 0, 0], first: [1, 0, 0], second: [0, 1, 0], points: [9, 1]}]",
     ["output.planes[0].points[1]", "from 2"]),
    ("output.planes", "[{name: a, origin: [0, 0, 0], second: [0, 1, 0]}]", ["output.planes[0].first", "is missing"]),
    ("output.probes", "[{name: a, at: [2, 0.5, 0.5]}]", ["output.probes[0].at", "(2, 0.5, 0.5) is outside the mesh", "1 away, at (1, 0.5, 0.5)"]),
    ("output.probes", "[{name: a b, at: [0, 0, 0]}]", ["output.probes[0].name", "letters, digits"]),
    ("output.probes", "[{name: a, at: [0, 0, 0]}, {name: a, at: [1, 0, 0]}]", ["output.probes[1].name", "already"]),
    ("output.probes", "[{name: a}]", ["output.probes[0].at", "is missing"]),
    ("output.probes", "[{name: a, at: [0, .nan, 0]}]", ["output.probes[0].at[1]"]),
    ("output.lines", "[{name: a, from: [2, 0, 0], to: [3, 0, 0]}]", ["output.lines[0]", "no point of this line is in the mesh"]),
    ("output.lines", "[{name: a, from: [2, 0, 0], to: [3, 0, 0], points: 1}]", ["output.lines[0].points", "from 2"]),
    ("output.quantities", "{r: 1 / flux.9}", ["output.quantities.r", "'flux.9' is not known"]),
    ("output.quantities", "{r: x}", ["output.quantities.r", "x, y and z have no meaning"]),
    ("output.quantities", "{min: 1}", ["output.quantities.min", "another quantity"]),
    ("output.quantities", "{r: probe.tip}", ["output.quantities.r", "'probe.tip' is not known"]),
    ("output.quantities", "[1]", ["output.quantities", "map from names"]),
])
def test_wrong_requests_are_found_before_the_solve(cube, key, value, parts):
    poisson, config = cube
    done = poisson("run", config, "--output", "out", "--set", f"{key}={value}", code=1)
    assert all(part in done.stderr for part in parts), done.stderr
    assert "solve" not in done.stdout


def test_quantities_of_a_sweep(poisson):
    config = poisson.write(LINEAR.replace("ORDER", "1").replace("output:", "parameters: {k: 2}\noutput:").replace('"2", "3"', '"k", "3"')
                           + "sweep: {parameters.k: [1, 4]}\n")
    poisson("sweep", config, "--output", "out", "--quiet", "--set", "output.quantities={twice: 2*k}")
    with open(poisson.directory / "out/sweep.csv") as f:
        rows = list(csv.DictReader(f))
    assert [float(row["twice"]) for row in rows] == [2, 8]
    assert [float(row["flux.0"]) for row in rows] == pytest.approx([3, 12], abs=1e-9)
    assert {"min", "max", "energy", "area.3", "volume.0"} <= set(rows[0])
