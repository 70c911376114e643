"""Named constants, included files and YAML's merge keys."""

import csv
import json

import pytest
import yaml

BASE = """
problem:
  mesh: {cells: [4, 4, 4]}
  source: "0"
  boundary:
    - {ids: [0], type: dirichlet, value: "0"}
    - {ids: [1], type: dirichlet, value: "u_right"}
    - {ids: [2, 3, 4, 5], type: neumann, value: "0"}
output: {picture: false}
"""


def test_parameters_in_expressions_and_numbers(poisson):
    config = poisson.write("""
        parameters: {side: 2, u_right: "side^2 / 2", n: 3, w: 1.5e-1}
        problem:
          mesh: {cells: [4, n, "2*n"], extent: ["pi*side", 1, "1/w"]}
          boundary:
            - {ids: [0], type: dirichlet, value: "0"}
            - {ids: [1], type: dirichlet, value: "u_right"}
            - {ids: all, type: neumann, value: "0"}
        output: {picture: false}
        """)
    poisson("run", config, "--output", "out", "--quiet")
    record = poisson.record()
    assert record["mesh"]["cells"] == 4 * 3 * 6
    assert abs(record["quantities"]["max"] - 2) < 1e-10
    resolved = yaml.safe_load((poisson.directory / "out/resolved.yaml").read_text())
    assert resolved["parameters"] == {"u_right": 2}  # the others are in numbers, which are computed
    assert resolved["problem"]["mesh"]["extent"] == pytest.approx([6.283185307179586, 1, 1 / 0.15], rel=1e-15)
    poisson("run", "out/resolved.yaml", "--output", "again", "--quiet")
    again = poisson.record("again")
    assert again["fingerprint"] == record["fingerprint"] and again["quantities"] == record["quantities"]


def test_set_and_sweep(poisson):
    config = poisson.write("parameters: {u_right: 1}\n" + BASE + "sweep: {parameters.u_right: [1, 2, 3.5]}\n")
    poisson("run", config, "--output", "out", "--quiet", "--set", "parameters.u_right=7")
    assert abs(poisson.record()["quantities"]["max"] - 7) < 1e-10
    poisson("sweep", config, "--output", "sweep", "--quiet")
    with open(poisson.directory / "sweep/sweep.csv") as f:
        rows = list(csv.DictReader(f))
    assert [float(row["parameters.u_right"]) for row in rows] == [1, 2, 3.5]
    cases = json.loads((poisson.directory / "sweep/sweep.json").read_text())["cases"]
    for case, expected in zip(cases, [1, 2, 3.5]):
        record = poisson.record("sweep/" + case["directory"])
        assert abs(record["quantities"]["max"] - expected) < 1e-10


@pytest.mark.parametrize("parameters, parts", [
    ("{}", ["'u_right' is not known"]),
    ("{u_wrong: 1}", ["'u_right' is not known"]),
    ("{u_right: abc}", ["parameters.u_right", "'abc' is not known"]),
    ("{u_right: x}", ["parameters.u_right", "depends on x"]),
    ("{u_right: 1/0}", ["parameters.u_right", "not finite"]),
    ("{u_right: 1, sin: 2}", ["parameters.sin", "meaning in every expression"]),
    ("{u_right: 1, 2b: 2}", ["parameters.2b", "begins with no digit"]),
    ("{u_right: [1, 2]}", ["parameters.u_right", "a list of 2"]),
    ("{u_right: b, b: 1}", ["parameters.u_right", "'b' comes after 'u_right'; a parameter may use those before it"]),
    ("5", ["parameters", "map from names"]),
    ("[1]", ["parameters", "map from names"]),
])
def test_wrong_parameters(poisson, parameters, parts):
    config = poisson.write(f"parameters: {parameters}\n" + BASE)
    error = poisson("check", config, code=1).stderr
    assert all(part in error for part in parts) and "case.yaml:" in error, error


def test_parameters_that_nothing_uses(poisson):
    """A warning; none for those of included files, which several configurations share."""
    poisson.write("parameters: {k_die: 5, k_lid: 7}\n", "materials.yaml")
    config = poisson.write("include: materials.yaml\nparameters: {u_right: 1, spare: 2}\n" + BASE)
    told = poisson("check", config, "--set", "parameters.more=3").stderr
    assert "case.yaml:2:" in told and "parameters.spare: nothing uses this parameter" in told
    assert "parameters.more: nothing uses" in told and "k_die" not in told and "u_right" not in told
    poisson("run", config, "--output", "out", "--quiet")
    assert len(poisson.record()["warnings"]) == 1 and "parameters.spare" in poisson.record()["warnings"][0]


def test_unknown_names_suggest_parameters(poisson):
    config = poisson.write("parameters: {u_right: 1, k_die: 2}\n" + BASE.replace('source: "0"', 'source: "k_dye"'))
    error = poisson("check", config, "--set", "problem.source=k_dye", code=1).stderr
    assert "k_die" in error


@pytest.mark.parametrize("extent, parts", [
    ('["2*q", 1, 1]', ["problem.mesh.extent[0]", "'2*q'", "finite number > 0", "'q' is not known"]),
    ('["-u_right", 1, 1]', ["problem.mesh.extent[0]", "which is -1", "> 0"]),
    ('["x", 1, 1]', ["problem.mesh.extent[0]", "x, y and z have no meaning here"]),
    ('["1/0", 1, 1]', ["problem.mesh.extent[0]", "not finite"]),
    ('["2", 1, 1]', ["problem.mesh.extent[0]", "the text \"2\""]),
])
def test_wrong_numbers(poisson, extent, parts):
    config = poisson.write("parameters: {u_right: 1}\n" + BASE.replace("cells: [4, 4, 4]", f"cells: [4, 4, 4], extent: {extent}"))
    error = poisson("check", config, code=1).stderr
    assert all(part.replace("'2*q'", "2*q") in error for part in parts), error


def test_whole_numbers(poisson):
    config = poisson.write("parameters: {u_right: 1, n: 5}\n" + BASE.replace("[4, 4, 4]", '[n, "n/2", 1]'))
    error = poisson("check", config, code=1).stderr
    assert "problem.mesh.cells[1]" in error and "which is 2.5" in error and "integer from 1" in error


def test_include(poisson):
    (poisson.directory / "common").mkdir()
    poisson.write("parameters: {u_right: 1}\noutput: {picture: false, vtk: {enabled: false}}\ninclude: deeper.yaml\n", "common/a.yaml")
    poisson.write("problem:\n  mesh: {cells: [2, 2, 2], extent: [3, 1, 1]}\nsolver: {tolerance: 1.0e-6}\n", "common/deeper.yaml")
    config = poisson.write("include: common/a.yaml\n" + BASE)
    poisson("run", config, "--output", "out", "--quiet")
    resolved = yaml.safe_load((poisson.directory / "out/resolved.yaml").read_text())
    assert resolved["problem"]["mesh"]["cells"] == [4, 4, 4]  # this file's own
    assert resolved["problem"]["mesh"]["extent"] == [3, 1, 1] and resolved["solver"]["tolerance"] == 1e-6
    assert "solution.vti" not in poisson.record()["files"] and "include" not in resolved
    poisson("run", "out/resolved.yaml", "--output", "again", "--quiet")
    assert poisson.record("again")["fingerprint"] == poisson.record()["fingerprint"]


def test_errors_in_included_files_name_them(poisson):
    config = poisson.write("include: other.yaml\nparameters: {u_right: 1}\n" + BASE)
    assert "case.yaml:1:10" in poisson("check", config, code=1).stderr
    poisson.write("solver:\n  tolerance: abc\n", "other.yaml")
    assert "other.yaml:2:14: solver.tolerance" in poisson("check", config, code=1).stderr
    poisson.write("solver: [\n", "other.yaml")
    assert "other.yaml:" in poisson("check", config, code=1).stderr
    poisson.write("- 1\n", "other.yaml")
    assert "no map of keys" in poisson("check", config, code=1).stderr
    poisson.write("include: case.yaml\n", "other.yaml")
    assert "includes itself" in poisson("check", config, code=1).stderr
    poisson.write("include: [other.yaml]\n", "other.yaml")
    assert "includes itself" in poisson("check", config, code=1).stderr
    poisson.write("include: {}\n", "other.yaml")
    assert "path of a YAML file" in poisson("check", config, code=1).stderr


def test_files_that_include_the_next_one_twice(poisson):
    """Read once each: 2^60 readings would take for ever."""
    config = poisson.write("include: f0.yaml\nparameters: {u_right: 1}\n" + BASE)
    for i in range(60):
        poisson.write(f"include: [f{i + 1}.yaml, f{i + 1}.yaml]\n", f"f{i}.yaml")
    poisson.write("solver: {tolerance: 1.0e-6}\n", "f60.yaml")
    assert yaml.safe_load(poisson("check", config, "--verbose", timeout=30).stdout)["solver"]["tolerance"] == 1e-6
    for i in range(60, 110):
        poisson.write(f"include: f{i + 1}.yaml\n", f"f{i}.yaml")
    error = poisson("check", config, code=1, timeout=30).stderr
    assert "f99.yaml:1:10: include" in error and "100" in error


@pytest.mark.parametrize("text", ["hunter2:$6$abc:19000:0:99999:7:::\nother:x:\n", "hunter2: 1\n", "hunter2: 1\nhunter2: 2\n", "a: *hunter2\n",
                                  "a: !hunter2 1\n", "%YAML hunter2\n", "hunter2\n", "- hunter2\n", "a: \"\\hunter2\"\n"])
def test_an_included_file_that_is_no_configuration_is_not_shown(poisson, text):
    config = poisson.write("include: secret\nparameters: {u_right: 1}\n" + BASE)
    poisson.write(text, "secret")
    error = poisson("check", config, code=1).stderr
    assert "secret" in error and "hunter" not in error and "abc" not in error


def test_merge_keys(poisson):
    config = poisson.write("""
        parameters: {u_right: 1}
        problem:
          mesh: {cells: [2, 2, 2]}
          boundary:
            - &held {ids: [0], type: dirichlet, value: "0"}
            - {<<: *held, ids: [1], value: u_right}
            - &closed {ids: [2], type: neumann, value: "0"}
            - {<<: [*closed, *held], ids: [3, 4, 5]}
        output: {picture: false, vtk: {enabled: false}}
        """)
    poisson("run", config, "--output", "out", "--quiet")
    boundary = yaml.safe_load((poisson.directory / "out/resolved.yaml").read_text())["problem"]["boundary"]
    assert [b["type"] for b in boundary] == ["dirichlet", "dirichlet", "neumann", "neumann"]
    assert boundary[1]["ids"] == [1] and abs(poisson.record()["quantities"]["max"] - 1) < 1e-10
    error = poisson("check", poisson.write(BASE.replace("ids: [0]", "<<: 5, ids: [0]")), code=1).stderr
    assert "a merge key (<<) takes a map" in error
