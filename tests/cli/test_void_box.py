"""The cells of a box that void leaves, by labels and a table of the whole box, beside the same problem in csr."""

import numpy as np
import pytest

SHAPE = (17, 20, 14)
BASE = """
problem:
  mesh: {image: rock.raw, cells: [17, 20, 14], type: uint8, spacing: [0.1, 0.2, 0.15], names: {0: grain, 1: brine, 2: clay}}
  coefficient: {brine: "2", clay: "0.5", grain: void}
  boundary:
    - {ids: [0], type: dirichlet, value: "1 + y"}
    - {ids: [1], type: dirichlet, value: "0"}
    - {ids: all, type: neumann, value: "0"}
solver: {tolerance: 1.0e-12}
output: {picture: false, report: false}
"""


def rock(poisson, with_pores=False):
    """Brine and a little clay around grains; and `with_pores` that touch nothing else."""
    noise = np.random.default_rng(3).standard_normal(SHAPE[::-1])
    for axis in range(3):
        noise = noise + np.roll(noise, 1, axis) + np.roll(noise, -1, axis)
    labels = np.where(noise > np.quantile(noise, 0.55), 0, np.where(noise < np.quantile(noise, 0.1), 2, 1))
    reached = np.zeros(SHAPE[::-1], bool)
    reached[:, :, 0] = reached[:, :, -1] = True
    for _ in range(200):
        reached &= labels != 0
        for axis in range(3):  # cells that share a corner are one part
            padded = np.pad(reached, [(1, 1) if a == axis else (0, 0) for a in range(3)])
            reached = reached | np.take(padded, range(SHAPE[::-1][axis]), axis) | np.take(padded, range(2, SHAPE[::-1][axis] + 2), axis)
    reached &= labels != 0
    assert not with_pores or (labels[~reached] != 0).any()
    np.where(reached | with_pores, labels, 0).astype(np.uint8).tofile(poisson.directory / "rock.raw")


def both(poisson, text, *words, with_pores=False):
    """The records by labels, and in csr."""
    rock(poisson, with_pores)
    config = poisson.write(text)
    sets = [word for setting in words for word in ("--set", setting)]
    records = []
    for matrix in ("matrix_free", "csr"):
        poisson("run", config, "--output", matrix, "--overwrite", "--quiet", "--backend", "cpu", *sets, "--set", f"matrix.format={matrix}")
        records.append(poisson.record(matrix))
    assert all(record["status"] == "converged" for record in records)
    return records


def compare(labels, csr, rel=1e-8):
    assert labels["dofs"] == csr["dofs"] and labels["nnz"] == csr["nnz"] and labels["mesh"] == csr["mesh"]
    assert labels["quantities"].keys() == csr["quantities"].keys()
    sizes = [abs(v) for k, v in csr["quantities"].items() if k.startswith("flux.")]
    for name, value in csr["quantities"].items():
        if isinstance(value, (int, float)):
            assert labels["quantities"][name] == pytest.approx(value, rel=rel, abs=1e-9 * max(sizes)), name


SOURCE = "problem.source={brine: 'sin(x) + y', clay: '3', default: '0'}"
VARIANTS = {
    "as it is": [],
    "three components": ["problem.coefficient={brine: ['2', '1', '4'], clay: '0.5', grain: void}"],
    "a source": [SOURCE],
    "a constant source": ["problem.source=2"],
    "point and line": ["problem.point_sources=[{at: [0.8, 2, 1], value: 3}]", "problem.source=x"],
    "flux through grains": ["problem.boundary=[{ids: [0], type: dirichlet, value: 'z'}, {names: [void_surface], type: neumann, value: '0.3 + x'}, "
                            "{ids: [1, 2, 3], type: neumann, value: '0'}, {ids: [4, 5], type: neumann, value: 'y'}]"],
    "values on all sides": ["problem.boundary=[{ids: [0, 1, 2, 3, 4, 5], type: dirichlet, value: 'x * y - z'}, {ids: all, type: neumann, value: '0'}]"],
    "much contrast": ["problem.coefficient={brine: '1e6', clay: '1', grain: void}"],
    "double-double": ["solver.precision=double_double", "solver.tolerance=1e-20"],
    "refined": ["solver.precision=refined", "solver.tolerance=1e-18"],
    "jacobi": ["solver.preconditioner=jacobi", SOURCE],
    "none": ["solver.preconditioner=none"],
    "bicgstab": ["solver.method=bicgstab", SOURCE],
    "minres": ["solver.method=minres"],
    "multigrid in double": ["solver.multigrid.precision=double"],
    "only brine": ["problem.coefficient={brine: '1', clay: void, grain: void}"],
}


@pytest.mark.parametrize("name", VARIANTS)
def test_labels_and_csr_are_one_problem(poisson, name):
    labels, csr = both(poisson, BASE, *VARIANTS[name], with_pores=name == "as it is")
    assert (labels["mesh"]["left_out"]["parts"] > 0 if name == "as it is" else "left_out" not in labels["mesh"] or not labels["mesh"]["left_out"])
    assert labels["matrix"]["format"] == "matrix_free" and csr["matrix"]["format"] == "csr"
    assert labels["matrix"]["bytes"] < csr["matrix"]["bytes"] / 10
    compare(labels, csr)


def test_auto_takes_labels_and_multigrid_few_iterations(poisson):
    rock(poisson)
    config = poisson.write(BASE)
    told = poisson("check", config, "--backend", "cpu").stdout
    assert "matrix_free, as it is stored (a box with void, whose cells have labels and k a table)" in told
    poisson("run", config, "--output", "auto", "--quiet", "--backend", "cpu", "--set", "solver.preconditioner=multigrid")
    r = poisson.record("auto")
    assert r["matrix"]["format"] == "matrix_free" and r["solver"]["preconditioner"] == "multigrid" and r["solver"]["iterations"] <= 14
    q = r["quantities"]
    assert q["flux.0"] + q["flux.1"] == pytest.approx(0, abs=1e-10 * abs(q["flux.0"])) and q["flux.void_surface"] == 0


def test_u_is_linear_where_no_grain_is_in_the_way(poisson):
    """A duct through the box along x: u = 1 - x / 1.7, and half of the flux times the jump is the energy."""
    labels = np.zeros(SHAPE[::-1], np.uint8)
    labels[3:9, 4:15, :] = 1
    labels.tofile(poisson.directory / "rock.raw")
    config = poisson.write(BASE.replace('"1 + y"', '"1"').replace(', 2: clay', '').replace('clay: "0.5", ', '').replace("problem:\n", "problem:\n  exact: 1 - x / 1.7\n"))
    poisson("run", config, "--output", "duct", "--quiet", "--backend", "cpu")
    r = poisson.record("duct")
    through = 2 / 1.7 * (6 * 0.15) * (11 * 0.2)
    assert r["matrix"]["format"] == "matrix_free" and r["errors"]["linf"] < 1e-10
    assert r["quantities"]["flux.1"] == pytest.approx(through, rel=1e-10) and r["quantities"]["energy"] == pytest.approx(through / 2, rel=1e-10)


def test_a_value_that_only_void_would_need(poisson):
    """On the side x = 0 the given u has no value where z < 0.3, which grains fill."""
    labels = np.ones(SHAPE[::-1], np.uint8)
    labels[:2] = 0
    labels.tofile(poisson.directory / "rock.raw")
    text = BASE.replace('"1 + y"', '"sqrt(z - 0.3)"').replace(', 2: clay', '').replace('clay: "0.5", ', '')
    config = poisson.write(text)
    poisson("run", config, "--output", "given", "--quiet", "--backend", "cpu")
    poisson("run", config, "--output", "csr", "--quiet", "--backend", "cpu", "--set", "matrix.format=csr")
    assert poisson.record("given")["quantities"]["flux.0"] == pytest.approx(poisson.record("csr")["quantities"]["flux.0"], rel=1e-9)
    bad = poisson.write(text.replace("z - 0.3", "z - 0.4"), "bad.yaml")
    assert "problem.boundary[0].value" in poisson("run", bad, "--output", "bad", code=1).stderr


def test_files_are_those_of_csr(poisson):
    from vtk import vtkXMLUnstructuredGridReader
    from vtk.util.numpy_support import vtk_to_numpy
    both(poisson, BASE, SOURCE)
    fields = []
    for folder in ("matrix_free", "csr"):
        reader = vtkXMLUnstructuredGridReader()
        reader.SetFileName(str(poisson.directory / folder / "solution.vtu"))
        reader.Update()
        grid = reader.GetOutput()
        fields.append([vtk_to_numpy(grid.GetPoints().GetData()), vtk_to_numpy(grid.GetPointData().GetArray("u"))])
    assert np.array_equal(fields[0][0], fields[1][0]) and np.allclose(fields[0][1], fields[1][1], rtol=0, atol=1e-9)


def test_cases_that_differ_in_f_share_the_matrix(poisson):
    rock(poisson)
    config = poisson.write("parameters: {a: 1}\n" + BASE.replace("problem:\n", "problem:\n  source: a\n") + "sweep: {parameters.a: [1, 2, 3]}\n")
    poisson("sweep", config, "--output", "swept", "--quiet", "--backend", "cpu")
    records = sorted((poisson.directory / "swept").rglob("result.json"))
    means = [poisson.record(record.parent)["quantities"]["mean"] for record in records]
    assert len(means) == 3 and sorted(means)[2] - sorted(means)[1] == pytest.approx(sorted(means)[1] - sorted(means)[0], rel=1e-9)
