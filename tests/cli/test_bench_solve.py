"""poisson bench solve: tables, JSON and errors. The measurements are not judged here, only that they are reported consistently."""

import csv
import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ("--backend", "cpu", "--repeat", "2")


def measured(poisson, *words, code=0):
    poisson("bench", "solve", *words, *HERE, "--json", "bench.json", code=code)
    return json.loads((poisson.directory / "bench.json").read_text())


def way(r):
    return r["format"], r["method"], r["precision"], r["preconditioner"]


UNSYMMETRIC = """%%MatrixMarket matrix coordinate real general
3 3 5
1 1 4
1 2 1
2 2 5
3 1 2
3 3 6
"""

SYMMETRIC = """%%MatrixMarket matrix coordinate real symmetric
3 3 5
1 1 4
2 1 1
2 2 5
3 2 -2
3 3 6
"""


def test_hypre_stands_beside_multigrid(poisson):
    matrix = measured(poisson, "--nodes", "17", "--format", "half_cds", "--preconditioner", "none,multigrid")["matrices"][0]
    if matrix["left_out"]:  # the library is not there
        assert "cannot be loaded" in matrix["left_out"][0]["reason"] and matrix["peers"] == []
        return
    (peer,) = matrix["peers"]
    assert (peer["peer"], peer["method"], peer["preconditioner"]) == ("hypre", "cg", "multigrid")
    assert peer["status"] == "converged" and 3 < peer["iterations"] < 30 and peer["residual_true"] <= 1e-11
    assert peer["seconds"] > 0 and peer["setup_seconds"] > 0 and peer["bytes_per_iteration"] is None


def test_json_is_consistent(poisson):
    report = measured(poisson, "--nodes", "9,6", "--format", "csr,half_cds", "--preconditioner", "none,jacobi")
    assert report["bench"] == "solve" and report["backend"] == "cpu" and report["copy_bytes_per_second"] > 0
    assert report["options"]["tolerance"] == 1e-12 and report["options"]["max_iterations"] == 10000
    for matrix, nodes in zip(report["matrices"], (9, 6), strict=True):
        assert matrix["n_rows"] == nodes**3 and matrix["symmetric"] and matrix["rhs"] == "ones"
        assert matrix["peers"] == [] and matrix["left_out"] == []
        assert [way(r) for r in matrix["results"]] == [
            (f, "cg", "double", p) for f in ("csr", "half_cds") for p in ("none", "jacobi")]
        for r in matrix["results"]:
            assert r["status"] == "converged" and r["reason"] == "" and r["same_bits"] and r["runs"] == 2
            assert 3 < r["iterations"] < 60 and r["residual_recursive"] <= 1e-12 and r["residual_true"] <= 1e-11
            assert 0 < r["seconds"] <= r["solve_seconds"] and r["conversion_seconds"] >= 0
            assert r["seconds_per_iteration"] == pytest.approx(r["seconds"] / r["iterations"])
            assert r["seconds_with_conversion"] == pytest.approx(r["conversion_seconds"] + r["solve_seconds"])
            assert r["bytes_per_second"] == pytest.approx(r["bytes_per_iteration"] / r["seconds_per_iteration"])
            assert r["share_of_copy_bandwidth"] == pytest.approx(r["bytes_per_second"] / report["copy_bytes_per_second"])
        csr, half = (r for r in matrix["results"] if r["preconditioner"] == "none")
        assert csr["bytes_per_iteration"] > half["bytes_per_iteration"] > 0


def test_all_of_a_kind_is_every_name_that_the_program_knows(poisson):
    report = measured(poisson, "--nodes", "6", "--format", "csr", "--method", "all", "--precision", "all", "--preconditioner", "all")
    known = {}
    for option, kind in (("--method", "method"), ("--precision", "precision"), ("--preconditioner", "preconditioner")):
        text = poisson("bench", "solve", option, "?", code=1).stderr
        known[kind] = set(text.split("there are ")[1].split(" (see")[0].split(", "))
    known["preconditioner"].remove("direct")  # of the host and one rank alone, so only by its name
    matrix = report["matrices"][0]
    rows = {way(r) for r in matrix["results"] + matrix["left_out"]}
    assert rows == {("csr", m, p, c) for m in known["method"] for p in known["precision"] for c in known["preconditioner"]}
    assert ("csr", "cg", "double", "jacobi") in {way(r) for r in matrix["results"] if r["status"] == "converged"}


def test_precisions_beyond_double_reach_further(poisson):
    results = measured(poisson, "--nodes", "8", "--format", "half_cds", "--method", "all", "--precision", "all",
                       "--tolerance", "1e-24")["matrices"][0]["results"]
    assert {r["precision"] for r in results} > {"double"}
    for r in results:
        if r["precision"] == "double":
            assert r["status"] == "stagnated" and r["residual_true"] > 1e-20
        else:
            assert r["status"] == "converged" and r["residual_true"] <= 2e-24, r


def test_values_in_double_double(poisson):
    results = measured(poisson, "--nodes", "6", "--format", "csr,half_cds", "--matrix-precision", "all")["matrices"][0]["results"]
    assert [(r["format"], r["matrix_precision"]) for r in results] == [
        (f, p) for p in ("double", "double_double") for f in ("csr", "half_cds")]
    assert all(r["status"] == "converged" for r in results)
    assert results[0]["bytes"] == 12 * 16**3 + 8 * 217 and results[2]["bytes"] == 20 * 16**3 + 8 * 217


def test_table(poisson):
    text = poisson("bench", "solve", "--nodes", "5", *HERE).stdout
    for word in ("measured on the CPU backend", "box, 5^3 nodes: 125 rows", "method", "precision", "preconditioner", "iterations",
                 "true residual", "ms an iteration", "% of copy", "convert ms", "converged", "half_cds"):
        assert word in text
    assert "cusparse" not in text


def test_auto_takes_one_format(poisson):
    report = measured(poisson, "--nodes", "8", "--format", "auto")
    assert len(report["matrices"][0]["results"]) == 1
    both = measured(poisson, "--nodes", "8", "--format", "csr,auto")["matrices"][0]["results"]
    assert len(both) == 2 and both[1]["format"] == "csr"


def test_ends_that_are_not_convergence(poisson):
    few = measured(poisson, "--nodes", "12", "--format", "csr", "--max-iterations", "5")["matrices"][0]["results"][0]
    assert few["status"] == "max_iterations" and few["iterations"] == 5 and few["reason"] and few["residual_true"] > 1e-12
    assert few["residual_true"] == pytest.approx(few["residual_recursive"], rel=1e-6)
    short = measured(poisson, "--nodes", "24", "--format", "csr", "--max-seconds", "1e-9")["matrices"][0]["results"][0]
    assert short["status"] == "out_of_time" and short["iterations"] > 0 and "stopped after" in short["reason"]


def test_files(poisson):
    poisson.write(SYMMETRIC, "s.mtx")
    poisson.write(UNSYMMETRIC, "u.mtx")
    report = measured(poisson, "--matrix", "s.mtx", "--matrix", "u.mtx", "--method", "cg", "--format", "csr")
    s, u = report["matrices"]
    assert s["symmetric"] and s["results"][0]["status"] == "converged" and s["results"][0]["residual_true"] < 1e-14
    assert not u["symmetric"] and u["results"] == [] and "symmetric" in u["left_out"][0]["reason"]


def test_a_configuration_brings_its_right_hand_side(cube):
    poisson, config = cube
    matrix = measured(poisson, config, "--format", "csr", "--set", "problem.source=1")["matrices"][0]
    assert matrix["rhs"] == "of the problem" and matrix["results"][0]["status"] == "converged"
    # An eigenvector of the matrix as right-hand side: one iteration or two, where all ones take many.
    matrix = measured(poisson, config, "--format", "csr")["matrices"][0]
    assert matrix["results"][0]["iterations"] <= 2


def test_pure_neumann(poisson):
    config = poisson.write("""
        problem:
          mesh: {generator: box, cells: [6, 6, 6]}
          source: "x - 0.5"
          boundary: [{ids: all, type: neumann, value: "0"}]
        """)
    for r in measured(poisson, config, "--format", "csr,half_cds")["matrices"][0]["results"]:
        assert r["status"] == "converged" and r["residual_true"] < 1e-11


def test_higher_order(poisson):
    matrix = measured(poisson, "--nodes", "9", "--order", "2", "--format", "csr")["matrices"][0]
    assert matrix["n_rows"] == 729 and "order 2" in matrix["name"] and matrix["results"][0]["status"] == "converged"


@pytest.mark.parametrize("words, parts", [
    (["--method", "cgg"], ["method 'cgg'", "did you mean 'cg'"]),
    (["--precision", "float"], ["precision 'float'", "double"]),
    (["--preconditioner", "jacobbi"], ["'jacobbi'", "did you mean 'jacobi'"]),
    (["--preconditioner", ""], ["preconditioner ''"]),
    (["--format", "csr,autos"], ["format 'autos'"]),
    (["--tolerance", "0"], ["--tolerance", "above 0", "'0'"]),
    (["--tolerance", "x"], ["--tolerance", "'x'"]),
    (["--max-iterations", "0"], ["--max-iterations", "'0'"]),
    (["--max-seconds", "-1"], ["--max-seconds", "'-1'"]),
    (["--band"], ["--band", "--nodes"]),
    (["--matrix", "wide.mtx", "--backend", "cpu"], ["wide.mtx", "2 rows and 3 columns"]),
])
def test_mistakes(poisson, words, parts):
    poisson.write("%%MatrixMarket matrix coordinate real general\n2 3 1\n1 1 1\n", "wide.mtx")
    done = poisson("bench", "solve", *words, code=1, timeout=30)
    for part in parts:
        assert part in done.stderr, done.stderr


def test_options_of_solve_are_of_solve(poisson):
    done = poisson("bench", "spmv", "--tolerance", "1e-3", code=1)
    assert "--tolerance" in done.stderr and "bench solve" in done.stderr


def test_the_record_takes_what_was_measured(cube):
    poisson, case = cube
    poisson.write(SYMMETRIC, "s.mtx")
    poisson("bench", "spmv", "--nodes", "6", *HERE, "--json", "spmv.json")
    poisson("bench", "convert", "--nodes", "6", *HERE, "--json", "convert.json")
    poisson("bench", "solve", "--nodes", "6", "--matrix", "s.mtx", "--format", "csr,half_cds", *HERE, "--json", "solve.json")
    poisson("bench", "svd", "--size", "20", "--backend", "cpu", "--json", "svd.json")
    poisson("run", case, "--backend", "cpu", "--output", "out")
    done = subprocess.run([sys.executable, ROOT / "tools/performance_tables", "--record", "record.csv", "--commit", "abcdef0", "--command",
                           "poisson", "--add", "spmv.json", "convert.json", "solve.json", "svd.json", "out/result.json"],
                          cwd=poisson.directory, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with open(poisson.directory / "record.csv", newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert all(float(line["value"]) > 0 and (line["copy"] or line["benchmark"] == "run") for line in lines)
    reports = {name: json.loads((poisson.directory / f"{name}.json").read_text()) for name in ("spmv", "convert", "solve", "svd")}
    solves = [line for line in lines if line["benchmark"] == "solve"]
    results = [r for matrix in reports["solve"]["matrices"] for r in matrix["results"]]
    assert [line["problem"] for line in solves] == ["box 6", "box 6", "s", "s"] and len(results) == 4
    for line, r in zip(solves, results):
        assert f"format={r['format']} " in line["setup"] and f"iterations={r['iterations']} " in line["details"]
        assert float(line["value"]) == pytest.approx(r["seconds"], rel=1e-4)
    for name, quantity in (("spmv", "product"), ("convert", "conversion"), ("svd", "svd"), ("run", "total")):
        found = [line for line in lines if (line["benchmark"], line["quantity"]) == (name, quantity)]
        assert found, name
        if name in ("spmv", "svd"):
            matrix = reports[name]["matrices"][0]
            assert len(found) == len(matrix["results"]) + len(matrix["peers"])


def test_cupy_script_solves_or_says_why_not(poisson):
    poisson.write(SYMMETRIC, "s.mtx")
    for words, most in ((["--nodes", "6"], 30), (["--matrix", "s.mtx"], 4)):
        done = subprocess.run([sys.executable, ROOT / "tests/bench/cupy_cg.py", *words], cwd=poisson.directory, capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr
        told = json.loads(done.stdout)
        if "error" in told:
            assert "CuPy cannot be used here" in told["error"]
        else:
            assert told["status"] == "converged" and 0 < told["iterations"] <= most and told["residual_true"] < 1e-11


def test_interrupt_keeps_what_was_measured(poisson):
    words = poisson.command("bench", "solve", "--nodes", "8,96", "--backend", "cpu", "--format", "csr", "--json", "bench.json")
    process = subprocess.Popen(words, cwd=poisson.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = ""
    while not line.startswith("box, 96"):
        line = process.stdout.readline()
        assert line != "", process.stderr.read()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "interrupted" in errors, errors
    report = json.loads((poisson.directory / "bench.json").read_text())
    assert report["interrupted"] and [len(m["results"]) for m in report["matrices"]] == [1, 0]


def test_real_files(poisson):
    folder = os.environ.get("POISSON_REAL_DATA")
    if not folder:
        pytest.skip("POISSON_REAL_DATA is not set")
    folder = pathlib.Path(folder) / "matrices"
    matrix = measured(poisson, "--matrix", folder / "nos4.mtx.gz", "--format", "all")["matrices"][0]
    assert all(r["status"] == "converged" and r["residual_true"] < 1e-11 for r in matrix["results"])
