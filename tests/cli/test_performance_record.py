"""docs/performance/record.csv, and the tables and figures that README.md and docs/performance.md show from it."""

import csv
import datetime
import importlib.machinery
import importlib.util
import json
import re
import subprocess
import sys

import pytest

from conftest import ROOT

TOOL = ROOT / "tools/performance_tables"
DOCUMENTS = ("README.md", "docs/performance.md")


def tool_as_module():
    loader = importlib.machinery.SourceFileLoader("performance_tables", str(TOOL))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("performance_tables", loader))
    write, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = write
    return module


TABLES = tool_as_module()
LINES = list(csv.DictReader(open(ROOT / "docs/performance/record.csv", newline="", encoding="utf-8")))


def run_tool(*words):
    return subprocess.run([sys.executable, TOOL, *map(str, words)], capture_output=True, text=True)


def test_tables_equal_the_record():
    done = run_tool("--check")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_figure_changed_by_hand_is_found(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    record = TABLES.Record.read()
    tables = TABLES.MARKED.findall(text)
    assert tables
    for begin, table, content, end in tables:
        figure = re.findall(r"\d+\.\d+", content)[-1]
        changed = text.replace(begin + content, begin + content.replace(figure, figure + "1"))
        assert changed != text and TABLES.made(changed, record, name) == text, table


def test_every_measurement_of_readme_follows_the_record():
    before = TABLES.readme(TABLES.Record.read())
    changed = TABLES.Record.read()
    for line in changed.lines:
        line.value *= 3
    rows = list(zip(before.splitlines()[2:], TABLES.readme(changed).splitlines()[2:]))
    assert len(rows) == 9 and all(old != new for old, new in rows)


def test_lines_are_complete():
    assert len(LINES) > 500
    bare = {"run", "ncu", "assembly", "output", "cg_against_dealii", "multigrid_against_dealii"}  # a run need not measure bandwidths, the others are written down by hand
    for line in LINES:
        assert None not in line and None not in line.values(), line
        assert re.fullmatch(r"[0-9a-f]{7,40}\+?", line["commit"]), line
        assert datetime.date.fromisoformat(line["date"]) and line["machine"] and line["benchmark"] and line["problem"], line
        assert re.match(r"([A-Z_]+=\S+ )?(mpirun -n \d+ )?(poisson|gpu_bench|box_assembly|multigrid_bench|ranks_bench|ncu|svd_improvements|taskset|poisson_\w+)\b", line["command"]), line
        assert float(line["value"]) >= 0 and line["unit"] in ("s", "B", "GB", "%", "times deal.II"), line
        assert line["benchmark"] in bare or float(line["copy"]) > 0, line
        assert (line["peer"] == "") == (line["peer_value"] == ""), line
        for column in ("setup", "details"):
            assert all(re.fullmatch(r"[\w]+=\S+", pair) for pair in line[column].split()), line


def test_bandwidths_bound_what_was_measured():
    """Products of matrices that no cache holds, and iterations with their vectors: none is faster than its floor allows."""
    large = [x for x in LINES if x["floor"] and x["benchmark"] != "ncu" and float(x["rows"] or 0) > 1.5e6 and float(x["value"]) > 0]
    assert len(large) > 100
    for line in large:
        assert float(line["floor"]) <= 1.01 * float(line["value"]), line


def value(benchmark, problem, **what):
    return TABLES.Record.read().one(benchmark, problem, **what).value


def less_time_with_slices_of_8():
    shares = [100 * (1 - value("spmv", f"ball p={p}", format="cod_sell", slice_size=8) /
                     value("spmv", f"ball p={p}", format="cod_sell", slice_size=32)) for p in (1, 2, 3)]
    return f"{min(shares):.0f} to {max(shares):.0f} %"


# What the text of README and the pages on usage says, and the record's answer. A new figure in the text needs a line here, or belongs
# into the table.
TEXTS = ("README.md", "docs/usage.md", *sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("docs/usage/*.md")))
SAYINGS = {r"(\d+ to \d+ %) less time with slices of 8 rows than with the 32": less_time_with_slices_of_8}
FIGURE = r"\d[\d.]*(?:\s+to\s+\d[\d.]*)?\s?(?:%|(?:times|ms|s|seconds|milliseconds|microseconds|[MGT]B(?:/s)?|GFLOP/s)\b)"


def prose(text):
    text = re.sub(r"<!-- table: .*?<!-- end -->", "", text, flags=re.DOTALL)
    return " ".join(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split())


def test_figures_in_the_text_are_in_the_record():
    assert len(TEXTS) > 10
    text = " ".join(prose((ROOT / name).read_text(encoding="utf-8")) for name in TEXTS)
    for saying, answer in SAYINGS.items():
        said = re.findall(saying, text)
        assert said and set(said) == {answer()}
        text = re.sub(saying, "", text)
    assert not re.findall(FIGURE, text)
    assert re.findall(FIGURE, "it takes 0.5 ms, 5 to 7 % less, 4.2 TB/s") == ["0.5 ms", "5 to 7 %", "4.2 TB/s"]


def test_the_newest_line_counts(tmp_path):
    copy = tmp_path / "record.csv"
    row = dict(LINES[0], benchmark="spmv", problem="box 7", rows="343", setup="format=csr", quantity="product", peer="", peer_value="")
    with open(copy, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, TABLES.COLUMNS)
        writer.writeheader()
        writer.writerows([row | {"value": "1"}, row | {"value": "2"}, row | {"value": "3", "rows": "8"}])
    record = TABLES.Record.read(copy)
    assert record.one("spmv", "box 7", machine=row["machine"], format="csr").value == 2
    assert [x.value for x in record.all("spmv", machine=row["machine"])] == [2, 3]
    with pytest.raises(LookupError):
        record.one("spmv", "box 7", machine=row["machine"], format="cds")


MACHINE = {"backend": "cpu", "device": "Some(R) Chip Processor", "threads": 2, "copy_bytes_per_second": 4e9, "read_bytes_per_second": 5e9}
OPTIONS = {"products": 10, "tolerance": 1e-12}
SPMV = {"bench": "spmv", **MACHINE, "options": OPTIONS, "matrices": [
    {"name": "tests/bench/ball.yaml", "kind": "problem", "n_rows": 9, "nnz": 20, "auto": {
        "format": "csr", "fastest": "cod_sell", "seconds": 3.0, "fastest_seconds": 2.0, "decision_seconds": 0.5},
     "results": [{"format": "cod_sell", "slice_size": 8, "sigma": None, "seconds": 2.0, "bytes_per_product": 10**9, "share_of_csr": 0.75,
                  "conversion_seconds": 0.25}],
     "peers": [{"peer": "cusparse csr alg1", "seconds": 4.0, "bytes_per_product": 10**9, "share_of_csr": 1.0, "conversion_seconds": 0.0}]}]}
SOLVE = {"bench": "solve", **MACHINE, "options": OPTIONS, "matrices": [
    {"name": "box, 9^3 nodes", "kind": "box", "n_rows": 729, "nnz": 9, "peers": [], "results": [
        {"format": "csr", "matrix_precision": "double", "method": "cg", "precision": "double", "preconditioner": "ic0", "ordering": "natural",
         "levels": 3, "status": "stagnated", "iterations": 8, "residual_true": 0.25, "seconds": 4.0, "bytes_per_iteration": 10**9}]}]}
SVD = {"bench": "svd", **MACHINE, "options": {}, "matrices": [
    {"name": "random 5", "kind": "random", "n_rows": 5,
     "results": [{"band_width": 2, "vectors": True, "seconds": {"reduce": 0.5, "total": 2.0}, "orthogonality_u": 1e-15}],
     "peers": [{"peer": "lapack gesdd", "vectors": True, "seconds": 3.0}, {"peer": "lapack gesdd", "vectors": False, "seconds": 1.0}]}]}
CONVERT = {"bench": "convert", **MACHINE, "options": OPTIONS, "matrices": [
    {"name": "band, 9 rows", "kind": "band", "n_rows": 9, "nnz": 20, "peers": [], "coo_to_csr": {"host": {"seconds": 7.0}},
     "results": [{"format": "cds", "sequential": {"seconds": 2.0, "share_of_csr": 0.5}, "host": {"seconds": 1.0, "share_of_csr": 0.5}}]}]}
GPU_BENCH = {**MACHINE, "rows": [{"format": "csr", "n": 4, "what": "product", "seconds": 2.0, "floor_seconds": 1.0}]}
IMPROVEMENTS = {**MACHINE, "n": 50, "rows": [
    {"improvement": "a b", "instead_of": "c", "step": "back", "seconds": 1.0, "seconds_without": 2.0}]}
RANKS = {"bench": "ranks", "rows": [
    {"job": "strong:9:2", "rows": 729, "device": "Some Chip 2 threads", "copy_bytes_per_second": 4e9, "transport": "NCCL 2: on hosts",
     "format": "matrix_free", "device_peak_bytes": 6, "cycle_seconds": 1.0, "multigrid_setup_seconds": 2.0, "multigrid_seconds": 3.0,
     "multigrid_levels": 4, "multigrid_iterations": 8, "multigrid_status": "converged", "multigrid_residual": 1e-13,
     "multigrid_tolerance": 1e-12}]}
RUN = {"backend": "cpu", "device": "Some(R) Chip Processor", "threads": 2, "configuration": "tests/bench/cube.yaml", "order": 1, "dofs": 125,
       "status": "converged", "mesh": {"cells": 64}, "matrix": {"format": "csr"}, "memory": {"host_peak_bytes": 10**9, "device_peak_bytes": 0},
       "solver": {"method": "cg", "precision": "double", "preconditioner": "none", "tolerance": 1e-12, "iterations": 8, "residual_true": 1e-13,
                  "seconds": 2.0, "bytes_per_iteration": 10**9, "copy_bytes_per_second": 4e9},
       "timing": {"assembly": 1.0, "total": 6.0}}


@pytest.mark.parametrize("report, lines", [
    (SPMV, ["spmv,ball p=2,9,format=cod_sell slice_size=8,product,2,s,0.2,cusparse csr alg1,4,4,5,nnz=20 share_of_csr=0.75 conversion=0.25",
            "spmv,ball p=2,9,library=cusparse_csr_alg1,product,4,s,0.2,,,4,5,nnz=20 share_of_csr=1 conversion=0",
            "spmv,ball p=2,9,products=10,auto,3,s,,fastest,2,4,5,format=csr fastest=cod_sell decision=0.5"]),
    (SOLVE, ["solve,box 9,729,format=csr method=cg precision=double preconditioner=ic0 ordering=natural tolerance=1e-12,solve,4,s,2,,,4,5,"
             "iterations=8 status=stagnated residual=0.25 levels=3"]),
    (SVD, ["svd,random 5,5,vectors=yes band_width=2,svd,2,s,,lapack gesdd,3,4,5,reduce=0.5 orthogonality_u=1e-15",
           "svd,random 5,5,library=lapack_gesdd vectors=yes,svd,3,s,,,,4,5,", "svd,random 5,5,library=lapack_gesdd vectors=no,svd,1,s,,,,4,5,"]),
    (CONVERT, ["convert,band,9,format=cds place=sequential,conversion,2,s,,,,4,5,nnz=20 threads=2 share_of_csr=0.5",
               "convert,band,9,format=cds place=host,conversion,1,s,,,,4,5,nnz=20 threads=2 share_of_csr=0.5",
               "convert,band,9,format=csr place=host,sorting,7,s,,,,4,5,nnz=20 threads=2"]),
    (GPU_BENCH, ["gpu_bench,box 4,64,format=csr,product,2,s,1,,,4,5,"]),
    (RANKS, [f"ranks_multigrid,strong 9,729,ranks=2 transport=NCCL_2 format=matrix_free tolerance=1e-12,{quantity},s,,,,4,,"
             "levels=4 iterations=8 status=converged residual=1e-13 device_peak_bytes=6" for quantity in ("setup,2", "cycle,1", "solve,3")]),
    (IMPROVEMENTS, ["svd_improvements,random 50,50,improvement=a_b instead_of=c,back,1,s,,without,2,4,5,"]),
    (RUN, ["run,cube,125,format=csr method=cg precision=double preconditioner=none tolerance=1e-12,total,6,s,,,,4,,"
           "assembly=1 iterations=8 residual=1e-13 status=converged cells=64 iterating=2 floor_of_iterating=2 host_memory=1000000000 "
           "device_memory=0"]),
    # a run too short to measure the bandwidth
    ({**RUN, "solver": {**RUN["solver"], "copy_bytes_per_second": None}},
     ["run,cube,125,format=csr method=cg precision=double preconditioner=none tolerance=1e-12,total,6,s,,,,,,"
      "assembly=1 iterations=8 residual=1e-13 status=converged cells=64 iterating=2 host_memory=1000000000 device_memory=0"]),
    ({**RUN, "ranks": 2},
     ["run,cube,125,ranks=2 format=csr method=cg precision=double preconditioner=none tolerance=1e-12,total,6,s,,,,4,,"
      "assembly=1 iterations=8 residual=1e-13 status=converged cells=64 iterating=2 floor_of_iterating=2 host_memory=1000000000 "
      "device_memory=0"]),
    ({**RUN, "order": 2},
     ["run,cube,125,order=2 format=csr method=cg precision=double preconditioner=none tolerance=1e-12,total,6,s,,,,4,,"
      "assembly=1 iterations=8 residual=1e-13 status=converged cells=64 iterating=2 floor_of_iterating=2 host_memory=1000000000 "
      "device_memory=0"]),
], ids=["spmv", "solve", "svd", "convert", "gpu_bench", "ranks", "svd_improvements", "run", "short run", "run of ranks", "run of order 2"])
def test_measurements_are_added(tmp_path, report, lines):
    (tmp_path / "a.json").write_text(json.dumps(report))
    (tmp_path / "a.command").write_text("poisson bench something --set problem.element.order=2\n")
    record = tmp_path / "record.csv"
    for _ in range(2):
        done = run_tool("--add", tmp_path / "a.json", "--commit", "abcdef0", "--date", "2026-01-02", "--record", record)
        assert done.returncode == 0, done.stderr
    head = "abcdef0,2026-01-02,Some Chip 2 threads,poisson bench something --set problem.element.order=2,"
    assert record.read_text().splitlines() == [",".join(TABLES.COLUMNS), *(2 * [head + line for line in lines])]


@pytest.mark.parametrize("name, text, part", [
    ("no.json", None, "command"),
    ("broken.json", "{", "JSONDecodeError"),
    ("other.json", '{"backend": "cpu", "device": "x", "threads": 1}', "no report"),
    ("wrong.json", '{"backend": "cpu", "device": "x", "threads": 1, "bench": "spmv", "matrices": [{"name": "m", "results": '
                   '[{"format": "csr", "correct": false}]}]}', "a wrong result"),
])
def test_mistakes_add_nothing(tmp_path, name, text, part):
    path = tmp_path / name
    words = []
    if text is not None:
        path.write_text(text)
        words = ["--command", "poisson bench spmv"]
    done = run_tool("--add", path, "--record", tmp_path / "record.csv", *words)
    assert done.returncode == 1 and part in done.stderr and str(path) in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert not (tmp_path / "record.csv").exists()
