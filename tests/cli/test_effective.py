"""The effective tensor of a box: laminates, constant tensors, lattices, a dense reference, bounds, sweeps, ranks, and what is refused."""

import csv
import itertools
import json
import math

import numpy as np
import pytest
import ranks
from conftest import ROOT
from ranks import on_ranks

QUIET = "output: {picture: false, report: false, vtk: {enabled: false}}\nsolver: {tolerance: 1.0e-12}\n"


def effective(poisson, text, *sets, conditions="periodic", code=0, difference=1e-9):
    done = poisson("run", poisson.write(QUIET + text), "--output", "out", "--overwrite", "--quiet", f"--set=analysis.effective.conditions={conditions}",
                   *[f"--set={s}" for s in sets], code=code)
    if code not in (0, 2):
        return done
    record = poisson.record()
    found = record["effective"]
    assert found["conditions"] == conditions
    for solve in found["solves"]:
        assert solve["status"] == "converged" and solve["residual_true"] < 1e-11
    assert found["difference"] < difference  # of fluxes and energies
    quantities = record["quantities"]
    for (i, a), (j, b) in itertools.product(enumerate("xyz"), repeat=2):
        assert quantities[f"effective.{a}{b}"] == found["tensor"][i][j]
    return found


def close(tensor, expected, rel=1e-9):
    scale = np.abs(expected).max()
    assert np.abs(np.array(tensor) - expected).max() < rel * scale, (tensor, expected)


LAMINATE = """
problem:
  mesh: {cells: [6, 6, 6], extent: [2, 1, 3], origin: [-1, 0.5, 7], %s, regions: [{name: core, where: "%s"}]}
  coefficient: {core: "1", default: "4"}
"""


@pytest.mark.parametrize("normal, where", [(0, "x < 0"), (1, "y > 1.0"), (2, "z < 8")])
@pytest.mark.parametrize("grading", ["growth: [1, 1, 1]", "growth: [1.3, 1.2, 0.8]"])
def test_a_laminate_conducts_in_series_and_in_parallel(poisson, normal, where, grading):
    found = effective(poisson, LAMINATE % (grading, where), conditions="both")
    share = {phase["name"]: phase["fraction"] for phase in found["phases"]}
    core, rest = share["core"], 1 - share["core"]
    assert 0.1 < core < 0.9
    series, parallel = 1 / (core / 1 + rest / 4), core * 1 + rest * 4
    expected = np.diag([series if d == normal else parallel for d in range(3)])
    close(found["tensor"], expected)
    close(found["by_energy"], expected)
    close(found["fixed"]["tensor"], expected)
    assert found["bounds"]["reuss"] == pytest.approx(series, rel=1e-12) and found["bounds"]["voigt"] == pytest.approx(parallel, rel=1e-12)
    assert found["principal"]["values"] == pytest.approx([parallel, parallel, series], rel=1e-9)
    assert np.abs(found["principal"]["directions"][2]) == pytest.approx(np.eye(3)[normal], abs=1e-6)


@pytest.mark.parametrize("order", [1, 2])
def test_a_constant_tensor_is_its_own(poisson, order):
    k = np.array([[3, 0.5, -0.25], [0.5, 2, 0.125], [-0.25, 0.125, 1]])
    found = effective(poisson, f"""
problem:
  mesh: {{cells: [4, 3, 5], extent: [1, 2, 0.5]}}
  element: {{order: {order}}}
  coefficient: ["3", "2", "1", "0.5", "-0.25", "0.125"]
""")
    close(found["tensor"], k)
    close(found["by_energy"], k)
    assert found["symmetry_defect"] < 1e-10 and found["bounds"] is None
    values, vectors = np.linalg.eigh(k)
    assert found["principal"]["values"] == pytest.approx(values[::-1], rel=1e-10)
    for direction, vector in zip(found["principal"]["directions"], vectors.T[::-1]):
        assert abs(np.dot(direction, vector)) == pytest.approx(1, rel=1e-10) and max(direction, key=abs) > 0


def test_a_checkerboard_of_columns(poisson):
    """Along the columns the mean; across them the root of the product (Dykhne), which elements approach from above."""
    text = """
problem:
  mesh: {cells: [%d, %d, 2], regions: [{name: black, where: "(x < 0.5) == (y < 0.5)"}]}
  coefficient: {black: "1", default: "4"}
"""
    errors = []
    for n in (4, 8, 16):
        found = effective(poisson, text % (n, n))
        tensor = np.array(found["tensor"])
        assert tensor[2, 2] == pytest.approx(2.5, rel=1e-9)
        assert tensor[0, 0] == pytest.approx(tensor[1, 1], rel=1e-9)
        assert np.abs(tensor - np.diag(np.diag(tensor))).max() < 1e-9
        errors.append(tensor[0, 0] - 2)
    # At the corners u is like r^a with a = 4/pi atan(sqrt(1/4)): energies converge with h^(2 a), by 2.27 for each halving.
    assert errors[2] > 0 and errors[1] / errors[2] == pytest.approx(4 ** (4 / math.pi * math.atan(0.5)), rel=0.05)
    assert errors[0] / errors[1] == pytest.approx(errors[1] / errors[2], rel=0.1) and errors[2] < 0.04


def cells_of(n):
    """k of the cells of VARIED, [z][y][x]."""
    z, y, x = np.meshgrid(*[np.arange(n)] * 3, indexing="ij")
    return np.where(np.sin(3 * x + 5 * y * y + 7 * z + x * y * z) > 0.2, 7.0, 0.5)


VARIED = """
problem:
  mesh: {cells: [%d, %d, %d], extent: [%g, %g, %g]}
  coefficient: "%s"
"""


def varied(n, extent):
    a, b, c = (f"floor({n}*{axis}/{length:g})" for axis, length in zip("xyz", extent))
    return VARIED % (n, n, n, *extent, f"sin(3*{a} + 5*{b}*{b} + 7*{c} + {a}*{b}*{c}) > 0.2 ? 7 : 0.5")


def dense_reference(k, extent, periodic):
    """The tensor by trilinear elements in dense matrices: of periodic conditions, or the mean fluxes of fixed ones."""
    n = k.shape[0]
    h = np.array(extent) / n
    gauss = [0.5 - 0.5 / math.sqrt(3), 0.5 + 0.5 / math.sqrt(3)]
    corners = [(a, b, c) for c in (0, 1) for b in (0, 1) for a in (0, 1)]
    element = np.zeros((8, 8))
    for p in itertools.product(gauss, repeat=3):
        factors = [[(p[d], 1.0) if corner[d] else (1 - p[d], -1.0) for d in range(3)] for corner in corners]
        gradients = np.array([[math.prod(f[e][1 if e == d else 0] for e in range(3)) / h[d] for d in range(3)] for f in factors])
        element += gradients @ gradients.T * h.prod() / 8
    m = n + 1
    number = lambda i, j, l: i + m * (j + m * l)
    matrix = np.zeros((m**3, m**3))
    for l, j, i in itertools.product(range(n), repeat=3):
        nodes = [number(i + a, j + b, l + c) for a, b, c in corners]
        matrix[np.ix_(nodes, nodes)] += k[l, j, i] * element
    x = np.array([[i * h[0], j * h[1], l * h[2]] for l in range(m) for j in range(m) for i in range(m)])
    tensor, volume = np.zeros((3, 3)), math.prod(extent)
    for d in range(3):
        if periodic:
            image = [number(i % n, j % n, l % n) for l in range(m) for j in range(m) for i in range(m)]
            free = sorted(set(image))
            c = np.zeros((m**3, len(free)))
            c[np.arange(m**3), [free.index(node) for node in image]] = 1
            u = x[:, d] + c @ np.linalg.lstsq(c.T @ matrix @ c, -c.T @ matrix @ x[:, d], rcond=None)[0]
        else:
            free = np.flatnonzero((x[:, d] > 1e-9) & (x[:, d] < extent[d] - 1e-9))
            u = x[:, d].copy()
            u[free] += np.linalg.solve(matrix[np.ix_(free, free)], -(matrix @ x[:, d])[free])
        tensor[:, d] = x.T @ matrix @ u / volume
    return tensor


@pytest.mark.parametrize("conditions", ["periodic", "fixed"])
def test_a_dense_reference(poisson, conditions):
    n, extent = 4, (1.0, 2.0, 0.5)
    found = effective(poisson, varied(n, extent), conditions=conditions)
    close(found["tensor"], dense_reference(cells_of(n), extent, conditions == "periodic"))
    assert (found["symmetry_defect"] < 1e-9) == (conditions == "periodic")
    assert ("principal" in found) == (conditions == "periodic")


@pytest.mark.parametrize("direction", "yz")
def test_the_direction_that_is_shown_changes_no_tensor(poisson, direction):
    one = effective(poisson, varied(4, (1, 2, 0.5)), conditions="both")
    other = effective(poisson, varied(4, (1, 2, 0.5)), f"analysis.effective.direction={direction}", conditions="both")
    close(other["tensor"], one["tensor"])
    close(other["fixed"]["tensor"], one["fixed"]["tensor"])
    assert [(solve["conditions"], solve["direction"]) for solve in other["solves"]][0] == ("periodic", direction)
    quantities, length = poisson.record()["quantities"], {"y": 2, "z": 0.5}[direction]
    assert quantities["max"] - quantities["min"] >= length * (1 - 1e-9)
    assert -quantities[f"flux.{'xyz'.index(direction) * 2 + 1}"] * length == pytest.approx(other["tensor"]["xyz".index(direction)]["xyz".index(direction)], rel=1e-9)


INCLUSION = """
problem:
  mesh: {cells: [%d, %d, %d], extent: [%d, %d, %d], regions: [{name: inclusion, where: "%s"}]}
  coefficient: {inclusion: "10", default: "1"}
"""
CUBE = "abs(x - 0.5) < 0.25 && abs(y - 0.5) < 0.25 && abs(z - 0.5) < 0.25"


def test_a_cubic_inclusion_is_between_the_bounds(poisson):
    found = effective(poisson, INCLUSION % (16, 16, 16, 1, 1, 1, CUBE), conditions="both")
    f, (k1, k2) = 1 / 8, (1, 10)
    lower, upper = k1 + f / (1 / (k2 - k1) + (1 - f) / (3 * k1)), k2 + (1 - f) / (1 / (k1 - k2) + f / (3 * k2))
    assert found["bounds"]["hashin_shtrikman"] == pytest.approx([lower, upper], rel=1e-12)
    assert found["bounds"]["voigt"] == pytest.approx(2.125, rel=1e-12) and found["bounds"]["reuss"] == pytest.approx(1 / (0.875 + 0.0125), rel=1e-12)
    for d in range(3):
        assert lower < found["tensor"][d][d] < upper
        assert found["tensor"][d][d] == pytest.approx(found["tensor"][0][0], rel=1e-9)
        # A cell that is its own mirror image: periodic solutions are constant on two sides, and nothing flows through the others.
        assert found["fixed"]["tensor"][d][d] == pytest.approx(found["tensor"][d][d], rel=1e-9)


def test_conditions_are_ordered(poisson):
    """Linear values on all sides give more than periodic conditions; fixed ones what periodic ones give of the sample with its mirror image."""
    off = "x < 0.5 && y < 0.75 && z < 0.75 && y + z > 0.5"
    one = effective(poisson, INCLUSION % (8, 8, 8, 1, 1, 1, off), conditions="both")
    text = (INCLUSION % (8, 8, 8, 1, 1, 1, off)).rstrip() + "\n  boundary: [{ids: all, type: dirichlet, value: \"%s\"}]\n"
    for d, axis in enumerate("xyz"):
        poisson("run", poisson.write(QUIET + text % axis), "--output", "linear", "--overwrite", "--quiet")
        linear = 2 * poisson.record("linear")["quantities"]["energy"]
        assert one["bounds"]["reuss"] < one["tensor"][d][d] < linear < one["bounds"]["voigt"]
        assert one["bounds"]["reuss"] < one["fixed"]["tensor"][d][d] < one["bounds"]["voigt"]
    mirrored = off.replace("x", "min(x, 2 - x)").replace("y", "min(y, 2 - y)").replace("z", "min(z, 2 - z)")
    doubled = effective(poisson, INCLUSION % (16, 16, 16, 2, 2, 2, mirrored))
    assert np.diag(doubled["tensor"]) == pytest.approx(np.diag(one["fixed"]["tensor"]), rel=1e-9)
    assert max(abs(one["tensor"][d][d] / one["fixed"]["tensor"][d][d] - 1) for d in range(3)) > 1e-3  # they do differ


def test_spheres_on_a_cubic_lattice(poisson):
    """Rayleigh's series with the terms of McPhedran and McKenzie (1978), at the share that the cells of the sphere have."""
    errors = []
    for n in (10, 20, 40):
        found = effective(poisson, INCLUSION % (n, n, n, 1, 1, 1, "(x - 0.5)^2 + (y - 0.5)^2 + (z - 0.5)^2 < 0.13"))
        f, k = next(phase["fraction"] for phase in found["phases"] if phase["name"] == "inclusion"), 10
        known = 1 + 3 * f / ((k + 2) / (k - 1) - f - 1.3047 * (k - 1) / (k + 4 / 3) * f ** (10 / 3))
        errors.append(found["tensor"][0][0] / known - 1)
    assert abs(f - 4 / 3 * math.pi * 0.13**1.5) < 0.01
    assert errors[0] > errors[1] > errors[2] > 0 and errors[2] < 0.02, errors


def test_a_pore_that_alone_conducts(poisson):
    """A straight channel and void beside it: the channel's share of the area, and a tortuosity factor of 1 along it."""
    found = effective(poisson, """
problem:
  mesh: {cells: [4, 4, 4], regions: [{name: rock, where: "y > 0.25 && y < 0.75"}]}
  coefficient: {rock: void, default: "2"}
""", conditions="fixed")
    assert {phase["name"]: (phase["fraction"], phase["k"]) for phase in found["phases"]} == {"0": (0.5, 2), "void": (0.5, 0)}
    assert found["tensor"][0][0] == pytest.approx(1, rel=1e-9) and found["tensor"][2][2] == pytest.approx(1, rel=1e-9)
    assert found["tensor"][1][1] == pytest.approx(0, abs=1e-9)
    assert found["relative_diffusivity"][:1] == pytest.approx([0.5], rel=1e-9) and found["tortuosity_factor"][0] == pytest.approx(1, rel=1e-9)
    assert found["bounds"]["reuss"] == 0 and found["bounds"]["hashin_shtrikman"][0] == 0


def numbers_of_image(n, seed):
    """Labels 1 and 2 of voxels, some in slabs so that pieces differ."""
    labels = np.random.default_rng(seed).integers(1, 3, size=(n, n, n)).astype(np.uint8)
    labels[: n // 3] = 1
    return labels


def test_sub_volumes(poisson):
    """Each is a box of its own: the same tensor as that of the image cropped to it, with the place that the record tells."""
    n, size = 10, (4, 5, 6)
    labels = numbers_of_image(n, 5)
    labels.tofile(poisson.directory / "scan.raw")
    mesh = f"image: scan.raw, cells: [{n}, {n}, {n}], type: uint8, spacing: [0.5, 0.5, 1]"
    text = "problem:\n  mesh: {%s}\n  coefficient: {1: \"1\", 2: \"30 + x\"}\n"
    for conditions in ("periodic", "fixed"):
        found = effective(poisson, text % mesh, f"analysis.effective.sub_volumes={{size: {list(size)}, count: 3, seed: 7}}", conditions=conditions)["sub_volumes"]
        quantities = poisson.record()["quantities"]
        assert quantities["effective.sub_volumes.mean.yy"] == found["mean"][1][1] and quantities["effective.sub_volumes.deviation.xx"] == found["deviation"][0][0]
        rows = list(csv.DictReader(open(poisson.directory / "out/sub_volumes.csv")))
        assert [float(row["zz"]) for row in rows] == [v["tensor"][2][2] for v in found["volumes"]]
        assert found["size"] == list(size) and found["count"] == 3 and len({tuple(v["first"]) for v in found["volumes"]}) == 3
        for volume in found["volumes"]:
            (x, y, z), (a, b, c) = volume["first"], size
            piece = labels[z:z + c, y:y + b, x:x + a]
            assert volume["fractions"] == pytest.approx([(piece == 1).mean(), (piece == 2).mean()], rel=1e-12)
            crop = f"crop: [[{x}, {x + a}], [{y}, {y + b}], [{z}, {z + c}]]"
            alone = effective(poisson, text % f"{mesh}, {crop}", conditions=conditions)
            close(volume["tensor"], alone["tensor"])
        tensors = np.array([v["tensor"] for v in found["volumes"]])
        close(found["mean"], tensors.mean(axis=0))
        close(found["deviation"], tensors.std(axis=0, ddof=1))
    more = effective(poisson, text % mesh, f"analysis.effective.sub_volumes={{size: {list(size)}, count: 5, seed: 7}}", conditions="fixed")["sub_volumes"]
    assert [v["first"] for v in more["volumes"][:3]] == [v["first"] for v in found["volumes"]]


@pytest.mark.parametrize("grading, where", [("growth: [1.3, 1.2, 0.8]", "x < 0"), ("refinements: 1", "y > 1.0")])
def test_sub_volumes_of_a_laminate(poisson, grading, where):
    """Those of one material have its k; the others are laminates of what they hold. One as large as the box is the box."""
    found = effective(poisson, LAMINATE % (grading, where), "analysis.effective.sub_volumes={size: 3, count: 12}")["sub_volumes"]
    normal = 0 if where.startswith("x") else 1
    for volume in found["volumes"]:
        core, rest = volume["fractions"][1], volume["fractions"][0]
        series, parallel = 1 / (core + rest / 4), core + 4 * rest
        close(volume["tensor"], np.diag([series if d == normal else parallel for d in range(3)]))


@pytest.mark.parametrize("sets, message", [
    ("{size: 7, count: 2}", "analysis.effective.sub_volumes.size: found 7 cells in x; allowed: up to 6"),
    ("{size: 5, count: 9}", "analysis.effective.sub_volumes.count: found 9; allowed: up to 8"),
    ("{size: 0, count: 9}", "analysis.effective.sub_volumes.size"),
    ("{count: 9}", "analysis.effective.sub_volumes.count")])
def test_sub_volumes_that_are_refused(poisson, sets, message):
    done = effective(poisson, LAMINATE % ("growth: [1, 1, 1]", "x < 0"), f"analysis.effective.sub_volumes={sets}", code=1)
    assert message in done.stderr
    void = effective(poisson, (LAMINATE % ("growth: [1, 1, 1]", "x < 0")).replace('"4"', "void"), "analysis.effective.sub_volumes={size: 3}", code=1, conditions="fixed")
    assert "void" in void.stderr


def test_an_image(poisson):
    """Its box is known from the file: the spheres of the packing, by both conditions, since it is its own mirror image."""
    found = effective(poisson, f"problem:\n  mesh: {{image: {ROOT / 'meshes/packing.mha'}, names: {{1: air, 2: grain}}}}\n  coefficient: {{air: \"1\", grain: \"9\"}}\n",
                      conditions="both")
    assert sorted(phase["name"] for phase in found["phases"]) == ["air", "grain"] and sum(phase["fraction"] for phase in found["phases"]) == pytest.approx(1)
    lower, upper = found["bounds"]["hashin_shtrikman"]
    for d in range(3):
        assert lower < found["tensor"][d][d] < upper
        assert found["fixed"]["tensor"][d][d] == pytest.approx(found["tensor"][d][d], rel=1e-9)


def test_a_sweep_and_a_sample(poisson):
    text = "parameters: {k: 1}\n" + QUIET + LAMINATE % ("growth: [1, 1, 1]", "x < 0") + "analysis: {effective: {conditions: periodic}}\n"
    text = text.replace('"4"', '"k"')
    poisson("sweep", poisson.write(text + "sweep: {parameters.k: [1, 2, 8]}\n"), "--output", "swept", "--quiet")
    rows = list(csv.DictReader(open(poisson.directory / "swept/sweep.csv")))
    for row, k in zip(rows, (1, 2, 8)):
        assert float(row["effective.xx"]) == pytest.approx(2 / (1 + 1 / k), rel=1e-9)
        assert float(row["effective.yy"]) == pytest.approx((1 + k) / 2, rel=1e-9)
    poisson("sweep", poisson.write(text + "sweep: {sample: {count: 6, seed: 1, parameters: {k: {uniform: [1, 2]}}}}\n"), "--output", "sampled", "--quiet")
    statistics = json.loads((poisson.directory / "sampled/sweep.json").read_text())["statistics"]
    assert 1 < statistics["effective.yy"]["mean"] < 1.5 and statistics["effective.yy"]["deviation"] > 0


@ranks.pytestmark
@pytest.mark.parametrize("mesh, order", [("extent: [1, 2, 0.5]", 1), ("extent: [1, 2, 0.5], growth: [1.2, 1, 0.9]", 2)])
@pytest.mark.parametrize("n", [1, 2])
def test_the_file_has_all_three_solutions(poisson, mesh, order, n):
    """The mean of a flux over the cells is a column of the tensor, and u_y grows along y."""
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkIOXML import vtkXMLPImageDataReader, vtkXMLPRectilinearGridReader
    from vtkmodules.vtkIOXML import vtkXMLImageDataReader, vtkXMLRectilinearGridReader

    text = varied(4, (1, 2, 0.5)).replace("extent: [1, 2, 0.5]", mesh) + f"  element: {{order: {order}}}\n"
    words = ("run", poisson.write(text + "output: {picture: false, report: false}\nanalysis: {effective: {conditions: periodic}}\n"), "--quiet", "--output", "out")
    on_ranks(poisson, n, *words)
    found = poisson.record()["effective"]["tensor"]
    grids = {1: (vtkXMLImageDataReader, vtkXMLRectilinearGridReader), 2: (vtkXMLPImageDataReader, vtkXMLPRectilinearGridReader)}
    reader = grids[n][order - 1]()
    reader.SetFileName(str(poisson.directory / "out" / ("solution." + "p" * (n - 1) + ("vti" if order == 1 else "vtr"))))
    reader.Update()
    data = reader.GetOutput()
    points, cells = data.GetPointData(), data.GetCellData()
    low, high = np.array(data.GetBounds())[::2], np.array(data.GetBounds())[1::2]
    at = np.array([data.GetPoint(i) for i in range(data.GetNumberOfPoints())])
    u = vtk_to_numpy(points.GetArray("u_y"))
    for corner in itertools.product((0, 1), repeat=2):
        line = [np.argmin(np.abs(at - np.where([corner[0], side, corner[1]], high, low)).sum(axis=1)) for side in (0, 1)]
        assert u[line[1]] - u[line[0]] == pytest.approx(2, rel=1e-9)
    if order == 1:  # where the flux in the middle of a cell is the mean of its own
        for j, name in enumerate(("flux", "flux_y", "flux_z")):
            assert -vtk_to_numpy(cells.GetArray(name)).mean(axis=0) == pytest.approx([row[j] for row in found], rel=1e-8, abs=1e-9)
    else:
        assert {cells.GetArrayName(i) for i in range(cells.GetNumberOfArrays())} >= {"flux", "flux_y", "flux_z"}


def test_quantities_of_ones_own(poisson):
    effective(poisson, LAMINATE % ("growth: [1, 1, 1]", "x < 0"), "output.quantities={anisotropy: effective.yy / effective.xx}")
    assert poisson.record()["quantities"]["anisotropy"] == pytest.approx(2.5 / 1.6, rel=1e-9)


@ranks.pytestmark
@pytest.mark.parametrize("n", [2, 3])
def test_ranks(poisson, n):
    text = QUIET + varied(6, (1, 2, 0.5))
    words = ("run", poisson.write(text), "--quiet", "--overwrite", "--set=analysis.effective.conditions=both", "--output")
    poisson(*words, "one")
    on_ranks(poisson, n, *words, "ranks")
    one, other = poisson.record("one"), poisson.record("ranks")
    close(other["effective"]["tensor"], one["effective"]["tensor"])
    close(other["effective"]["by_energy"], one["effective"]["by_energy"])
    close(other["effective"]["fixed"]["tensor"], one["effective"]["fixed"]["tensor"])
    assert other["effective"]["phases"] == one["effective"]["phases"]


@ranks.pytestmark
@pytest.mark.parametrize("n", [2, 3])
def test_sub_volumes_on_ranks(poisson, n):
    """Voxels of a sub-volume are those of several ranks."""
    numbers_of_image(8, 5).tofile(poisson.directory / "scan.raw")
    text = QUIET + """
problem: {mesh: {image: scan.raw, cells: [8, 8, 8], type: uint8, spacing: 1}, coefficient: {1: "1", 2: "30"}}
analysis: {effective: {conditions: periodic, sub_volumes: {size: [5, 4, 6], count: 3, seed: 7}}}
"""
    words = ("run", poisson.write(text), "--quiet", "--overwrite", "--output")
    poisson(*words, "one")
    on_ranks(poisson, n, *words, "ranks")
    one, other = (poisson.record(name)["effective"]["sub_volumes"] for name in ("one", "ranks"))
    assert [v["first"] for v in one["volumes"]] == [v["first"] for v in other["volumes"]]
    for here, there in zip(one["volumes"], other["volumes"]):
        assert here["fractions"] == pytest.approx(there["fractions"], rel=1e-12)
        close(here["tensor"], there["tensor"])


# A layer that conducts so much better: across it the other one alone counts.
LAYERS = """
problem:
  mesh: {coordinates: {x: [0, 0.5, 1], y: [0, 0.2, 1, 2], z: [0, 0.1, 0.3, 1]}, regions: [{name: metal, where: "z < 0.3"}]}
  coefficient: {metal: "%g", default: "1"}
"""


@pytest.mark.parametrize("contrast", [1e6, 1e10, 1e14])
@pytest.mark.parametrize("conditions", ["periodic", "fixed"])
def test_every_direction_is_right_whatever_the_contrast(poisson, contrast, conditions):
    found = effective(poisson, LAYERS % contrast, conditions=conditions, difference=1e-6)
    along, across = 0.3 * contrast + 0.7, 1 / (0.3 / contrast + 0.7)
    for tensor in (found["tensor"], found["by_energy"]):
        assert [tensor[d][d] for d in range(3)] == pytest.approx([along, along, across], rel=1e-6)


def test_the_resolved_configuration_runs_again(poisson):
    one = effective(poisson, varied(4, (1, 2, 0.5)), conditions="fixed")
    poisson("run", "out/resolved.yaml", "--output", "again", "--quiet")
    assert poisson.record("again")["effective"]["tensor"] == one["tensor"]


BOX = "problem:\n  mesh: {cells: [4, 4, 4]%s}\n  coefficient: \"1 + x\"\n"


@pytest.mark.parametrize("more, key, told", [
    ("  boundary: [{ids: [0, 1], type: periodic}]\n", "problem.boundary", "only without analysis.effective"),
    ("  source: \"1\"\n", "problem.source", "no source"),
    ("  source_total: 1\n", "problem.source_total", "no source"),
    ("  point_sources: [{at: [0.5, 0.5, 0.5], value: 1}]\n", "problem.point_sources", "no source"),
    ("  line_sources: [{from: [0.5, 0.5, 0.5], to: [0.5, 0.5, 1], value: \"1\"}]\n", "problem.line_sources", "no source"),
    ("  exact: \"x\"\n", "problem.exact", "solutions of their own"),
])
def test_what_its_problems_have_by_themselves_is_refused(poisson, more, key, told):
    done = effective(poisson, BOX % "" + more, code=1)
    assert key + ":" in done.stderr and told in done.stderr


def test_other_meshes_are_refused(poisson):
    assert "needs a box" in effective(poisson, "problem: {mesh: {generator: hyper_cube, refinements: 2}}\n", code=1).stderr
    assert "needs a box" in effective(poisson, f"problem: {{mesh: {{file: {ROOT / 'meshes/ball.msh'}}}}}\n", code=1).stderr
    assert "names for parts" in effective(poisson, BOX % ", boundaries: [{name: a, where: \"x < 0.1\"}]", code=1).stderr
    done = effective(poisson, BOX % "", "analysis.effective.direction=y", conditions="none", code=1)
    assert "problem.boundary" in done.stderr  # is missing without it


@pytest.mark.parametrize("conditions, where, told", [
    ("fixed", "y < 0.5", "the mesh has no boundary id 2"),
    ("periodic", "x + y > 1.1", "boundary 1 is not boundary 0 moved by a translation"),
    ("periodic", "abs(x - 0.5) < 0.125 || abs(y - 0.5) < 0.125 || abs(z - 0.5) < 0.125", "8 parts that do not touch"),
])
def test_pores_that_its_conditions_do_not_fit_are_told(poisson, conditions, where, told):
    done = effective(poisson, "problem:\n  mesh: {cells: [8, 8, 8], regions: [{name: rock, where: \"%s\"}]}\n  coefficient: {rock: void, default: \"2\"}\n" % where,
                     conditions=conditions, code=1)
    assert "analysis.effective" in done.stderr and "do not fit this mesh" in done.stderr and told in done.stderr


@pytest.mark.parametrize("solver", ["{precision: refined, tolerance: 1.0e-18}", "{method: bicgstab}", "{preconditioner: multigrid, initial: nested}"])
def test_other_solvers(poisson, solver):
    """The further right-hand sides go the way of the first."""
    expected = dense_reference(cells_of(4), (1.0, 2.0, 0.5), True)
    close(effective(poisson, varied(4, (1.0, 2.0, 0.5)), f"solver={solver}")["tensor"], expected, 1e-8)


def test_a_problem_that_is_not_solved_ends_with_code_2(poisson):
    poisson("run", poisson.write(QUIET + varied(6, (1, 1, 1))), "--output", "out", "--quiet", "--set=analysis.effective.conditions=periodic",
            "--set=solver.max_iterations=3", "--set=solver.preconditioner=none", code=2)
    record = poisson.record()
    assert record["quantities"]["effective.xx"] is None and "solves" not in record["effective"]
