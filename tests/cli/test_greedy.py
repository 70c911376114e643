"""`sweep.greedy`: a few cases are solved, each where the estimated error of predictions is largest; the others are predicted."""

import csv
import json
import math
import signal
import subprocess

import pytest

QUIETLY = """
output: {vtk: {enabled: false}, picture: false, report: false, quantities: {twice: 2 * mean}, probes: [{name: tip, at: [0.25, 0.5, 0.5]}]}
"""
# A wall of two layers. u is piecewise linear, and two solutions hold all others: flux = q / (0.5 / k + 0.5).
WALL = """
parameters: {k: 1, q: 1}
problem:
  mesh: {cells: [6, 2, 2], regions: [{name: left, where: "x < 0.5"}]}
  coefficient: {left: "k", default: "1"}
  source: "0"
  boundary: [{ids: [0], type: dirichlet, value: "q"}, {ids: [1], type: dirichlet, value: "0"}, {ids: all, type: neumann, value: "0"}]
sweep: {parameters.k: {from: 0.1, to: 10, count: 7, scale: log}, parameters.q: [1, 2, 5], greedy: {tolerance: 1e-6, max_cases: 10}}
""" + QUIETLY
# Neither the matrix nor u is a polynomial of the parameters.
SMOOTH = """
parameters: {a: 1, b: 0}
problem:
  mesh: {cells: [10, 10, 10]}
  coefficient: "1 + 0.5*exp(-a*x)*sin(3*y+b)"
  source: "1"
  boundary: [{ids: all, type: dirichlet, value: "0"}]
sweep: {parameters.a: {from: 0, to: 3, count: 6}, parameters.b: {from: 0, to: 3, count: 6}, greedy: {tolerance: 1e-2}}
""" + QUIETLY


def summary(poisson, directory="out"):
    return json.loads((poisson.directory / directory / "sweep.json").read_text())


def by_status(record, status):
    return [case for case in record["cases"] if case["status"] == status]


def test_a_manifold_of_two_dimensions_takes_two_cases(poisson):
    poisson.write(WALL)
    done = poisson("sweep", "case.yaml", "--output", "out")
    record = summary(poisson)
    greedy = record["greedy"]
    assert greedy["end"] == "tolerance" and len(greedy["solved"]) == 2 and greedy["modes"] == 2 and greedy["terms"] == 2
    assert greedy["largest_estimate"] < 1e-10 and record["complete"] and record["exit_code"] == 0
    assert len(by_status(record, "converged")) == 2 and len(by_status(record, "predicted")) == 19
    assert "2 of 21 cases were solved, 19 are predicted" in done.stdout and "below the tolerance, 1e-06" in done.stdout
    [check] = greedy["checks"]
    assert check["case"] == greedy["solved"][1] and 0.5 * check["error"] < check["estimate"] <= 1.001 * check["error"]
    for case in by_status(record, "predicted"):
        k, q = (float(case["parameters"]["parameters." + name]) for name in "kq")
        result = case["result"]
        assert result["quantities"]["flux.1"] == pytest.approx(q / (0.5 / k + 0.5), rel=1e-10)
        assert result["errors_of"]["flux.1"]["estimate"] < 1e-9 and result["errors_of"]["flux.1"]["guaranteed"] is False
        assert result["estimate"] < 1e-10 and case["directory"] == "" and case["exit_code"] == 0
    assert sorted(path.name[:8] for path in (poisson.directory / "out/cases").iterdir()) == [f"case_{i:03}" for i in sorted(greedy["solved"])]
    with open(poisson.directory / "out/sweep.csv") as file:
        rows = list(csv.DictReader(file))
    for row, case in zip(rows, record["cases"]):
        assert row["status"] == case["status"] and float(row["twice"]) == case["result"]["quantities"]["twice"]
        assert (row["estimate"] != "") == (case["status"] == "predicted")
    lines = {words[0]: words for line in done.stdout.splitlines() if (words := line.split())}
    assert "+-" in lines["1"] and "predicted" in lines["1"]


def test_one_dimension_takes_one_case_and_one_that_checks_it(poisson):
    poisson.write(WALL.replace("parameters.k: {from: 0.1, to: 10, count: 7, scale: log}, parameters.q: [1, 2, 5]", "parameters.q: [1, 2, 3, 4, 5, 6]"))
    poisson("sweep", "case.yaml", "--output", "out")
    record = summary(poisson)
    assert len(record["greedy"]["solved"]) == 2 and record["greedy"]["end"] == "tolerance" and record["greedy"]["modes"] == 1
    assert record["greedy"]["checks"][0]["error"] < 1e-9


def test_estimates_are_near_the_errors(poisson):
    poisson.write(SMOOTH)
    poisson("sweep", "case.yaml", "--output", "out", "--jobs", "4")
    poisson("sweep", "case.yaml", "--output", "all", "--quiet", "--set", "sweep={parameters.a: {from: 0, to: 3, count: 6}, parameters.b: {from: 0, to: 3, count: 6}}")
    record, true = summary(poisson), summary(poisson, "all")
    assert record["greedy"]["end"] == "tolerance" and 3 < len(record["greedy"]["solved"]) < 20
    checked = 0
    for found, known in zip(record["cases"], true["cases"]):
        assert found["parameters"] == known["parameters"]
        if found["status"] != "predicted":
            assert found["fingerprint"] == known["fingerprint"] and found["result"]["quantities"] == known["result"]["quantities"]
            continue
        of_found, of_known = found["result"]["quantities"], known["result"]["quantities"]
        # Galerkin: |u - v|^2 = |u|^2 - |v|^2 in the energy norm, where u is prescribed as 0
        error = math.sqrt(1 - of_found["energy"] / of_known["energy"])
        assert 0.7 * error < found["result"]["estimate"] < 1.5 * error and found["result"]["estimate"] <= 1e-2
        for name in ("mean", "energy", "probe.tip"):
            assert abs(of_found[name] - of_known[name]) <= 2 * found["result"]["errors_of"][name]["estimate"], name
        checked += 1
    assert checked == 36 - len(record["greedy"]["solved"])
    for check in record["greedy"]["checks"]:
        assert 0.7 * check["error"] < check["estimate"] <= 1.001 * check["error"]


def test_max_cases_then_resume_and_extend(poisson):
    poisson.write(SMOOTH)
    done = poisson("sweep", "case.yaml", "--output", "out", "--set", "sweep.greedy.max_cases=3")
    first = summary(poisson)
    assert first["greedy"]["end"] == "max_cases" and len(first["greedy"]["solved"]) == 3 and "ended by max_cases" in done.stdout
    assert first["greedy"]["largest_estimate"] > 1e-2 and first["exit_code"] == 0 and first["complete"]
    # more cases: those that are there stay
    poisson("sweep", "case.yaml", "--output", "out", "--resume")
    second = summary(poisson)
    assert second["greedy"]["end"] == "tolerance" and set(first["greedy"]["solved"]) < set(second["greedy"]["solved"])
    assert {case["case"] for case in second["cases"] if case["reused"]} == set(first["greedy"]["solved"])
    # a smaller tolerance, and other combinations beside the old ones
    poisson("sweep", "case.yaml", "--output", "out", "--resume", "--set", "sweep.greedy.tolerance=5e-3", "--set", "sweep.parameters.a=[0, 0.6, 1.2, 1.8, 2.4, 3, 3.6]")
    third = summary(poisson)
    fingerprints = [{case["fingerprint"] for case in by_status(record, "converged")} for record in (second, third)]
    assert third["greedy"]["end"] == "tolerance" and fingerprints[0] < fingerprints[1] and len(third["cases"]) == 42
    # nothing to do
    poisson("sweep", "case.yaml", "--output", "out", "--resume", "--set", "sweep.greedy.tolerance=0.5", "--set", "sweep.greedy.max_cases=1")
    assert all(case["reused"] for case in by_status(summary(poisson), "converged"))


def test_no_candidates(poisson):
    poisson.write(SMOOTH.replace("count: 6", "count: 2"))
    done = poisson("sweep", "case.yaml", "--output", "out", "--set", "sweep.greedy.tolerance=1e-13")
    record = summary(poisson)
    assert record["greedy"]["end"] == "no candidates" and not by_status(record, "predicted") and "no other case was left" in done.stdout


def test_a_sweep_without_a_solution_ends_early(poisson):
    poisson.write(WALL.replace("twice: 2 * mean", "twice: 2 * meen(x)"))
    done = poisson("sweep", "case.yaml", "--output", "out", code=2)
    record = summary(poisson)
    assert record["greedy"]["end"] == "no solution" and not record["complete"] and record["exit_code"] == 2
    assert len(by_status(record, "failed")) == 3 and sum(case["exit_code"] < 0 for case in record["cases"]) == 18
    assert "none of the first 3 cases has a solution" in done.stdout and "3 of 21 cases failed" in done.stderr
    assert max(len(line) for line in done.stdout.splitlines() if ": failed: " in line) < 300


def test_jobs_of_a_cluster(poisson):
    poisson.write(WALL)
    names = [line.split("\t")[1] for line in poisson("sweep", "case.yaml", "--list").stdout.splitlines()]
    assert len(names) == 21
    poisson("sweep", "case.yaml", "--output", "out", "--case", "3")
    done = poisson("sweep", "case.yaml", "--output", "out", "--collect", code=3)
    record = summary(poisson)
    assert not record["complete"] and record["greedy"]["end"] is None and len(by_status(record, "converged")) == 1
    following = record["greedy"]["next"]
    assert f"the case to be solved next is {following}" in done.stderr
    poisson("sweep", "case.yaml", "--output", "out", "--case", str(following))
    poisson("sweep", "case.yaml", "--output", "out", "--collect")
    record = summary(poisson)
    assert record["complete"] and record["greedy"]["end"] == "tolerance" and record["greedy"]["solved"] == sorted([3, following])
    assert len(by_status(record, "predicted")) == 19


def test_a_case_that_fails_is_told_and_the_others_go_on(poisson):
    poisson.write(WALL.replace("parameters.k: {from: 0.1, to: 10, count: 7, scale: log}", "parameters.k: [-1, 0.1, 1, 5]"))
    done = poisson("sweep", "case.yaml", "--output", "out", code=1)
    record = summary(poisson)
    assert [case["case"] for case in by_status(record, "failed")] == [0, 1, 2] and record["greedy"]["end"] == "tolerance"
    assert "3 of 12 cases failed" in done.stderr and len(by_status(record, "predicted")) == 7


def test_an_interrupt(poisson):
    poisson.write(SMOOTH)
    process = subprocess.Popen(poisson.command("sweep", "case.yaml", "--output", "out"), cwd=poisson.directory, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for line in process.stdout:
        if line.split()[:1] == ["estimate"]:
            process.send_signal(signal.SIGINT)
            break
    process.stdout.read()
    assert process.wait() == 130
    record = summary(poisson)
    assert not record["complete"] and record["greedy"]["end"] is None and by_status(record, "not_run")
    poisson("sweep", "case.yaml", "--output", "out", "--resume")
    assert summary(poisson)["greedy"]["end"] == "tolerance"


def test_statistics_of_a_sample_take_predictions(poisson):
    sample = "sweep={sample: {count: 16, seed: 3, parameters: {k: {uniform: [0.5, 2]}}}"
    poisson.write(WALL)
    done = poisson("sweep", "case.yaml", "--output", "out", "--set", sample + ", greedy: {tolerance: 1e-6}}")
    poisson("sweep", "case.yaml", "--output", "all", "--set", sample + "}")
    found, true = (summary(poisson, name)["statistics"]["twice"] for name in ("out", "all"))
    assert found["count"] == 16 and found["mean"] == pytest.approx(true["mean"], rel=1e-9)
    assert "Statistics of 16 of 16 cases, 14 of them predicted" in done.stdout


def test_page_and_check(poisson):
    poisson.write(WALL)
    poisson("sweep", "case.yaml", "--output", "out", "--set", "output.report=true")
    page = (poisson.directory / "out/report.html").read_text()
    assert "2 converged, 19 predicted" in page and "+-" in page and "below the tolerance" in page
    assert "21, of which at most 10 are solved, and the others predicted" in poisson("check", "case.yaml").stdout


def test_what_is_refused(poisson):
    poisson.write(WALL)

    def refused(*sets):
        words = [word for setting in sets for word in ("--set", setting)]
        return poisson("sweep", "case.yaml", *words, code=1).stderr

    assert "sweep.greedy.tolerance" in refused("sweep.greedy={max_cases: 3}")
    assert "sweep.greedy.tolerance" in refused("sweep.greedy.tolerance=0")
    assert "sweep.greedy.max_cases" in refused("sweep.greedy.max_cases=0")
    assert "did you mean 'tolerance'" in refused("sweep.greedy.tolerence=1e-3")
    assert "problem.mesh.cells" in refused("sweep.problem.mesh.cells=[2, 4, 8]")
    text = refused("sweep={problem.mesh.cells: [2, 4, 8], until: {quantity: mean, relative: 1e-3}, greedy: {tolerance: 1e-3}}")
    assert "sweep.greedy" in text and "until" in text
    # an interface that moves
    poisson.write(WALL.replace("cells: [6, 2, 2]", "cells: [60, 2, 2]").replace(
        'regions: [{name: left, where: "x < 0.5"}]', "").replace('{left: "k", default: "1"}', '"x < 0.1 * k ? 1 : 2"').replace("scale: log", "scale: linear").replace("count: 7", "count: 60"))
    text = refused("output.directory=no")
    assert "sweep.greedy" in text and "no sums of 40 terms" in text
    assert len(list((poisson.directory / "no/cases").iterdir())) == 1
    # another type of conditions in one of the cases
    poisson.write(WALL)
    text = refused('sweep={"problem.boundary[0].type": [dirichlet, neumann], greedy: {tolerance: 1e-3}}', "output.directory=types")
    assert "one mesh and element, and the same types of conditions" in text
