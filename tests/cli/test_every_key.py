"""Every key that is declared, with values of the wrong type, kind, number and size: one message that names the key, no crash, no hang."""

import functools
import json
import resource
import subprocess

import pytest
from conftest import EXECUTABLE

# One entry in every list, so that the keys of its elements can be set.
ALL = """
parameters: {scale: 1}
problem:
  mesh:
    cells: [3, 3, 3]
    extent: [1, 1, "scale"]
    boundaries: [{name: heater, where: "z > 0.9"}]
    regions: [{name: die, where: "z < 0.4"}]
  fields: [{name: measured, file: table.csv}]
  frames: [{name: bedding, axis: [0, 1, 0], angle: 30}]
  coefficient: {die: {frame: bedding, principal: ["1", "2", "3"]}, default: "1 + measured"}
  source: {die: "1", default: "0"}
  point_sources: [{at: [0.5, 0.5, 0.5], value: 1}]
  line_sources: [{from: [0.5, 0.5, 0], to: [0.5, 0.5, 1], value: "1"}]
  boundary:
    - {ids: [0], type: robin, alpha: "1", value: "0"}
    - {names: [heater], type: dirichlet, value: "1"}
    - {ids: all, type: neumann, value: "0"}
analysis: {svd: [{of: field, points: 8}]}
output:
  picture: false
  report: false
  probes: [{name: tip, at: [0.1, 0.2, 0.3]}]
  lines: [{name: axis, from: [0, 0, 0], to: [0, 0, 1], points: 5}]
  circles: [{name: rim, center: [0.5, 0.5, 0.5], normal: [0, 0, 1], radius: 0.4, points: 5}]
  planes: [{name: mid, origin: [0, 0, 0.5], first: [1, 0, 0], second: [0, 1, 0], points: [3, 3]}]
  slices: [{name: cut, origin: [0, 0, 0.5], normal: [1, 0, 1]}]
  contours: [{name: levels, values: [0.2, 0.4]}]
  quantities: {twice: "2 * max"}
"""
TABLE = "x,y,z,value\n" + "".join(f"{x},{y},{z},{x + y}\n" for x in (0, 1) for y in (0, 1) for z in (0, 1))

VALUES = ["{}", "{file: missing.vti}", "[]", "[1, 2]", "[a, b, c]", '""', "null", ".nan", "1e300", "1e400", "9223372036854775808", "-1", "0", "true",
          "nosuchname", '"1/0"', "[1e300, 1e300, 1e300]", "[-1, .nan, 0]", '"' + "x" * 5000 + '"', "[{}]"]


# A wrong value of these may show at the keys that need it: another mesh has other boundaries, another name is not found.
DEFINES_WHAT_OTHERS_USE = ("parameters", "problem.mesh", "problem.fields", "problem.frames")


def keys_below(schema, path=""):
    """Every key of a JSON Schema, those of elements of lists as list[0].key."""
    if "properties" in schema:
        for name, inner in schema["properties"].items():
            yield from keys_below(inner, f"{path}.{name}" if path else name)
        if path:
            yield path
        return
    yield path
    items = schema.get("items", {})
    if isinstance(items, dict) and "properties" in items:
        for name, inner in items["properties"].items():
            yield from keys_below(inner, f"{path}[0].{name}")


@functools.cache
def declared_keys():
    schema = json.loads(subprocess.run([EXECUTABLE, "schema", "--json"], capture_output=True, text=True, check=True).stdout)
    # A sweep's keys are those of the configuration; output.directory may be any name.
    return [key for key in keys_below(schema) if not key.startswith("sweep") and key not in ("include", "output.directory")]


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))


@pytest.mark.parametrize("key", declared_keys())
def test_wrong_values(poisson, key):
    config = poisson.write(ALL)
    poisson.write(TABLE, "table.csv")
    for value in VALUES:
        setting = f"{key}={value}"
        done = poisson("check", config, "--backend", "cpu", "--set", setting, code=(0, 1, 3), timeout=30, preexec_fn=limit_memory)
        if done.returncode == 0:
            done = poisson("run", config, "--output", "out", "--overwrite", "--quiet", "--backend", "cpu", "--set", setting, "--set",
                           "solver.max_iterations=50" if key != "solver.max_iterations" else "solver.tolerance=0.1", code=(0, 1, 2, 3), timeout=60,
                           preexec_fn=limit_memory)
        if done.returncode in (1, 3):
            # What only the solution tells, such as a contour that it does not have, may be said before.
            assert done.stderr.startswith(("poisson: error: ", "poisson: warning: ")) and done.stderr.count("poisson: error: ") == 1, (setting, done.stderr)
            assert "terminate" not in done.stderr and "Assertion" not in done.stderr, (setting, done.stderr)
            named = [key, key.rpartition(".")[0] if "[" in key else key]
            if key.startswith(DEFINES_WHAT_OTHERS_USE):
                named += ["problem.", "parameters."]
            assert any(name in done.stderr for name in named), (setting, done.stderr)
            assert len(done.stderr) < 3000, (setting, done.stderr)


def test_all_keys_at_once_are_good(poisson):
    """Else the test above would find errors everywhere."""
    poisson.write(TABLE, "table.csv")
    poisson("run", poisson.write(ALL), "--output", "out", "--quiet", "--backend", "cpu")
