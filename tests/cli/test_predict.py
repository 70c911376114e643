"""`poisson predict`: what a sweep's solutions tell of values between its own."""

import json
import math

import pytest

SNAPSHOTS = """
output: {vtk: {enabled: false}, picture: false, report: false, probes: [{name: tip, at: [0.25, 0.5, 0.5]}]}
solver: {tolerance: 1e-13}
analysis: {svd: [{of: snapshots, modes: 6}]}
"""
# u = a u1 + b u2: two modes hold every solution.
TWO_SOURCES = """
parameters: {a: 1, b: 1}
problem:
  mesh: {cells: [5, 5, 5]}
  source: "a*x + b*sin(pi*y)"
  boundary: [{ids: all, type: dirichlet, value: "0"}]
sweep: {parameters.a: [-1, 1, 2, 3], parameters.b: [0, 0.5, 1, 2]}
""" + SNAPSHOTS
# u = u1 / k
ONE_OVER_K = """
parameters: {k: 1}
problem:
  mesh: {cells: [5, 5, 5]}
  coefficient: k
  source: "1 + x"
  boundary: [{ids: all, type: dirichlet, value: "0"}]
sweep: {parameters.k: {from: 1, to: 100, count: 7, scale: log}}
""" + SNAPSHOTS
# A wall of two layers, whose heat resistances add up, with a coefficient that is no polynomial of p: -(k u')' = 0, u = 0 and 1.
WALL = """
parameters: {p: 1}
problem:
  mesh: {cells: [4, 2, 2], regions: [{name: left, where: "x < 0.5"}]}
  coefficient: {left: "exp(p)", default: "1"}
  source: "0"
  boundary: [{ids: [0], type: dirichlet, value: "0"}, {ids: [1], type: dirichlet, value: "1"}, {ids: all, type: neumann, value: "0"}]
sweep: {parameters.p: {from: -1, to: 2, count: 7}}
""" + SNAPSHOTS


@pytest.fixture
def predict(poisson):
    def run(*settings, directory="out"):
        words = [word for setting in settings for word in ("--set", setting)]
        return json.loads(poisson("predict", directory, *words, "--json").stdout)

    return run


def run_at(poisson, *settings):
    words = [word for setting in settings for word in ("--set", setting)]
    poisson("run", "case.yaml", "--output", "single", "--overwrite", *words)
    return poisson.record("single")["quantities"]


def test_two_sources_are_predicted_to_rounding(poisson, predict):
    poisson.write(TWO_SOURCES)
    done = poisson("sweep", "case.yaml", "--output", "out")
    assert "'poisson predict' finds each of the 16 solutions from those at other values to " in done.stdout
    summary = json.loads((poisson.directory / "out/sweep.json").read_text())
    model = summary["analysis"][0]["model"]
    assert model["file"] == "svd0_snapshots_model.json" in summary["files"] and model["cases"] == 16 and model["error"] < 1e-10
    for a, b in ((0.3, 1.7), (3.1, -0.1)):
        settings = f"parameters.a={a}", f"parameters.b={b}"
        found, true = predict(*settings), run_at(poisson, *settings)
        assert found["at"] == {"parameters.a": a, "parameters.b": b} and found["cases"] == 16
        assert found["modes"] >= 2 and found["solution"]["error"] < 1e-10
        for name in ("mean", "integral_u", "integral_f", "probe.tip", "energy"):
            assert found["quantities"][name] == pytest.approx(true[name], rel=1e-9, abs=1e-11), name
            assert found["errors_of"][name]["estimate"] < 1e-9 and found["errors_of"][name]["guaranteed"] is False
    # the largest value has no such formula, and the estimate tells
    assert found["errors_of"]["max"]["estimate"] > 1e-6


def test_one_over_k(poisson, predict):
    poisson.write(ONE_OVER_K)
    poisson("sweep", "case.yaml", "--output", "out")
    of_one = run_at(poisson, "parameters.k=1")
    for k in (1.5, 7, 60):
        found = predict(f"parameters.k={k}")
        for name in ("mean", "max", "probe.tip"):
            error = abs(found["quantities"][name] - of_one[name] / k)
            assert error <= found["errors_of"][name]["estimate"] + 1e-12 and found["errors_of"][name]["estimate"] < 1e-8, name
        assert found["solution"]["error"] < 1e-8


def test_the_residual_tells_what_one_mode_misses(poisson, predict):
    poisson.write(TWO_SOURCES.replace("modes: 6", "modes: 1"))
    poisson("sweep", "case.yaml", "--output", "out")
    model = json.loads((poisson.directory / "out/svd0_snapshots_model.json").read_text())
    equations = {tuple(case["at"]): (case["a"][0], case["b"][0]) for case in model["cases"]}
    (stiffness, of_a), (_, of_both) = equations[1, 0], equations[1, 1]
    for a, b in ((0.3, 1.7), (3, 0.5)):
        found, true = predict(f"parameters.a={a}", f"parameters.b={b}"), run_at(poisson, f"parameters.a={a}", f"parameters.b={b}")
        # Galerkin: |u - u1|^2 = |u|^2 - |u1|^2 in the energy norm, and |u1|^2 = (v . b)^2 / (v . A v)
        error = math.sqrt(1 - (a * of_a + b * (of_both - of_a)) ** 2 / stiffness / (2 * true["energy"]))
        assert error > 0.01 and found["solution"]["residual_error"] == pytest.approx(error, rel=1e-6)
        assert found["solution"]["equations_error"] < 1e-12
    poisson("sweep", "case.yaml", "--output", "out", "--overwrite", "--set", "analysis.svd=[{of: snapshots, modes: 6}]")
    assert predict("parameters.a=0.3", "parameters.b=1.7")["solution"]["residual_error"] < 1e-9


def test_errors_where_the_model_is_not_exact(poisson, predict):
    poisson.write(WALL)
    poisson("sweep", "case.yaml", "--output", "out")
    estimates = []
    for p in (-0.8, 0.2, 1.3):
        found = predict(f"parameters.p={p}")
        flux = 1 / (0.5 / math.exp(p) + 0.5)  # through the wall of area 1, into its right side
        error, estimate = abs(found["quantities"]["flux.0"] - flux), found["errors_of"]["flux.0"]["estimate"]
        assert 1e-9 < error <= estimate < 0.05, (p, error, estimate)
        estimates.append(estimate)
        # two modes hold every solution; what is wrong are the equations between the cases
        assert found["solution"]["residual_error"] < 1e-9 < found["solution"]["equations_error"] < 0.05
    # more cases, smaller errors
    poisson("sweep", "case.yaml", "--output", "more", "--set", "sweep.parameters.p={from: -1, to: 2, count: 13}")
    assert predict("parameters.p=0.2", directory="more")["errors_of"]["flux.0"]["estimate"] < 0.5 * min(estimates)


def test_the_table_tells_how_errors_were_found(poisson):
    poisson.write(ONE_OVER_K)
    poisson("sweep", "case.yaml", "--output", "out")
    text = poisson("predict", "out", "--set", "parameters.k=3").stdout
    assert "prediction at parameters.k = 3, from 7 cases" in text and "probe.tip" in text
    assert "Its residual stands for an error of " in text
    assert "the largest that was found when cases of the sweep were predicted from those at other values" in text
    # the file itself is taken, too
    assert "probe.tip" in poisson("predict", "out/svd0_snapshots_model.json", "--set", "parameters.k=3").stdout


def test_a_key_that_did_not_vary_need_not_be_given(poisson, predict):
    poisson.write(TWO_SOURCES.replace("parameters.b: [0, 0.5, 1, 2]", "parameters.b: [2]"))
    poisson("sweep", "case.yaml", "--output", "out")
    assert predict("parameters.a=2") == predict("parameters.a=2", "parameters.b=2")


def test_what_is_refused(poisson):
    poisson.write(TWO_SOURCES)
    poisson("sweep", "case.yaml", "--output", "out")

    def refused(*words):
        done = poisson("predict", *words, code=1)
        assert done.stdout == "" and done.stderr.count("poisson: error") == 1
        return done.stderr

    a, b = ("--set", "parameters.a=1"), ("--set", "parameters.b=1")
    assert "RESULTS" in refused()
    assert "found also 'b'" in refused("out", "b")
    text = refused("out", *a)
    assert "parameters.b" in text and "has no value" in text and "from 0 to 2" in text
    text = refused("out", *a, *b, "--set", "parameters.c=1")
    assert "parameters.c" in text and "parameters.a (from -1 to 3)" in text
    assert "did you mean 'parameters.a'" in refused("out", "--set", "parameter.a=1")
    text = refused("out", *b, "--set", "parameters.a=3.5")
    assert "parameters.a" in text and "found 3.5" in text and "from -1 to 3" in text and "from -1.4 to 3.4" in text
    poisson("predict", "out", *b, "--set", "parameters.a=3.4")
    for wrong in ("parameters.a=x", "parameters.a=", "parameters.a", "parameters.a=nan", "parameters.a=1e999"):
        assert "parameters.a" in refused("out", *b, "--set", wrong)
    assert "given twice" in refused("out", *a, *a, *b)
    assert "does not exist" in refused("nowhere", *a, *b)
    poisson("run", "case.yaml", "--output", "single")
    assert "has no model" in refused("single", *a, *b)

    file = poisson.directory / "out/svd0_snapshots_model.json"
    good = file.read_text()
    model = json.loads(good)
    file.write_text(json.dumps({**model, "version": 99}))
    text = refused("out", *a, *b)
    assert "version 99" in text and "--resume" in text
    for bad in (good[:200], "{}", "[]", ""):
        file.write_text(bad)
        assert "is no model" in refused("out", *a, *b)
    for key in ("keys", "modes", "cases", "solution", "quantities"):
        file.write_text(json.dumps({name: value for name, value in model.items() if name != key}))
        assert "is damaged" in refused("out", *a, *b)
        file.write_text(json.dumps({**model, key: 7 if key == "modes" else []}))
        assert "is damaged" in refused("out", *a, *b)
    file.write_text(json.dumps({**model, "cases": [{**case, "a": case["a"][1:]} for case in model["cases"]]}))
    assert "is damaged" in refused("out", *a, *b)
    for key in ("a", "parts", "energies", "weights", "rule"):
        file.write_text(json.dumps({**model, "residuals": {**model["residuals"], key: []}}))
        assert "is damaged" in refused("out", *a, *b)
    poisson("sweep", "case.yaml", "--output", "out", "--resume")
    assert file.read_text() == good
    (poisson.directory / "out/svd1_snapshots_model.json").write_text(good)
    assert "2 models" in refused("out", *a, *b)


def test_no_model_where_a_swept_key_is_no_number(poisson):
    poisson.write(TWO_SOURCES.replace("sweep: {parameters.a: [-1, 1, 2, 3], parameters.b: [0, 0.5, 1, 2]}", 'sweep: {problem.source: ["x", "y", "x + y", "z"]}'))
    poisson("sweep", "case.yaml", "--output", "out")
    assert "model" not in json.loads((poisson.directory / "out/sweep.json").read_text())["analysis"][0]
    assert "all swept keys are numbers" in poisson("predict", "out", code=1).stderr


def test_a_key_with_two_values_hides_nothing(poisson, predict):
    # u = u1 / k at two values of k, whatever the source: a straight line would meet all cases, and nothing between them
    poisson.write(ONE_OVER_K.replace('source: "1 + x"', "source: q").replace("parameters: {k: 1}", "parameters: {k: 1, q: 1}").replace(
        "parameters.k: {from: 1, to: 100, count: 7, scale: log}", "parameters.k: [1, 100], parameters.q: [1, 2, 3]"))
    poisson("sweep", "case.yaml", "--output", "out")
    found = predict("parameters.k=10", "parameters.q=2")
    true = run_at(poisson, "parameters.k=10", "parameters.q=2")
    assert abs(found["quantities"]["mean"] - true["mean"]) <= found["errors_of"]["mean"]["estimate"]


def test_no_residual_where_matrices_are_no_sums_of_few(poisson, predict):
    # an interface that moves: every case has a matrix of its own kind
    poisson.write(ONE_OVER_K.replace("coefficient: k", 'coefficient: "x < 0.05 * k ? 1 : 2"').replace("cells: [5, 5, 5]", "cells: [20, 2, 2]").replace(
        "{from: 1, to: 100, count: 7, scale: log}", "{from: 2, to: 18, count: 17}"))
    poisson("sweep", "case.yaml", "--output", "out")
    assert "residual_error" not in predict("parameters.k=3.3")["solution"]
    assert "residual" not in poisson("predict", "out", "--set", "parameters.k=3.3").stdout
