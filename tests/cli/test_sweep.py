import csv
import json
import os
import re
import signal
import subprocess
import xml.etree.ElementTree as xml

import numpy as np
import pytest
from conftest import CUBE, ROOT, read_vtk

SWEEP = CUBE + """
sweep:
  problem.element.order: [1, 2]
  problem.mesh.cells: [[2, 2, 2], [4, 4, 4], [8, 8, 8]]
output: {picture: false}
"""


def table(poisson, directory="out"):
    with open(poisson.directory / directory / "sweep.csv") as f:
        return list(csv.DictReader(f))


def values_of_case(grid):
    """The swept keys that a file for ParaView has, with their values."""
    fields = grid.GetFieldData()
    arrays = [fields.GetAbstractArray(i) for i in range(fields.GetNumberOfArrays())]
    return {a.GetName(): a.GetValue(0) for a in arrays if "." in a.GetName()}


def test_product_with_orders(poisson):
    config = poisson.write(SWEEP)
    done = poisson("sweep", config, "--output", "out")
    rows = table(poisson)
    assert len(rows) == 6 and all(r["status"] == "converged" for r in rows)
    assert [r["problem.element.order"] for r in rows] == ["1"] * 3 + ["2"] * 3
    for i, order in ((2, 1), (5, 2)):
        assert abs(float(rows[i]["order_l2"]) - (order + 1)) < 0.25
        assert abs(float(rows[i]["order_h1_seminorm"]) - order) < 0.25
    assert rows[0]["order_l2"] == ""
    assert "order" in done.stdout
    summary = json.loads((poisson.directory / "out/sweep.json").read_text())
    assert len(summary["cases"]) == 6 and summary["complete"]
    steps = xml.parse(poisson.directory / "out/case.pvd").getroot().findall(".//DataSet")
    assert len(steps) == 6
    for step in steps:
        assert (poisson.directory / "out" / step.get("file")).exists()
    assert steps[4].get("name") == "order = 2, cells = [4, 4, 4]"
    assert values_of_case(read_vtk(poisson.directory / "out" / steps[4].get("file"))) == {
        "problem.element.order": 2, "problem.mesh.cells": "[4, 4, 4]"}
    # ParaView reads no collection of several kinds of grids.
    assert {step.get("file")[-4:] for step in steps} == {".vtu"}
    assert "output.vtk.format" in poisson("sweep", config, "--output", "no", "--set", "output.vtk.format=image", code=1).stderr
    poisson("sweep", config, "--output", "lattices", "--set", "sweep={problem.mesh.cells: [[2, 2, 2], [4, 3, 2]]}", "--quiet")
    steps = xml.parse(poisson.directory / "lattices/case.pvd").getroot().findall(".//DataSet")
    assert [step.get("file")[-4:] for step in steps] == [".vti", ".vti"]
    for step in steps:
        read_vtk(poisson.directory / "lattices" / step.get("file"))


def test_vtkhdf_files_are_in_a_series(poisson):
    """ParaView reads no .hdf from a .pvd, but from its list of files of one kind."""
    config = poisson.write(SWEEP.replace("picture: false", "picture: false, vtk: {format: hdf}"))
    poisson("sweep", config, "--output", "out", "--quiet", "--set", "sweep={problem.element.order: [1, 2]}")
    out = poisson.directory / "out"
    series = json.loads((out / "case.hdf.series").read_text())
    assert series["file-series-version"] == "1.0" and [f["time"] for f in series["files"]] == [0, 1]
    grids = [read_vtk(out / f["name"]) for f in series["files"]]
    assert [grid.GetCellType(0) for grid in grids] == [12, 72]
    assert [values_of_case(grid) for grid in grids] == [{"problem.element.order": 1}, {"problem.element.order": 2}]
    assert [f["values"] for f in series["files"]] == ["order = 1", "order = 2"]
    assert "case.hdf.series" in json.loads((out / "sweep.json").read_text())["files"] and not (out / "case.pvd").exists()


def test_zip_and_jobs(poisson):
    config = poisson.write(SWEEP.replace("[1, 2]", "[1, 2, 3]") + "  \n", "zip.yaml")
    poisson("sweep", config, "--output", "out", "--jobs", 2, "--set", "sweep.mode=zip")
    rows = table(poisson)
    assert [(r["problem.element.order"], r["cells"]) for r in rows] == [("1", "8"), ("2", "64"), ("3", "512")]


def test_order_alone(poisson):
    config = poisson.write(CUBE + "sweep: {problem.element.order: [1, 2, 3]}\noutput: {picture: false}\n")
    poisson("sweep", config, "--output", "out")
    assert float(table(poisson)[1]["order_l2"]) > 2


def test_a_failing_case_costs_no_other(poisson):
    config = poisson.write(CUBE + """
sweep:
  problem.coefficient: ["1", "x - 0.5", "sqr(x)", "2"]
output: {picture: false}
""")
    done = poisson("sweep", config, "--output", "out", code=1)
    rows = table(poisson)
    assert [r["status"] for r in rows] == ["converged", "failed", "failed", "converged"]
    assert "problem.coefficient" in rows[1]["error"] and "problem.coefficient" in rows[2]["error"]
    assert "case 1 failed" in done.stdout
    assert rows[3]["exit_code"] == "0" and rows[1]["exit_code"] == "1"


def test_resume_does_only_what_is_missing(poisson):
    config = poisson.write(SWEEP)
    poisson("sweep", config, "--output", "out")
    poisson("sweep", config, "--output", "out", code=1)  # refused without --resume or --overwrite
    cases = sorted((poisson.directory / "out/cases").iterdir())
    stamps = {c.name: (c / "result.json").stat().st_mtime_ns for c in cases}
    (cases[1] / "result.json").unlink()
    longer = poisson.write(SWEEP.replace("[8, 8, 8]]", "[8, 8, 8], [3, 3, 3]]"))
    done = poisson("sweep", longer, "--output", "out", "--resume")
    assert "3 to do" in done.stdout
    after = {c.name: (c / "result.json").stat().st_mtime_ns for c in (poisson.directory / "out/cases").iterdir()}
    assert [n for n in stamps if after.get(n) == stamps[n]] == [c.name for c in cases if c != cases[1]]
    rows = table(poisson)
    assert len(rows) == 8 and all(r["status"] == "converged" for r in rows)


def test_overwrite_removes_what_earlier_cases_wrote_and_nothing_else(poisson):
    # So many that several threads remove them. Values differ, so that no folder has the name of an earlier one.
    def sweep(first):
        config = poisson.write(CUBE + f"""
sweep:
  problem.coefficient: [{", ".join(str(first + i) for i in range(40))}]
output: {{picture: false, report: false}}
""")
        poisson("sweep", config, "--output", "out", "--quiet", "--overwrite")
        return {c.name for c in (poisson.directory / "out/cases").iterdir()}

    earlier = sorted(sweep(1))
    assert len(earlier) == 40
    folder = poisson.directory / "out/cases"
    (folder / earlier[7] / "notes.txt").write_text("mine")
    (folder / "other").mkdir()
    (folder / earlier[9] / "result.json").write_text("{")  # of nobody: its files are not known to be ours
    after = sweep(100)
    assert len(after) == 42 + 1
    assert {c.name for c in (folder / earlier[7]).iterdir()} == {"notes.txt"}
    assert "result.json" in {c.name for c in (folder / earlier[9]).iterdir()}
    assert all(r["status"] == "converged" for r in table(poisson)) and len(table(poisson)) == 40


def test_killed_and_resumed(poisson):
    text = SWEEP.replace("[8, 8, 8]]", "[8, 8, 8], [32, 32, 32], [33, 33, 33], [34, 34, 34]]")
    config = poisson.write(text)
    process = subprocess.Popen(poisson.command("sweep", config, "--output", "out"), cwd=poisson.directory, text=True, stdout=subprocess.PIPE)
    for line in process.stdout:
        if line.strip().startswith("2/"):
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()  # the output ends when the running case, which ends with its parent, has ended
    assert not (poisson.directory / "out/sweep.json").exists()
    done = poisson("sweep", config, "--output", "out", "--resume")
    assert " to do" in done.stdout and "12 to do" not in done.stdout
    rows = table(poisson)
    assert len(rows) == 12 and all(r["status"] == "converged" for r in rows)


def test_interrupted_and_resumed(poisson):
    config = poisson.write(SWEEP.replace("[8, 8, 8]]", "[8, 8, 8], [40, 40, 40], [41, 41, 41]]"))
    process = subprocess.Popen(poisson.command("sweep", config, "--output", "out"), cwd=poisson.directory, text=True, stdout=subprocess.PIPE)
    for line in process.stdout:
        if line.strip().startswith("2/"):
            break
    process.send_signal(signal.SIGINT)
    rest = process.communicate(timeout=120)[0]
    assert process.returncode == 130, rest
    assert not json.loads((poisson.directory / "out/sweep.json").read_text())["complete"]
    poisson("sweep", config, "--output", "out", "--resume")
    assert all(r["status"] == "converged" for r in table(poisson))


def test_nothing_to_sweep(cube):
    poisson, config = cube
    assert "sweep" in poisson("sweep", config, code=1).stderr


def test_wrong_axes(poisson):
    bad = poisson.write(CUBE + "sweep: {problem.mesh.cels: [1, 2]}\n")
    done = poisson("sweep", bad, "--output", "out", code=1)
    assert "cells" in done.stderr and "case.yaml:" in done.stderr
    uneven = poisson.write(CUBE + "sweep: {mode: zip, problem.element.order: [1, 2], problem.mesh.refinements: [0]}\n")
    poisson("sweep", uneven, "--output", "out", code=1)
    assert not (poisson.directory / "out").exists()


def test_run_leaves_the_sweep_out(poisson):
    config = poisson.write(SWEEP)
    done = poisson("run", config, "--output", "out")
    assert "poisson sweep" in done.stdout and poisson.record()["status"] == "converged"


def test_quantities_are_extrapolated_over_meshes(poisson):
    """Without an exact solution: the capacitance of a coaxial capacitor, known, from three coarse meshes."""
    (poisson.directory / "case.yaml").write_text((ROOT / "configs/gallery/coaxial_capacitor.yaml").read_text())
    done = poisson("sweep", "case.yaml", "--output", "out", "--set", "sweep={problem.mesh.refinements: [1, 2, 3], problem.element.order: [1, 2]}",
                   "--set", "output.picture=false", "--set", "output.vtk.enabled=false")
    assert "Richardson extrapolation, order = 2" in done.stdout
    groups = json.loads((poisson.directory / "out/sweep.json").read_text())["extrapolation"]
    assert [g["parameters"]["problem.element.order"] for g in groups] == ["1", "2"] and groups[0]["cases"] == [0, 2, 4]
    for order, group in zip([1, 2], groups):
        found = group["quantities"]["capacitance"]
        results = json.loads((poisson.directory / "out/sweep.json").read_text())["cases"]
        exact = results[0]["result"]["quantities"]["reference"]
        finest = results[group["cases"][-1]]["result"]["quantities"]["capacitance"]
        assert abs(found["order"] - 2 * order) < 0.5  # functionals converge twice as fast as the gradient
        assert abs(found["value"] - exact) < 0.3 * abs(finest - exact)
        assert 0.7 < found["error"] / abs(finest - exact) < 1.4
        assert group["quantities"]["volume.insulation"].keys() >= {"value", "order", "error"}


def test_meshes_that_are_not_similar_are_not_extrapolated(poisson):
    config = poisson.write("""
        problem:
          source: "1"
          boundary: [{ids: all, type: dirichlet, value: "0"}]
        output: {picture: false, vtk: {enabled: false}}
        sweep: {problem.mesh.cells: [[4, 4, 4], [8, 4, 4], [16, 4, 4]]}
        """)
    done = poisson("sweep", config, "--output", "out")
    group = json.loads((poisson.directory / "out/sweep.json").read_text())["extrapolation"][0]
    assert "do not grow by one factor" in group["note"] and group["quantities"] == {}
    assert "do not grow by one factor" in done.stdout
    done = poisson("sweep", config, "--output", "similar", "--set", "sweep={problem.mesh.cells: [[4, 4, 4], [8, 8, 8], [12, 12, 12], [20, 20, 20]]}")
    mean = json.loads((poisson.directory / "similar/sweep.json").read_text())["extrapolation"][0]["quantities"]["mean"]
    assert abs(mean["order"] - 2) < 0.1 and "note" not in mean
    k = np.arange(1, 80, 2.0)
    squares = k[:, None, None]**2 + k[:, None]**2 + k**2
    exact = (512 / np.pi**6 / (np.pi**2 * squares) / (k[:, None, None] * k[:, None] * k)**2).sum()  # the series of sines
    assert mean["value"] == pytest.approx(exact, rel=2e-4)


UNTIL = """
problem:
  source: 1
  boundary: [{ids: all, type: dirichlet, value: 0}]
output: {picture: false, vtk: {enabled: false}, quantities: {average: mean}}
sweep: {problem.element.order: [1, 2], problem.mesh.cells: [4, 8, 12, 16, 20], until: {quantity: average, relative: 1e-2}}
"""


def test_a_study_stops_by_itself(poisson):
    config = poisson.write(UNTIL)
    done = poisson("sweep", config, "--output", "out", "--jobs", "2")
    summary = json.loads((poisson.directory / "out/sweep.json").read_text())
    first, second = summary["until"]["studies"]
    assert first["reached"] and second["reached"] and len(first["cases"]) + len(second["cases"]) < 10
    k = np.arange(1, 80, 2.0)
    squares = k[:, None, None]**2 + k[:, None]**2 + k**2
    exact = (512 / np.pi**6 / (np.pi**2 * squares) / (k[:, None, None] * k[:, None] * k)**2).sum()  # the series of sines
    for study in (first, second):
        finest = summary["cases"][study["cases"][-1]]["result"]["quantities"]["average"]
        assert abs(finest - exact) < 1e-2 * exact and study["error"] <= 1e-2 * study["value"]
        for number in study["left_out"]:
            case = summary["cases"][number]
            assert (case["status"], case["exit_code"], case["result"], case["directory"]) == ("left_out", 0, None, "")
    folders = sorted(os.listdir(poisson.directory / "out/cases"))
    assert [int(name[5:8]) for name in folders] == sorted(first["cases"] + second["cases"])
    assert re.search(r"Until the error of average is 0.01 of it\n.*why it stopped\n +1 .*accurate enough, . finer left out\n +2 ", done.stdout)
    assert "left out" in (poisson.directory / "out/report.html").read_text() and summary["complete"]
    for more in (["--resume"], ["--collect"]):
        poisson("sweep", config, "--output", "out", *more)
        assert json.loads((poisson.directory / "out/sweep.json").read_text())["until"] == summary["until"]
    assert sorted(os.listdir(poisson.directory / "out/cases")) == folders
    # More is asked for: the same cases, and more of them.
    poisson("sweep", config, "--output", "out", "--resume", "--set", "sweep.until.relative=1e-4")
    stricter = json.loads((poisson.directory / "out/sweep.json").read_text())
    assert len(stricter["until"]["studies"][0]["cases"]) > len(first["cases"])
    assert sum(case["reused"] for case in stricter["cases"]) == len(folders)
    assert not stricter["until"]["studies"][0]["reached"] and stricter["exit_code"] == 0
    wrong = poisson("sweep", config, "--output", "wrong", "--set", "sweep.until.quantity=averge", code=1).stderr
    assert "did you mean 'average'? Its quantities are: min, max" in wrong and "sweep.until.quantity" in wrong
    summary = json.loads((poisson.directory / "wrong/sweep.json").read_text())  # the case that was solved is in it
    assert summary["exit_code"] == 1 and summary["cases"][0]["status"] == "converged"


SAMPLE = """
parameters: {k: 1, q: 1}
problem:
  mesh: {generator: box, cells: [4, 4, 4]}
  coefficient: k
  source: q
  boundary:
    - {ids: all, type: dirichlet, value: "0"}
output: {picture: false, vtk: {enabled: false}, quantities: {peak: max, product: max * k}}
sweep: {sample: {count: 8, seed: 3, parameters: {k: {uniform: [1, 2]}, q: {normal: [1, 0.1]}}}}
"""


def test_sample_of_parameters(poisson):
    config = poisson.write(SAMPLE)
    done = poisson("sweep", config, "--output", "out")
    rows = table(poisson)
    assert len(rows) == 8 and list(rows[0])[1:5] == ["parameters.k", "parameters.q", "peak", "product"]
    k, q, peak, product = (np.array([float(row[name]) for row in rows]) for name in list(rows[0])[1:5])
    assert sorted((k - 1) * 8 // 1) == list(range(8))  # one in each eighth
    summary = json.loads((poisson.directory / "out/sweep.json").read_text())
    of_peak = summary["statistics"]["peak"]
    assert of_peak["mean"] == pytest.approx(peak.mean()) and of_peak["deviation"] == pytest.approx(peak.std(ddof=1))
    assert of_peak["correlation"]["k"] == pytest.approx(np.corrcoef(k, peak)[0, 1])
    assert of_peak["quantiles"][2]["value"] == pytest.approx(np.median(peak))
    # u is q / k times that of k = q = 1.
    assert np.allclose(product / q, product[0] / q[0]) and summary["statistics"]["product"]["correlation"]["q"] == pytest.approx(1)
    assert summary["sample"]["parameters"]["q"] == {"distribution": "normal", "numbers": [1.0, 0.1]}
    assert "Statistics of 8 of 8 cases" in done.stdout and "corr. k" in done.stdout
    page = (poisson.directory / "out/report.html").read_text()
    assert "Histogram of peak" in page and "uniform [1, 2]" in page

    # Extended: the cases that are there are kept.
    done = poisson("sweep", config, "--output", "out", "--resume", "--set", "sweep.sample.count=12")
    cases = json.loads((poisson.directory / "out/sweep.json").read_text())["cases"]
    assert [c["reused"] for c in cases] == [True] * 8 + [False] * 4 and "4 to do" in done.stdout


def test_sample_beside_another_axis_and_when(poisson):
    config = poisson.write(SAMPLE.replace("sweep: {sample", "sweep: {problem.element.order: {powers_of_two: [1, 2]}, when: 'order < 2 || k < 1.5', sample"))
    done = poisson("sweep", config, "--output", "out", "--set", "sweep.sample.indices=true", "--set", "sweep.sample.count=3")
    assert "Statistics of 12 of 12 cases, order = 1" in done.stdout and re.search(r"peak .*\d \+- \d", done.stdout)
    assert not re.search(r"\d\.\d{9}", done.stdout)  # sampled values as people read them
    groups = json.loads((poisson.directory / "out/sweep.json").read_text())["statistics_of"]
    assert [g["parameters"] for g in groups] == [{"problem.element.order": "1"}, {"problem.element.order": "2"}]
    assert groups[0]["statistics"]["peak"]["count"] == 6 and set(groups[0]["statistics"]["peak"]["sobol"]["total"]) == {"k", "q"}
    assert len(table(poisson)) < 24
    bad = poisson("sweep", config, "--output", "no", "--set", "sweep.sample.parameters={z: {uniform: [0, 1]}}", code=1)
    assert "no such parameter" in bad.stderr and not (poisson.directory / "no").exists()


def test_equal_errors_are_told_once(poisson):
    config = poisson.write(SAMPLE.replace("ids: all", "ids: 0"))
    done = poisson("sweep", config, "--output", "out", code=1)
    assert done.stdout.count("no condition for boundary id") == 9 and "cases 0-7 failed: " in done.stdout  # as each ends, and once
    page = (poisson.directory / "out/report.html").read_text()
    assert page.count("no condition for boundary id") == 1 and "Cases 0-7 failed: " in page
    assert "class=\"explore\"" not in page  # there is nothing to plot
    invalid = "sweep={problem.element.order: [1, 2], problem.mesh.cells: [[0, 1, 1], 2]}"
    done = poisson("sweep", poisson.write(SAMPLE), "--output", "invalid", "--set", invalid, code=1).stdout
    assert "\n  cases 0,2 are not valid, and are not run: " in done[:done.index("/4 ")]
    assert "class=\"explore\" data-keys=\"2\"" in (poisson.directory / "invalid/report.html").read_text()
