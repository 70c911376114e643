"""analysis.svd on several ranks: the first one analyses what it gathers, with the records and files of one rank."""

import csv
import json
import os
import re
import signal
import subprocess

import numpy as np
import pytest
from conftest import CUBE, ROOT, array, read_vtk
from test_matrix_out import read_vector
from ranks import BALL, VARIED, errors_told, on_ranks, pytestmark, ranks_of, ranks_command  # noqa: F401

ALL = """
analysis:
  svd:
    - {of: operator, modes: 2}
    - {of: operator, max_dense: 20}
    - {of: field, points: 21, normal: x, error: 1e-4}
    - {of: snapshots}
    - {of: field, sample: box, points: 12, error: 1e-3}
"""
NOISE = {"seconds", "orthogonality_u", "orthogonality_v", "residual"}  # times, and what rounding alone makes


def both(poisson, text, n, *settings, code=0):
    words = ("run", poisson.write(text), "--backend", "cpu", *(f"--set={s}" for s in ("output.picture=false", *settings)), "--output")
    alone = poisson(*words, "one", code=code)
    done = on_ranks(poisson, n, *words, "ranks", code=code)
    return poisson.record("one"), poisson.record("ranks"), alone, done


def compare_values(one, other, of):
    assert list(one) == list(other)
    for key in one.keys() - NOISE:
        if of == "field" and key in ("condition", "smallest"):
            continue  # where rounding begins
        if isinstance(one[key], dict):
            compare_values(one[key], other[key], of)
        elif key in ("iterations", "bound_iterations", "lanczos_iterations"):
            assert abs(one[key] - other[key]) <= 1 + 0.1 * one[key], key
        elif isinstance(one[key], float):
            assert other[key] == pytest.approx(one[key], rel=1e-2 if "estimated" in one else 1e-7, abs=1e-12), key
        else:
            assert other[key] == one[key], key


def columns_of(path):
    rows = list(csv.reader(path.open()))
    return rows[0], [np.array([float(x) for x in column if x]) for column in zip(*rows[1:])]


def compare_files(poisson, names):
    for name in names:
        one, other = poisson.directory / "one" / name, poisson.directory / "ranks" / name
        if name.endswith("values.csv"):
            (head, columns), (other_head, other_columns) = columns_of(one), columns_of(other)
            assert head == other_head
            for a, b in zip(columns, other_columns, strict=True):
                assert np.allclose(a, b, rtol=1e-7, atol=1e-9 * a.max() + 1e-12), name
        elif name.endswith("convergence.csv"):
            assert columns_of(one)[0] == columns_of(other)[0]
        else:
            a, b = read_vtk(one), read_vtk(other)
            assert a.GetNumberOfPoints() == b.GetNumberOfPoints() and a.GetNumberOfCells() == b.GetNumberOfCells()
            points, others = a.GetPointData(), b.GetPointData()
            fields = [points.GetArrayName(i) for i in range(points.GetNumberOfArrays())]
            assert fields == [others.GetArrayName(i) for i in range(others.GetNumberOfArrays())]
            for field in fields:
                u, v = array(points, field), array(others, field)
                sign = -1 if name.endswith("modes.vtu") and u @ v < 0 else 1  # which rounding decides
                assert np.allclose(u, sign * v, rtol=1e-6, atol=1e-6), (name, field)


def compare(poisson, one, other):
    for a, b in zip(one["analysis"], other["analysis"], strict=True):
        compare_values(a, b, a["of"])
    names = [name for name in one["files"] if name.startswith("svd")]
    assert names and names == [name for name in other["files"] if name.startswith("svd")]
    compare_files(poisson, names)


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_box(poisson, n):
    one, other, alone, done = both(poisson, VARIED + ALL, n, "problem.mesh.cells=[7, 6, 8]")
    compare(poisson, one, other)
    assert one["analysis"][1]["method"] == "lanczos" and "note" in one["analysis"][3] and one["analysis"][2]["rank"] > 1
    told = [re.findall(r"    (operator:.*(?:, symm)|field:.*)", d.stdout) for d in (alone, done)]
    assert told[0] == told[1] and len(told[0]) == 4 and done.stdout.count("5 of singular values") == 1


@pytest.mark.parametrize("n, settings", [(3, ["problem.element.order=2"]), (2, ["problem.mesh.growth=[1, 1.2, 1]"]),
                                         (2, ["matrix.format=half_cds", "problem.mesh.cells=[9, 8, 10]"]), (5, ["problem.mesh.cells=[1, 1, 3]"])])
def test_other_boxes(poisson, n, settings):
    one, other, _, _ = both(poisson, VARIED + ALL, n, "problem.mesh.cells=[4, 3, 5]", *settings)
    compare(poisson, one, other)


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("settings", [[], ["problem.element.order=2", "problem.mesh.refinements=1"]])
def test_a_ball(poisson, n, settings):
    one, other, _, _ = both(poisson, BALL + ALL, n, *settings)
    compare(poisson, one, other)
    assert one["analysis"][2]["points_outside"] > 0


@pytest.mark.parametrize("n", [2, 3])
def test_a_mesh_file(poisson, n):
    text = BALL.replace("generator: hyper_ball, refinements: 2", f"file: {ROOT}/meshes/two_materials.msh").replace("z > 0.3", "z > 0.99")
    compare(poisson, *both(poisson, text + ALL, n)[:2])


@pytest.mark.parametrize("boundary", ["[{ids: all, type: neumann, value: '0'}]", "[{ids: [0, 1], type: periodic}, {ids: all, type: neumann, value: '0'}]",
                                      "[{ids: [0, 1], type: periodic, value: '1'}, {ids: all, type: dirichlet, value: 'x'}]"])
def test_singular_and_periodic_problems(poisson, boundary):
    text = VARIED.replace('"sin(3*x) + y*z"', '"cos(2*pi*y)"')
    one, other, _, _ = both(poisson, text.replace("  exact", "  #") + ALL, 3, "problem.mesh={cells: [5, 4, 6]}", f"problem.boundary={boundary}",
                            "problem.coefficient=1 + y")
    compare(poisson, one, other)
    assert one["analysis"][0]["null_space"]["expected"] == (1 if "all, type: neumann" in boundary and "periodic" not in boundary else 0)


def test_a_failing_analysis_is_told_as_on_one_rank(poisson):
    text = CUBE.replace("[8, 8, 8]", "[8, 7, 6]")  # on a cube the largest singular value is threefold, and its mode any of many
    text += "analysis: {svd: [{of: field, at: 7}, {of: field, points: 5}, {of: operator, modes: 1}]}\n"
    one, other, alone, done = both(poisson, text, 2, code=1)
    assert errors_told(done) == errors_told(alone) and len(errors_told(done)) == 1 and "analysis.svd[0]" in done.stderr
    compare(poisson, one, other)
    assert "misses the mesh" in other["analysis"][0]["error"] and other["exit_code"] == 1 and other["status"] == "converged"


@pytest.mark.parametrize("settings", [["problem.mesh.cells=[1, 1, 1]"], ["matrix.format=matrix_free"]])
def test_what_has_no_operator(poisson, settings):
    text = CUBE + "analysis: {svd: [{of: operator}]}\n"
    words = ("run", poisson.write(text), "--backend", "cpu", *(f"--set={s}" for s in settings), "--output")
    assert errors_told(poisson(*words, "one", code=1)) == errors_told(on_ranks(poisson, 3, *words, "ranks", code=1))


@pytest.mark.skipif(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 60e9, reason="it would fit the memory")
def test_what_does_not_fit_the_memory_is_refused(poisson):
    text = CUBE.replace("8, 8, 8", "34, 34, 34") + "analysis: {svd: [{of: operator, max_dense: 40000}, {of: field, points: 5}]}\n"
    one, other, alone, done = both(poisson, text, 2, code=3)
    told = [[line.split(" of memory")[0] for line in errors_told(d)] for d in (alone, done)]
    assert told[0] == told[1] and "the dense operator of 35 937 unknowns needs" in told[0][0] and "error" not in other["analysis"][1]


@pytest.mark.parametrize("rank", [0, 1])
def test_an_interrupt_keeps_the_solution(poisson, rank):
    config = poisson.write(CUBE + "output: {picture: false}\nanalysis: {svd: [{of: field, sample: box, points: 120}, {of: field, points: 5}]}\n")
    process = subprocess.Popen(ranks_command(2, "run", config, "--output", "out", "--threads", "1"), cwd=poisson.directory, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for line in process.stdout:
        if line.startswith("  output"):
            break
    os.kill(ranks_of(process)[rank], signal.SIGINT)
    out, errors = process.communicate(timeout=200)
    assert process.returncode == 130, out + errors
    record = poisson.record("out")
    assert record["status"] == "interrupted" and record["exit_code"] == 130 and "in the analysis" in record["reason"]
    assert record["errors"]["l2"] > 0 and "solution.pvti" in record["files"] and len(record["analysis"]) <= 2


@pytest.mark.parametrize("text", [CUBE, BALL.partition("solver:")[0]], ids=["box", "ball"])
def test_snapshots_of_cases_on_ranks(poisson, text):
    config = poisson.write(text + """
analysis: {svd: [{of: snapshots, modes: 2}]}
sweep: {problem.coefficient: ["1", "1 + x*x", "1 + 2*x*x"]}
output: {picture: false, report: false}
""")
    for number in range(3):
        poisson("sweep", config, "--output", "one", "--case", number, "--quiet")
        on_ranks(poisson, 2, "sweep", config, "--output", "ranks", "--case", number, "--quiet")
    entries = []
    for directory in ("one", "ranks"):
        poisson("sweep", config, "--output", directory, "--collect")
        entries += json.loads((poisson.directory / directory / "sweep.json").read_text())["analysis"]
    for one in (poisson.directory / "one/cases").glob("*/solution.mtx"):
        other = poisson.directory / "ranks/cases" / one.parent.name / one.name
        assert np.allclose(read_vector(one), read_vector(other), rtol=1e-8, atol=1e-10)
    assert entries[0]["largest"] == pytest.approx(entries[1]["largest"], rel=1e-9)
    assert entries[0]["projection_error"] == pytest.approx(entries[1]["projection_error"], rel=1e-6)


def test_check_takes_analyses(poisson):
    assert "# Estimates for 3 ranks" in poisson("check", poisson.write(CUBE + ALL), "--ranks", 3).stdout
