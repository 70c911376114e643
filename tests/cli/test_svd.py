"""poisson svd: dense matrices from files and random ones, against numpy."""

import csv
import gzip
import json
import os

import numpy as np
import pytest


def array_text(matrix):
    """A dense numpy matrix as a Matrix Market array."""
    rows, columns = matrix.shape
    return f"%%MatrixMarket matrix array real general\n{rows} {columns}\n" + "".join(f"{float(x)!r}\n" for x in matrix.T.flat)


def read_array(path):
    lines = path.read_text().splitlines()
    assert lines[0] == "%%MatrixMarket matrix array real general"
    rows, columns = map(int, lines[1].split())
    return np.array([float(x) for x in lines[2:]]).reshape(columns, rows).T


def values(poisson, directory="out"):
    rows = list(csv.DictReader(open(poisson.directory / directory / "singular_values.csv")))
    assert [int(row["i"]) for row in rows] == list(range(1, len(rows) + 1))
    return np.array([float(row["singular_value"]) for row in rows])


@pytest.mark.parametrize("shape", [(1, 1), (12, 12), (9, 4), (4, 9)])
def test_array_against_numpy(poisson, shape):
    a = np.random.default_rng(1).standard_normal(shape)
    poisson.write(array_text(a), "a.mtx")
    done = poisson("svd", "--matrix", "a.mtx", "--vectors", "--output", "out")
    s = np.linalg.svd(a, compute_uv=False)
    assert np.allclose(values(poisson), s, rtol=0, atol=1e-14 * s[0] * max(shape))
    u, v = (read_array(poisson.directory / "out" / name) for name in ("u.mtx", "v.mtx"))
    k = min(shape)
    assert u.shape == (shape[0], k) and v.shape == (shape[1], k)
    assert np.abs(u.T @ u - np.eye(k)).max() < 1e-13 and np.abs(v.T @ v - np.eye(k)).max() < 1e-13
    assert np.abs(u * values(poisson) @ v.T - a).max() < 1e-13 * s[0]
    record = poisson.record()
    assert record["rank"] == k and abs(record["condition"] - s[0] / s[-1]) < 1e-10 * record["condition"]
    assert record["matrix"] == {"name": "a.mtx", "n_rows": shape[0], "n_columns": shape[1]}
    assert max(record["orthogonality_u"], record["orthogonality_v"], record["residual"]) < 1e-13
    assert set(record["seconds"]) == {"reduce", "chase", "bidiagonal", "back", "total"}
    assert set(record["files"]) == {"singular_values.csv", "spectrum.png", "u.mtx", "v.mtx", "result.json"}
    for word in ("values", "rank", "condition", "seconds", "accuracy"):
        assert word in done.stdout


def test_coordinate_and_symmetric_and_compressed(poisson):
    poisson.write(gzip.compress(b"%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 1\n1 1 1\n3 1 5\n2 2 -7\n"), "a.mtx.gz")
    poisson("svd", "--matrix", "a.mtx.gz", "--output", "out")
    expected = np.linalg.svd(np.array([[2, 0, 5], [0, -7, 0], [5, 0, 0]]), compute_uv=False)
    assert np.allclose(values(poisson), expected, rtol=1e-14)
    poisson.write("%%MatrixMarket matrix array integer symmetric\n2 2\n1\n2\n3\n", "b.mtx")
    poisson("svd", "--matrix", "b.mtx", "--output", "b")
    assert np.allclose(values(poisson, "b"), np.linalg.svd(np.array([[1, 2], [2, 3]]), compute_uv=False), rtol=1e-14)


def test_random_is_the_same_again(poisson):
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        poisson("svd", "--random", 30, "--seed", seed, "--output", name, "--quiet")
    assert (values(poisson, "a") == values(poisson, "b")).all() and (values(poisson, "a") != values(poisson, "c")).any()
    # the squares of entries uniform in [-1/2, 1/2] are 1/12 on average
    assert abs((values(poisson, "a") ** 2).sum() / 900 - 1 / 12) < 0.01


def test_without_output_nothing_is_written(poisson):
    done = poisson("svd", "--random", 20)
    assert "condition" in done.stdout and not list(poisson.directory.iterdir())


def test_rank(poisson):
    a = np.outer(np.arange(1.0, 8), np.arange(2.0, 9)) + np.outer(np.ones(7), np.arange(7) ** 2.0)
    poisson.write(array_text(a), "a.mtx")
    poisson("svd", "--matrix", "a.mtx", "--output", "a")
    record = poisson.record("a")
    s = np.linalg.svd(a, compute_uv=False)
    assert record["rank"] == 2 and s[2] < record["rank_threshold"] < record["smallest"]
    assert abs(record["smallest"] - s[1]) < 1e-13 * s[0] and values(poisson, "a")[-1] < record["rank_threshold"]
    assert abs(record["condition"] - s[0] / s[1]) < 1e-10 * record["condition"]
    poisson.write(array_text(np.zeros((3, 2))), "zero.mtx")
    done = poisson("svd", "--matrix", "zero.mtx", "--vectors", "--output", "zero")
    assert poisson.record("zero")["rank"] == 0 and poisson.record("zero")["condition"] is None
    assert "0 of 2" in done.stdout


def test_an_earlier_result_is_kept(poisson):
    poisson("svd", "--random", 5, "--vectors", "--output", "out")
    assert "--overwrite" in poisson("svd", "--random", 6, "--output", "out", code=1).stderr
    poisson("svd", "--random", 6, "--output", "out", "--overwrite", "--set", "output.picture=false")
    assert sorted(p.name for p in (poisson.directory / "out").iterdir()) == ["result.json", "singular_values.csv"]


BAD_FILES = [
    ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\nnan\n", ["a.mtx:6:", "row 2, column 2", "'nan'"]),
    ("%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\ninf\n", ["a.mtx:5:", "row 2, column 2", "'inf'"]),
    ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n", ["announces 4 entries and has 3"]),
    ("%%MatrixMarket matrix array real general\n2 2\n1\n2\n3\n4\n5\n", ["announces 4 entries and has more"]),
    ("%%MatrixMarket matrix array real general\n100000 100000\n1\n", ["cannot hold"]),
    ("%%MatrixMarket matrix coordinate real general\n1 1 2\n1 1 1e308\n1 1 1e308\n", ["row 1, column 1", "too large"]),
    ("1 2\n3 4\n", ["no Matrix Market file"]),
]


@pytest.mark.parametrize("text, words", BAD_FILES)
def test_bad_files(poisson, text, words):
    poisson.write(text, "a.mtx")
    error = poisson("svd", "--matrix", "a.mtx", "--output", "out", code=1).stderr
    for word in words:
        assert word in error
    assert not (poisson.directory / "out").exists()


@pytest.mark.parametrize("words, expected", [
    ([], "a matrix is needed"),
    (["--random", 5, "--matrix", "a.mtx"], "exclude each other"),
    (["--random", 0], "--random must be an integer from 1"),
    (["--random", 5, "--band-width", 0], "--band-width must be an integer from 1"),
    (["--random", 5, "--threads", 0], "--threads must be an integer from 1"),
    (["--random", 5, "--backend", "gpu"], "unknown backend 'gpu'"),
    (["--random", 5, "--set", "solver.tolerance=1e-3"], "--set takes backend, output.directory and output.picture"),
    (["--matrix", "a.mtx", "--seed", 3], "--seed belongs to --random"),
    (["--matrix", "missing.mtx"], "there is no such file"),
    (["--random", 5, "--vector"], "unrecognised option"),
])
def test_usage(poisson, words, expected):
    assert expected in poisson("svd", *words, code=1).stderr


def test_too_large_for_the_memory(poisson):
    """A few bytes of text must not make a huge matrix."""
    poisson.write("%%MatrixMarket matrix coordinate real general\n900000 900000 1\n1 1 1\n", "a.mtx")
    assert "of memory" in poisson("svd", "--matrix", "a.mtx", code=3).stderr


# --- bench svd


def bench(poisson, *words, code=0):
    poisson("bench", "svd", *words, "--json", "out.json", code=code)
    return json.loads((poisson.directory / "out.json").read_text())


def test_bench(poisson):
    report = bench(poisson, "--size", "40,65", "--band-width", "4,8", "--backend", "cpu")
    assert [m["n_rows"] for m in report["matrices"]] == [40, 65]
    for matrix in report["matrices"]:
        assert [(r["band_width"], r["vectors"]) for r in matrix["results"]] == [(4, True), (8, True), (4, False), (8, False)]
        assert [(p["peer"], p["vectors"]) for p in matrix["peers"]] == [("lapack gesdd", True), ("lapack gesdd", False)]
        for row in matrix["results"]:
            assert set(row["seconds"]) == {"reduce", "chase", "bidiagonal", "back", "total"} and row["values_error"] < 1e-13
            if row["vectors"]:
                assert max(row["orthogonality_u"], row["orthogonality_v"], row["residual"]) < 1e-12
        assert matrix["peers"][0]["seconds"] > 0 and matrix["peers"][0]["residual"] < 1e-12
    rule = report["rule"]
    a, b = rule["gemm1_flops_per_second"], rule["gemm3_flops_per_second"]
    assert abs(rule["threshold_flops_per_second"] - a * b / (3 * a + b)) < 1e-9 * a
    assert rule["two_stages"] == (rule["gemv_flops_per_second"] < rule["threshold_flops_per_second"])


def test_bench_table_and_choices(poisson):
    done = poisson("bench", "svd", "--size", "30", "--values", "--symmetric", "--peer", "gesdd,syevd", "--backend", "cpu")
    assert "lapack gesdd" in done.stdout and "two stages, L = " in done.stdout and "symmetric" in done.stdout
    assert "syevd is left out" in done.stdout
    report = bench(poisson, "--size", "30", "--vectors", "--peer", "none", "--backend", "cpu")
    assert not report["matrices"][0]["peers"] and all(r["vectors"] for r in report["matrices"][0]["results"])


@pytest.mark.parametrize("words, expected", [
    (["--size", "0"], "--size must be integers from 1"),
    (["--size", "40,x"], "--size must be integers"),
    (["--peer", "gesv"], "did you mean 'gesvd'?"),
    (["--peer", "syevd"], "add --symmetric"),
    (["--band-width", "0"], "--band-width must be integers from 1"),
    (["--repeat", "0"], "--repeat must be an integer from 1"),
    (["--json", ""], "--json must name a file"),
    (["case.yaml"], "too many positional"),
])
def test_bench_usage(poisson, words, expected):
    assert expected in poisson("bench", "svd", *words, code=1).stderr


def test_bench_too_large_for_the_memory(poisson):
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 1e11:
        pytest.skip("this machine holds the largest matrix and its vectors")
    done = poisson("bench", "svd", "--size", "5,46340", "--backend", "cpu", "--json", "out.json", code=3)
    assert "of memory" in done.stderr
    report = json.loads((poisson.directory / "out.json").read_text())  # what was measured before
    assert len(report["matrices"]) == 1 and report["matrices"][0]["results"]
