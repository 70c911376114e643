"""Coefficients that are full tensors: six expressions, or values along the axes of a turned frame."""

import math

import numpy as np
import pytest

HEAD = "output: {picture: false, vtk: {enabled: false}}\nsolver: {tolerance: 1.0e-13}\n"
K = np.array([[2, 0.5, -0.3], [0.5, 1, 0.2], [-0.3, 0.2, 3]])
SIX = '["2", "1", "3", "0.5", "-0.3", "0.2"]'


def run(poisson, text, *sets, name="out", **more):
    return poisson("run", poisson.write(HEAD + text), "--output", name, "--overwrite", "--quiet", *[f"--set={s}" for s in sets], **more)


@pytest.mark.parametrize("mesh", ["{cells: [4, 3, 5], extent: [2, 1, 3]}", "{file: MESH, refinements: 1}"])
def test_a_quadratic_solution_is_exact(poisson, mesh):
    """u = x^2 + x y - 2 y z + 3 z, with -div(K grad u) = -(2 K_xx + 2 K_xy - 4 K_yz): elements of order 2 hold it on straight cells."""
    text = f"""
problem:
  mesh: {mesh.replace("MESH", str(poisson.directory / "cells.inp"))}
  element: {{order: 2}}
  coefficient: {SIX}
  source: "-(2*2 + 2*0.5 - 4*0.2)"
  boundary:
    - {{ids: all, type: dirichlet, value: "x^2 + x*y - 2*y*z + 3*z"}}
  exact: "x^2 + x*y - 2*y*z + 3*z"
"""
    # two slanted cells, as UCD
    poisson.write("12 2 0 0 0\n" + "\n".join(f"{i + 1} {x + 0.3 * y} {y + 0.1 * z} {z - 0.2 * x}" for i, (x, y, z) in enumerate(
        [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1), (2, 0, 0), (2, 1, 0), (2, 0, 1), (2, 1, 1)]))
        + "\n1 0 hex 1 2 3 4 5 6 7 8\n2 0 hex 2 9 10 3 6 11 12 7\n", "cells.inp")
    for storage in ["csr", "cod_sell"]:
        run(poisson, text, f"matrix.format={storage}", "output.probes=[{name: p, at: [1.1, 0.52, 0.4]}]")
        record = poisson.record()
        assert record["errors"]["l2"] < 1e-10 and record["errors"]["h1_seminorm"] < 1e-9
        x, y, z = 1.1, 0.52, 0.4
        flux = -K @ [2 * x + y, x - 2 * z, -2 * y + 3]
        assert record["quantities"]["probe.p.flux"] == pytest.approx(list(flux), abs=1e-8)
        assert sum(v for n, v in record["quantities"].items() if n.startswith("flux.")) == pytest.approx(record["quantities"]["integral_f"], rel=1e-8)


def test_the_error_falls_as_theory_says_on_a_ball(poisson):
    # K_yy = 1 + x^2 does not depend on y
    text = f"""
problem:
  mesh: {{generator: hyper_ball}}
  coefficient: {SIX.replace('"1"', '"1 + x^2"')}
  source: "2*sin(x)*cos(y) + (1 + x^2)*sin(x)*cos(y) + 2*0.5*cos(x)*sin(y)"
  boundary: [{{ids: all, type: dirichlet, value: "sin(x)*cos(y)"}}]
  exact: "sin(x)*cos(y)"
"""
    errors = []
    for refinements in [1, 2, 3]:
        run(poisson, text, f"problem.mesh.refinements={refinements}")
        errors.append(poisson.record()["errors"]["l2"])
    assert math.log2(errors[1] / errors[2]) > 1.85, errors


def test_a_frame_is_the_rotated_tensor(poisson):
    text = """
problem:
  mesh: {cells: [4, 4, 4]}
  element: {order: 2}
  frames: [{name: bedding, axis: [0, 0, 2], angle: 30}]
  coefficient: COEFFICIENT
  source: "x*y"
  boundary: [{ids: all, type: dirichlet, value: "z"}]
"""
    c, s = math.cos(math.pi / 6), math.sin(math.pi / 6)
    k = [5 * c * c + s * s, 5 * s * s + c * c, 2, 4 * s * c, 0, 0]
    probe = "output.probes=[{name: p, at: [0.4, 0.3, 0.6]}]"
    found = []
    for coefficient in ["{frame: bedding, principal: [5, 1, 2]}", str(k), "{default: {frame: bedding, principal: ['5', '1', '2']}}"]:
        run(poisson, text.replace("COEFFICIENT", coefficient), probe)
        q = poisson.record()["quantities"]
        found.append([q["probe.p"], q["energy"], *q["probe.p.flux"]])
    assert found[1] == pytest.approx(found[0], rel=1e-11) and found[2] == pytest.approx(found[0], rel=1e-14)
    low = []
    for storage in ["csr", "half_cds"]:
        run(poisson, text.replace("COEFFICIENT", "{frame: bedding, principal: [5, 1, 2]}"), "problem.element.order=1", "problem.mesh.cells=[12, 12, 12]",
            f"matrix.format={storage}", "solver.preconditioner=multigrid", probe)
        low.append(poisson.record()["quantities"]["probe.p"])
    assert low[1] == pytest.approx(low[0], rel=1e-11) and low[0] == pytest.approx(found[0][0], rel=0.05)
    run(poisson, "include: out/resolved.yaml\n", probe, name="again")
    assert poisson.record("again")["quantities"]["probe.p"] == pytest.approx(low[1], rel=1e-12)


def test_the_tensor_in_the_file_for_paraview(poisson):
    from conftest import read_vtk
    from vtkmodules.util.numpy_support import vtk_to_numpy

    text = f"""
problem:
  mesh: {{cells: [2, 2, 2]}}
  coefficient: {SIX}
  boundary: [{{ids: all, type: dirichlet, value: "x"}}]
"""
    run(poisson, text, "output.vtk.enabled=true")
    cells = read_vtk(poisson.directory / "out/solution.vti").GetCellData()
    assert vtk_to_numpy(cells.GetArray("coefficient")).tolist() == [[2, 1, 3, 0.5, 0.2, -0.3]] * 8  # XX YY ZZ XY YZ XZ
    assert vtk_to_numpy(cells.GetArray("flux")) == pytest.approx(np.tile(-K[:, 0], (8, 1)), abs=1e-10)


@pytest.mark.parametrize("coefficient, words", [
    ("['1', '1', '1', '2', '0', '0']", ["problem.coefficient", "eigenvalue -1", "positive definite"]),
    ("['1', '1', '1', '2*x', '0', '0']", ["problem.coefficient", "at (x, y, z) =", "positive definite"]),
    ("['1', '1', '1', '1/(x - x)', '0', '0']", ["problem.coefficient[3]", "finite"]),
    ("['1', '1', '1', '2']", ["problem.coefficient", "found a list of 4", "[xx, yy, zz, xy, xz, yz]"]),
    ("{frame: beding, principal: [1, 2, 3]}", ["problem.coefficient.frame", "no frame named 'beding'", "did you mean 'bedding'"]),
    ("{frame: bedding, principal: [1, 2]}", ["problem.coefficient.principal", "found a list of 2", "list of three"]),
    ("{frame: bedding, principal: [1, -2, 3]}", ["problem.coefficient[1]", "positive"]),
    ("{principal: [1, 2, 3]}", ["problem.coefficient.frame", "must be given"]),
    ("{frame: still, principal: [1, 2, 3]}", ["problem.frames[1].axis", "no length"]),
])
def test_bad_tensors(poisson, coefficient, words):
    text = f"""
problem:
  mesh: {{cells: [2, 2, 2]}}
  frames: [{{name: bedding, axis: [0, 0, 1], angle: 30}}, {{name: still, axis: [0, 0, 0], angle: 30}}]
  coefficient: {coefficient}
  boundary: [{{ids: all, type: dirichlet, value: "0"}}]
"""
    found = run(poisson, text, code=1)
    for word in words:
        assert word in found.stderr, found.stderr


@pytest.mark.parametrize("mesh, order, found", [
    ("{cells: [9, 8, 7]}", 1, "half_cds"), ("{cells: [4, 5, 3], coordinates: {x: [0, 0.1, 0.5, 0.7, 1]}}", 2, "matrix_free"),
    ("{generator: hyper_ball, refinements: 2}", 1, "half_cds"), ("{generator: hyper_shell, refinements: 1}", 3, "matrix_free"),
    ("{cells: [8, 8, 8], regions: [{name: core, where: x + y < 0.8}]}", 1, "half_cds")])
def test_tensors_need_no_csr(poisson, mesh, order, found):
    """What gpu/elements assembles, by every quantity and error of a run from CSR; linear functions are exact for constants."""
    core = ", core: {frame: bedding, principal: [5, 1, 2]}" if "core" in mesh else ""
    text = f"""
problem:
  mesh: {mesh}
  element: {{order: {order}}}
  frames: [{{name: bedding, axis: [0, 1, 2], angle: 30}}]
  coefficient: {{default: {SIX.replace('"2"', 'K')}{core}}}
  source: "f*(1 + x)"
  boundary: [{{ids: all, type: dirichlet, value: "x + 2*y - 3*z"}}]
  exact: "x + 2*y - 3*z"
parameters: {{f: 0}}
"""
    run(poisson, text.replace("K", "'2'"))
    assert poisson.record()["matrix"]["format"] == found
    if not core and order < 3:  # of curved cells of order 3 integrals are inexact
        assert poisson.record()["errors"]["linf"] < 1e-11
    records = []
    for storage in ["auto", "csr", "matrix_free"]:
        run(poisson, text.replace("K", "'2 + x*x'"), "parameters.f=1", f"matrix.format={storage}")
        records.append(poisson.record())
    assert records[1]["matrix"]["format"] == "csr" and records[2]["matrix"]["format"] == "matrix_free"
    scale = max(abs(v) for n, v in records[1]["quantities"].items() if n.startswith("flux."))
    for name, value in {**records[1]["quantities"], **records[1]["errors"]}.items():
        for record in records[::2]:
            other = {**record["quantities"], **record["errors"]}[name]
            assert other == pytest.approx(value, rel=1e-9, abs=1e-10 * scale), name


def test_a_tensor_that_is_not_definite_somewhere_is_told_by_every_assembly(poisson):
    for mesh, order in [("{cells: [6, 6, 6]}", 1), ("{cells: [6, 6, 6]}", 2), ("{generator: hyper_cube, refinements: 3}", 1)]:
        for storage in ["auto", "csr"]:
            text = f"""
problem:
  mesh: {mesh}
  element: {{order: {order}}}
  coefficient: ["1", "2", "1", "2*z", "0", "0"]
  boundary: [{{ids: all, type: dirichlet, value: "0"}}]
"""
            error = run(poisson, text, f"matrix.format={storage}", code=1).stderr
            assert "problem.coefficient: the coefficient's tensor has the eigenvalue -" in error and "at (x, y, z) = (" in error
