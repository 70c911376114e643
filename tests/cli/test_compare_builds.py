"""tools/compare_builds: equal builds are equal, and what differs is told."""

import importlib.machinery
import importlib.util
import os
import subprocess
import sys

import pytest
from conftest import EXECUTABLE, ROOT
from ranks import LIBRARY, MPIRUN

TOOL = ROOT / "tools/compare_builds"


def compare(*words, **kwargs):
    return subprocess.run([sys.executable, TOOL, *map(str, words)], text=True, capture_output=True, timeout=300, **kwargs)


@pytest.fixture(scope="module")
def tool():
    loader = importlib.machinery.SourceFileLoader("compare_builds", str(TOOL))
    sys.dont_write_bytecode = True
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare_builds", loader))
    loader.exec_module(module)
    return module


def test_a_build_is_equal_to_itself():
    ranks = "1,3" if MPIRUN and LIBRARY.exists() else "1"
    done = compare(EXECUTABLE, EXECUTABLE, "--only", "^(box_half_cds|refused_coefficient)$", "--ranks", ranks)
    assert done.returncode == 0 and "all equal" in done.stdout, done.stdout + done.stderr
    assert f"{2 * len(ranks.split(','))} runs of each build" in done.stdout


# Runs the program, then changes what it wrote: a digit of each kind of file, and times, which must not count.
WRAPPER = f"""#!{sys.executable}
import json, pathlib, subprocess, sys
done = subprocess.run([{EXECUTABLE!r}, *sys.argv[1:]], capture_output=True, text=True)
print(done.stdout.replace("unknowns     1", "unknowns     2"))
print("a warning", file=sys.stderr)
out = pathlib.Path("out")
record = json.loads((out / "result.json").read_text())
record["timing"]["total"] *= 2
record["provenance"]["commit"] = "another"
if record["quantities"]["max"] > 0:
    record["quantities"]["max"] *= 1 + 2**-52
(out / "result.json").write_text(json.dumps(record))
lines = (out / "residuals.csv").read_text().split("\\n")
lines[3] = lines[3][:-1] + str((int(lines[3][-1]) + 1) % 10)
(out / "residuals.csv").write_text("\\n".join(lines))
solution = bytearray((out / "solution.vti").read_bytes())
solution[-100] ^= 1
(out / "solution.vti").write_bytes(solution)
(out / "solution.pvd").rename(out / "other.pvd")
sys.exit(2)
"""


def test_what_differs_is_told(tmp_path):
    (tmp_path / "app").mkdir()
    wrapper = tmp_path / "app/poisson"
    wrapper.write_text(WRAPPER)
    wrapper.chmod(0o755)
    done = compare(EXECUTABLE, tmp_path, "--only", "^box_half_cds$", "--ranks", "1", env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == 1, done.stdout + done.stderr
    rows = done.stdout.splitlines()
    assert rows[0].split()[:3] == ["case", "ranks", "file"]
    told = {row[row.index(" 1 ") + 3:].strip().split("  ")[0]: row for row in rows[1:-1]}
    assert set(told) == {"exit code", "standard output", "standard error", "out/result.json", "out/residuals.csv", "out/solution.vti",
                         "out/solution.pvd", "out/other.pvd"}, done.stdout
    assert "quantities.max" in told["out/result.json"] and "e-16" in told["out/result.json"]
    assert "line 4" in told["out/residuals.csv"] and "missing" in told["out/solution.pvd"]
    assert rows[-1].startswith("1 runs of each build") and "1 runs differ" in rows[-1]


def test_a_case_that_fails_in_both_builds_is_no_equal_one(tool, tmp_path):
    case = tool.Case("mistake", tool.BOX, "problem.mesh.cels=[2, 2, 2]")
    found, _ = tool.compare(case, 1, [EXECUTABLE, EXECUTABLE], tmp_path, "cpu")
    assert [d.what for d in found] == ["exit code of OLD"] and (found[0].old, found[0].new) == (0, 1) and "cels" in found[0].place


@pytest.mark.parametrize("old, new, place", [
    ('{"a": [{"b": 1.0}]}', '{"a": [{"b": 1.0000000000000002}]}', "a[0].b"),
    ('{"a": 0.0}', '{"a": -0.0}', "a"),
    ('{"a": 1}', '{"a": 1, "b": 2}', "keys of the record"),
    ('{"a": [1]}', '{"a": [1, 2]}', "length of a"),
    ('{"solver": {"seconds": 1, "bytes_per_second": 2, "auto": [{"total_seconds": 1}]}}',
     '{"solver": {"seconds": 3, "bytes_per_second": 4, "auto": [{"total_seconds": 2}]}}', "solver.auto[0].total_seconds"),
    ('{"timing": {"solve": 1}, "memory": {"host_peak_bytes": 5}, "a": 1}', '{"timing": {"solve": 2}, "memory": {"host_peak_bytes": 6}, "a": 1}', None)])
def test_records_are_compared_key_by_key(tool, old, new, place):
    found = tool.of_json("result.json", old, new)
    assert (found and found.place) == place


def test_only_what_was_measured_is_left_out_of_texts(tool):
    def texts(time, memory, size):
        return tool.without_measured(">", f"  solve  {time} ms   7 iterations\n  memory   {memory} MiB on the host\n  matrix   {size} KiB")

    assert texts("0.5", "50.1", "79.8") == texts("12", "51", "79.8")
    assert texts("0.5", "50.1", "79.8") != texts("0.5", "50.1", "79.9")
    row = '<table><tr><th>case</th><th>seconds</th></tr><tr><td>1</td><td data-v="{}">2</td></tr></table>'
    assert tool.without_measured("a.html", row.format(1)) == tool.without_measured("a.html", row.format(2))
    assert tool.without_measured("sweep.csv", "case,solver_seconds,max\n1,2,3") == tool.without_measured("sweep.csv", "case,solver_seconds,max\n1,5,3")
    assert tool.without_measured("sweep.csv", "case,solver_seconds,max\n1,2,3") != tool.without_measured("sweep.csv", "case,solver_seconds,max\n1,2,4")


def test_names_of_cases_are_unique_and_listed(tool):
    names = [case.name for case in tool.CASES]
    assert len(names) == len(set(names)) > 90
    listed = compare("--list")
    assert [line.split()[0] for line in listed.stdout.splitlines()] == names


@pytest.mark.parametrize("words, message", [(("nothing", "nothing"), "nothing is no program"), ((EXECUTABLE,), "OLD NEW"),
                                            ((EXECUTABLE, EXECUTABLE, "--only", "nothing"), "--list tells them")])
def test_wrong_usage_is_told(words, message):
    done = compare(*words)
    assert done.returncode in (1, 2) and message in done.stderr
