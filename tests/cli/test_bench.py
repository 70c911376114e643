"""poisson bench: tables, JSON and errors. The measurements are not judged here, only that they are reported consistently."""

import gzip
import json
import os
import pathlib
import signal
import subprocess

import pytest

HERE = ("--backend", "cpu", "--repeat", "2")
ANY = {"csr", "crs_t", "sell_c_sigma"}  # formats that hold every matrix


def measured(poisson, *words, code=0):
    poisson("bench", *words, *HERE, "--json", "bench.json", code=code)
    return json.loads((poisson.directory / "bench.json").read_text())


def all_formats(poisson):
    line = next(line for line in poisson("info").stdout.splitlines() if line.split()[:1] == ["formats"])
    return set(line.split(None, 1)[1].replace(",", " ").split()) - {"matrix_free"}  # which no benchmark of matrices has


SMALL = """%%MatrixMarket matrix coordinate real symmetric
% four unknowns
4 4 7
1 1 2
2 1 -1
2 2 2
3 2 -1
3 3 2
4 3 -1
4 4 2
"""


def test_spmv_json_is_consistent(poisson):
    report = measured(poisson, "spmv", "--nodes", "9,5", "--band", "--random", "--rows", "300")
    assert report["backend"] == "cpu" and report["bench"] == "spmv" and not report["interrupted"]
    assert report["read_bytes_per_second"] > 0 and report["copy_bytes_per_second"] > 0 and report["threads"] >= 1
    names = all_formats(poisson)
    assert [m["kind"] for m in report["matrices"]] == ["box", "box", "band", "random"]
    assert [m["n_rows"] for m in report["matrices"]] == [729, 125, 300, 300]
    band = sum(min(i + 15, 299) - max(i - 16, 0) + 1 for i in range(300))
    assert [m["nnz"] for m in report["matrices"]] == [25**3, 13**3, band, 300 * 32]
    for matrix in report["matrices"]:
        assert matrix["csr_bytes"] == 12 * matrix["nnz"] + 8 * (matrix["n_rows"] + 1)
        results, left_out = matrix["results"], matrix["left_out"]
        assert {r["format"] for r in results} | {r["format"] for r in left_out} == names
        assert ANY <= {r["format"] for r in results}
        assert all(r["reason"] for r in left_out) and matrix["peers"] == []
        for r in results:
            assert r["correct"] and 0 <= r["error"] < 1e-12 and r["samples"] == 2
            assert 0 < r["seconds_min"] <= r["seconds"] and r["conversion_seconds"] >= 0
            assert r["share_of_csr"] == pytest.approx(r["bytes"] / matrix["csr_bytes"])
            assert r["bytes_per_product"] == r["bytes"] + 16 * matrix["n_rows"]
            assert r["flops_per_second"] == pytest.approx(2 * matrix["nnz"] / r["seconds"])
            assert r["bytes_per_second"] == pytest.approx(r["bytes_per_product"] / r["seconds"])
            assert r["share_of_read_bandwidth"] == pytest.approx(r["bytes_per_second"] / report["read_bytes_per_second"])
            pays = r["products_to_pay_back"]
            if r["format"] not in ("csr", "crs_t"):
                faster = r["seconds"] < matrix["csr_seconds"]
                assert (pays is None) != faster
                assert not faster or pays == pytest.approx(r["conversion_seconds"] / (matrix["csr_seconds"] - r["seconds"]), abs=1)
    assert "half_cds" in {r["format"] for r in report["matrices"][0]["results"]}
    assert {"half_cds", "cds"} <= {r["format"] for r in report["matrices"][3]["left_out"]}


def test_auto_is_compared_with_the_fastest(poisson):
    poisson.write(SMALL, "small.mtx")
    text = poisson("bench", "spmv", "--nodes", "12,9", "--matrix", "small.mtx", "--products", "50", *HERE, "--json", "b.json").stdout
    report = json.loads((poisson.directory / "b.json").read_text())
    assert report["options"]["products"] == 50
    excesses = []
    for matrix in report["matrices"]:
        total = {r["format"]: r["conversion_seconds"] + 50 * r["seconds"] for r in matrix["results"]}
        auto = matrix["auto"]
        assert auto["seconds"] == pytest.approx(total[auto["format"]])
        assert auto["fastest_seconds"] == pytest.approx(min(total.values())) and total[auto["fastest"]] == min(total.values())
        assert auto["excess"] == pytest.approx(auto["seconds"] / auto["fastest_seconds"] - 1)
        assert {p["format"] for p in auto["predicted"]} == set(total)
        predicted = {p["format"]: p["conversion_seconds"] + 50 * p["product_seconds"] for p in auto["predicted"]}
        assert predicted[auto["format"]] == pytest.approx(min(predicted.values()))
        excesses.append(auto["excess"])
    summary = report["auto"]
    assert summary["matrices"] == 3 and summary["fastest"] == sum(e == 0 for e in excesses)
    assert summary["within_5_percent"] == sum(e <= 0.05 for e in excesses)
    assert summary["worst_excess"] == pytest.approx(max(excesses))
    assert summary["mean_excess"] == pytest.approx(sum(excesses) / 3)
    assert text.count("  auto, 50 products: ") == 3 and "auto took the fastest format for" in text and "of 3 matrices" in text
    # Only some formats say nothing of auto's choice among all.
    assert "auto" not in measured(poisson, "spmv", "--nodes", "5", "--format", "csr,cds")
    assert "--products must be an integer" in poisson("bench", "spmv", "--products", "0", *HERE, code=1).stderr


def test_spmv_table(poisson):
    text = poisson("bench", "spmv", "--nodes", "6", *HERE).stdout
    for word in ("box, 6^3 nodes: 216 rows, 4 096 non-zeros", "measured on the CPU backend", "bandwidth", "copy", "read",
                 "convert ms", "product ms", "GFLOP/s", "% of read", "pays after", "half_cds"):
        assert word in text
    assert "cusparse" not in text
    rows = {line.split()[0]: line for line in text.splitlines() if line.startswith("  ") and line.split()}
    assert ANY <= rows.keys() and "100.0" in rows["csr"]
    assert poisson("bench", "spmv", "--nodes", "3", *HERE, "--quiet").stdout == ""


def test_json_alone_on_standard_output(poisson):
    done = poisson("bench", "spmv", "--nodes", "4", "--format", "csr,half_cds", *HERE, "--json", "-")
    assert [r["format"] for r in json.loads(done.stdout)["matrices"][0]["results"]] == ["csr", "half_cds"]


def test_without_a_device_it_says_where_it_measured(poisson):
    if "none:" not in poisson("info").stdout:
        pytest.skip("there is a device")
    text = poisson("bench", "spmv", "--nodes", "3", "--repeat", "1").stdout
    assert "no CUDA device here (" in text and "measured on the CPU backend" in text
    done = poisson("bench", "spmv", "--nodes", "3", "--backend", "cuda", code=3)
    assert "backend cuda" in done.stderr


def test_higher_order_names_the_real_nodes(poisson):
    report = measured(poisson, "spmv", "--nodes", "8", "--order", "2", "--format", "sell_c_sigma")
    matrix = report["matrices"][0]
    assert matrix["n_rows"] == 343 and "7^3 nodes of order 2" in matrix["name"]
    assert matrix["nnz"] == (2 * 3 + 2 * 5 + 3 * 3) ** 3  # on a line: two ends, two nodes between cells, three inside


def test_slice_sizes_make_rows_of_their_own(poisson):
    report = measured(poisson, "spmv", "--random", "--rows", "100", "--slice-size", "4,32", "--format", "csr,sell_c_sigma")
    results = report["matrices"][0]["results"]
    assert [(r["format"], r.get("slice_size")) for r in results] == [("csr", None), ("sell_c_sigma", 4), ("sell_c_sigma", 32)]
    assert results[1]["bytes"] == 100 * 32 * 12 + 8 * 26 and results[2]["bytes"] == 128 * 32 * 12 + 8 * 5


def test_files(poisson):
    poisson.write(SMALL, "small.mtx")
    (poisson.directory / "small.mtx.gz").write_bytes(gzip.compress(SMALL.encode()))
    report = measured(poisson, "spmv", "--matrix", "small.mtx", "--matrix", "small.mtx.gz")
    assert [(m["name"], m["kind"], m["n_rows"], m["nnz"]) for m in report["matrices"]] == [
        ("small.mtx", "file", 4, 10), ("small.mtx.gz", "file", 4, 10)]


def test_a_configuration(cube):
    poisson, config = cube
    report = measured(poisson, "spmv", config, "--set", "problem.mesh.cells=[5, 5, 5]", "--format", "csr")
    matrix = report["matrices"][0]
    assert len(report["matrices"]) == 1 and matrix["kind"] == "problem" and matrix["n_rows"] == 216
    done = poisson("bench", "spmv", config, "--set", "problem.source=sin(", *HERE, code=1)
    assert "problem.source" in done.stderr


def test_real_files(poisson):
    folder = os.environ.get("POISSON_REAL_DATA")
    if not folder:
        pytest.skip("POISSON_REAL_DATA is not set")
    report = measured(poisson, "spmv", "--matrix", pathlib.Path(folder) / "matrices/memplus.mtx.gz")
    assert report["matrices"][0]["nnz"] == 126150
    assert all(r["correct"] for r in report["matrices"][0]["results"])


def test_convert(poisson):
    poisson.write(SMALL, "small.mtx")
    report = measured(poisson, "convert", "--nodes", "7", "--band", "--rows", "200", "--matrix", "small.mtx")
    assert report["bench"] == "convert"
    for matrix in report["matrices"]:
        assert matrix["coo_to_csr"]["host"]["correct"] and matrix["coo_to_csr"]["host"]["seconds"] > 0
        assert ANY <= {r["format"] for r in matrix["results"]}
        for r in matrix["results"]:
            assert "device" not in r
            for where in ("sequential", "host"):
                assert r[where]["back_to_csr"] == "exact"
                assert r[where]["share_of_csr"] == pytest.approx(r[where]["bytes"] / matrix["csr_bytes"])
    text = poisson("bench", "convert", "--nodes", "5", *HERE).stdout
    for word in ("from coo to csr", "back to csr", "exact", "half_cds"):
        assert word in text


def test_convert_of_a_matrix_that_is_symmetric_to_rounding(poisson):
    config = poisson.write("""
        problem:
          mesh: {generator: hyper_ball, refinements: 1}
          element: {order: 2}
          coefficient: "1 + 0.3*x"
          boundary: [{ids: all, type: neumann, value: "0"}]
        """)
    for r in measured(poisson, "convert", config)["matrices"][0]["results"]:
        assert r["host"]["back_to_csr"] == "exact" or (r["format"] == "half_cds" and r["host"]["back_to_csr"] == "lower triangle")


@pytest.mark.parametrize("words, code, parts", [
    ([], 1, ["spmv", "convert"]),
    (["spvm"], 1, ["'spvm'", "did you mean 'spmv'"]),
    (["sovle"], 1, ["'sovle'", "did you mean 'solve'", "spmv, convert, solve"]),
    (["spmv", "--format", "half_cdss"], 1, ["'half_cdss'", "did you mean 'half_cds'", "sell_c_sigma"]),
    (["spmv", "--format", ""], 1, ["unknown format ''"]),
    (["spmv", "--nodes", "0"], 1, ["--nodes", "from 1 to", "'0'"]),
    (["spmv", "--nodes", "8,x"], 1, ["--nodes", "'x'"]),
    (["spmv", "--nodes", "8,"], 1, ["--nodes", "''"]),
    (["spmv", "--nodes", "2000"], 1, ["--nodes", "1290", "'2000'"]),
    (["spmv", "--nodes", "99999999999999999999"], 1, ["--nodes"]),
    (["spmv", "--nodes", "4", "--order", "9"], 1, ["--order", "from 1 to 8", "'9'"]),
    (["spmv", "--order", "2"], 1, ["--order", "--nodes"]),
    (["spmv", "--slice-size", "24"], 1, ["--slice-size", "powers of two", "'24'"]),
    (["spmv", "--sigma", "-1"], 1, ["--sigma", "'-1'"]),
    (["spmv", "--threads-per-row", "3"], 1, ["--threads-per-row", "'3'"]),
    (["spmv", "--rows", "10"], 1, ["--rows", "--band"]),
    (["spmv", "--band", "--rows", "0"], 1, ["--rows", "'0'"]),
    (["spmv", "--repeat", "0"], 1, ["--repeat", "'0'"]),
    (["spmv", "--threads", "0"], 1, ["--threads", "'0'"]),
    (["spmv", "--backend", "gpu"], 1, ["'gpu'", "cpu, cuda"]),
    (["spmv", "--bandd"], 1, ["bandd"]),
    (["spmv", "--set", "problem.source=1"], 1, ["--set", "CONFIG"]),
    (["spmv", "missing.yaml"], 1, ["missing.yaml"]),
    (["spmv", "a.yaml", "b.yaml"], 1, ["'b.yaml'"]),
    (["spmv", "--matrix", "missing.mtx"], 1, ["missing.mtx", "no such file"]),
    (["spmv", "--matrix", "."], 1, ["directory"]),
    (["spmv", "--matrix", "broken.mtx"], 1, ["broken.mtx:3: ", "row", "'9'"]),
    (["spmv", "--nodes", "3", "--json", "nowhere/bench.json"], 3, ["nowhere/bench.json"]),
    (["spmv", "--nodes", "3", "--json", ""], 1, ["--json"]),
    (["--quiet", "svd"], 1, ["poisson bench svd ..."]),
    ([], 1, ["poisson bench spmv", "poisson bench svd"]),
])
def test_mistakes(poisson, words, code, parts):
    poisson.write("%%MatrixMarket matrix coordinate real general\n2 2 1\n9 1 1\n", "broken.mtx")
    done = poisson("bench", *words, code=code, timeout=30)
    for part in parts:
        assert part in done.stderr, done.stderr


def test_a_matrix_that_is_too_large_is_refused_before_it_is_made(poisson):
    if os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") > 6e11:
        pytest.skip("this machine holds the largest box")
    done = poisson("bench", "spmv", "--nodes", "4,1290", *HERE, "--json", "bench.json", code=3, timeout=60)
    assert "1290^3" in done.stderr and "smaller" in done.stderr
    report = json.loads((poisson.directory / "bench.json").read_text())  # what was measured before
    assert len(report["matrices"]) == 1 and report["matrices"][0]["results"]


def test_help(poisson):
    assert "bench spmv" in poisson("--help").stdout and "bench convert" in poisson("--help").stdout
    text = poisson("bench", "--help").stdout
    for option in ("--nodes", "--order", "--band", "--random", "--rows", "--matrix", "--set", "--format", "--slice-size", "--sigma",
                   "--threads-per-row", "--backend", "--threads", "--json", "--repeat"):
        assert option in text
    assert poisson("bench", "spmv", "--help").stdout == text


def test_interrupt_keeps_what_was_measured(poisson):
    words = poisson.command("bench", "spmv", "--nodes", "8", "--band", "--random", "--backend", "cpu", "--repeat", "10000",
                            "--format", "csr", "--json", "bench.json")
    process = subprocess.Popen(words, cwd=poisson.directory, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = ""
    while not line.startswith("band"):  # the second of them: the first is measured
        line = process.stdout.readline()
        assert line != "", process.stderr.read()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted" in errors
    report = json.loads((poisson.directory / "bench.json").read_text())
    assert report["interrupted"] and report["matrices"][0]["n_rows"] == 512
    assert not list(poisson.directory.glob(".*bench*")) and not list(poisson.directory.glob("bench.json?*"))
