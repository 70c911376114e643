"""poisson bench solve and spmv on several ranks: the systems and iterations of one, measured and told once."""

import json

import pytest
from ranks import errors_told, on_ranks, pytestmark, write_chain  # noqa: F401

HERE = ("--backend", "cpu", "--repeat", "2", "--threads", "1")


def both(poisson, n, *words):
    poisson("bench", "solve", *words, *HERE, "--json", "one.json")
    done = on_ranks(poisson, n, "bench", "solve", *words, *HERE, "--json", "ranks.json")
    one, other = (json.loads((poisson.directory / name).read_text()) for name in ("one.json", "ranks.json"))
    assert one["ranks"] == 1 and other["ranks"] == n
    return one["matrices"], other["matrices"], done


def way(r):
    return r["format"], r["matrix_precision"], r["method"], r["precision"], r["preconditioner"], r.get("ordering")


def compare(one, other, allowed=1):
    for key in ("name", "kind", "n_rows", "n_columns", "nnz", "symmetric", "rhs"):
        assert other[key] == one[key], key
    expected = {way(r): r for r in one["results"]}
    assert {way(r) for r in other["results"]} == set(expected)
    for r in other["results"]:
        same = expected[way(r)]
        assert r["status"] == same["status"] == "converged" and r["same_bits"], r
        assert r["residual_true"] <= 3e-12 and abs(r["iterations"] - same["iterations"]) <= allowed, (r, same)
        assert 0 < r["seconds"] <= r["solve_seconds"] and r["bytes"] > 0 and r["bytes_per_iteration"] > 0


@pytest.mark.parametrize("n", [2, 3, 5])
def test_boxes(poisson, n):
    one, other, done = both(poisson, n, "--nodes", "9,7", "--format", "csr,half_cds,cod_sell", "--preconditioner", "none,multigrid")
    for a, b in zip(one, other, strict=True):
        compare(a, b)
    assert done.stdout.count("box, 9^3 nodes:") == 1 and f"on {n} ranks" in done.stdout
    assert done.stdout.count("other libraries are measured on one rank only") == 1
    assert all(matrix["peers"] == [] and matrix["left_out"] == [] for matrix in other)


def test_formats_methods_and_precisions(poisson):
    one, other, _ = both(poisson, 3, "--nodes", "6", "--format", "csr,crs_t,sell_c_sigma,cod_sell,half_cds", "--preconditioner", "jacobi")
    compare(one[0], other[0])
    one, other, _ = both(poisson, 3, "--nodes", "6", "--format", "csr", "--method", "all", "--matrix-precision", "all",
                         "--precision", "double,refined,double_double")
    compare(one[0], other[0], allowed=3)


def test_auto_is_the_choice_of_the_first_rank(poisson):
    on_ranks(poisson, 3, "bench", "solve", "--nodes", "9", "--format", "auto", *HERE, "--json", "auto.json")
    (matrix,) = json.loads((poisson.directory / "auto.json").read_text())["matrices"]
    assert [r["status"] for r in matrix["results"]] == ["converged"] and matrix["left_out"] == []


@pytest.mark.parametrize("n", [2, 5])
def test_files_and_problems(cube, n):
    poisson, config = cube
    matrix = write_chain(poisson, 301)
    one, other, _ = both(poisson, n, config, "--set", "problem.source=1 + x", "--matrix", matrix, "--nodes", "5", "--order", "2",
                         "--format", "csr,sell_c_sigma", "--preconditioner", "jacobi")
    assert [m["kind"] for m in other] == ["box", "file", "problem"]
    for a, b in zip(one, other, strict=True):
        compare(a, b)


def test_singular_problems(poisson):
    config = poisson.write("""
        problem:
          mesh: {generator: box, cells: [6, 6, 6]}
          source: "x - 0.5"
          boundary: [{ids: all, type: neumann, value: "0"}]
        """)
    one, other, _ = both(poisson, 3, config, "--format", "csr,half_cds")
    compare(one[0], other[0])


def test_more_ranks_than_rows(poisson):
    one, other, _ = both(poisson, 5, "--nodes", "1,2", "--format", "csr,half_cds")
    for a, b in zip(one, other, strict=True):
        assert b["n_rows"] == a["n_rows"] and b["nnz"] == a["nnz"]
        assert [r["status"] for r in b["results"] if r["format"] == "csr"] == ["converged"]


def test_every_preconditioner(poisson):
    """Factors are those of one rank, of a box by its nodes and of a problem by its unknowns, not by the ranks that have them."""
    one, other, done = both(poisson, 3, "--nodes", "8", "--format", "csr,half_cds", "--preconditioner", "all", "--ordering", "all")
    compare(one[0], other[0])
    assert "is left out" not in done.stdout
    found = [[(*way(r), r.get("levels")) for r in m[0]["results"]] for m in (one, other)]
    assert found[0] == found[1] and {"ic0", "ilu0"} < {kind for *_, kind, _, _ in found[1]}


def test_an_unsymmetric_matrix(poisson):
    entries = [(i, i, 4 + i % 3) for i in range(1, 61)] + [(i, i + 1, 1) for i in range(1, 60)] + [(i + 9, i, -1.5) for i in range(1, 52)]
    poisson.write("%%MatrixMarket matrix coordinate real general\n60 60 " + f"{len(entries)}\n" +
                  "".join(f"{i} {j} {v}\n" for i, j, v in entries), "u.mtx")
    one, other, _ = both(poisson, 3, "--matrix", "u.mtx", "--format", "csr,half_cds", "--method", "all")
    assert not other[0]["symmetric"]
    compare(one[0], other[0], allowed=3)
    assert {r["method"] for r in other[0]["results"]} == {"bicgstab", "gmres"}
    refused = {row["method"] for row in other[0]["left_out"] if "method" in row and "symmetric" in row["reason"]}
    assert refused == {"cg", "minres"}


def test_ends_that_are_not_convergence(poisson):
    on_ranks(poisson, 2, "bench", "solve", "--nodes", "24", "--format", "csr", "--max-seconds", "1e-9", *HERE, "--json", "short.json")
    on_ranks(poisson, 2, "bench", "solve", "--nodes", "12", "--format", "csr", "--max-iterations", "5", *HERE, "--json", "few.json")
    short, few = (json.loads((poisson.directory / name).read_text())["matrices"][0]["results"][0] for name in ("short.json", "few.json"))
    assert short["status"] == "out_of_time" and "stopped after" in short["reason"]
    assert few["status"] == "max_iterations" and few["residual_true"] == pytest.approx(few["residual_recursive"], rel=1e-6)


@pytest.mark.parametrize("n", [2, 5])
def test_products(cube, n):
    poisson, config = cube
    words = ("bench", "spmv", config, "--nodes", "9,1", "--order", "1", "--band", "--random", "--rows", "700", "--matrix",
             write_chain(poisson, 301), *HERE)
    poisson(*words, "--json", "one.json")
    done = on_ranks(poisson, n, *words, "--json", "ranks.json")
    one, other = (json.loads((poisson.directory / name).read_text())["matrices"] for name in ("one.json", "ranks.json"))
    for a, b in zip(one, other, strict=True):
        for key in ("name", "kind", "n_rows", "n_columns", "nnz"):
            assert b[key] == a[key], key
        assert b["auto"]["format"] in {r["format"] for r in b["results"]} and b["peers"] == [] and b["csr_seconds"] > 0
        assert {r["format"] for r in b["results"]} <= {r["format"] for r in a["results"]}
        for r in b["results"]:
            assert r["correct"] and r["error"] < 1e-14 and r["seconds"] > 0 and r["bytes_per_product"] > 0 and r["padding_ratio"] >= 0.4
    assert {"csr", "crs_t", "sell_c_sigma", "cod_sell", "half_cds"} <= {r["format"] for r in other[0]["results"]}
    assert done.stdout.count("box, 9^3 nodes:") == 1


def test_products_of_elements_of_higher_order(poisson):
    on_ranks(poisson, 3, "bench", "spmv", "--nodes", "7", "--order", "2", "--format", "csr,sell_c_sigma", *HERE, "--json", "ranks.json")
    (matrix,) = json.loads((poisson.directory / "ranks.json").read_text())["matrices"]
    assert [r["correct"] for r in matrix["results"]] == [True, True]


@pytest.mark.parametrize("words, told", [
    (["convert"], "bench solve"),
    (["svd"], "bench solve"),
    (["solve", "--method", "cgg"], "did you mean 'cg'"),
    (["solve", "--matrix", "none.mtx"], "none.mtx: there is no such file"),
    (["solve", "--nodes", "6", "--json", "no/such/folder.json"], "no/such"),
])
def test_mistakes_are_told_once(poisson, words, told):
    for n in (1, 2):
        if n == 1 and words[0] != "solve":
            continue
        done = on_ranks(poisson, n, "bench", *words, "--backend", "cpu", code=3 if "--json" in words else 1)
        assert len(errors_told(done)) == 1 and told in done.stderr, done.stderr
