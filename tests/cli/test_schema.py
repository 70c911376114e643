"""`poisson schema KEY`, and the JSON Schema of `poisson schema --json`, by which editors check configurations."""

import json
import re
import shutil

import pytest
import yaml
from conftest import ROOT

CONFIGS = sorted((ROOT / "configs").rglob("*.yaml"))


class Loader(yaml.SafeLoader):
    """Numbers as in YAML 1.2, which editors and the program read: 1e-6 is one, and no is text."""


Loader.yaml_implicit_resolvers = {first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":float", ":bool", ":timestamp"))]
                                  for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}
Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), list("tf"))
Loader.add_implicit_resolver("tag:yaml.org,2002:float", re.compile(r"^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$"), list("-+0123456789."))
Loader.add_constructor("tag:yaml.org,2002:float", lambda loader, node: float(node.value))


def load(text):
    def with_text_keys(value):  # as JSON has them
        if isinstance(value, dict):
            return {str(key): with_text_keys(item) for key, item in value.items()}
        return [with_text_keys(item) for item in value] if isinstance(value, list) else value

    return with_text_keys(yaml.load(text, Loader))


TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def has_type(value, name):
    if name in ("number", "integer"):
        return not isinstance(value, bool) and isinstance(value, (int, float)) and (name == "number" or value == int(value))
    return isinstance(value, TYPES[name])


def errors(schema, value, root, path=""):
    """What is wrong with a value, by the keywords that the schema has; a keyword that is unknown here fails."""
    found = []
    for word, rule in schema.items():
        if word in ("$schema", "$id", "$defs", "title", "description", "default", "then", "else"):
            continue
        if word == "$ref":
            target = root
            for step in rule.removeprefix("#/").split("/"):
                target = target[step]
            found += errors(target, value, root, path)
        elif word == "type":
            if not any(has_type(value, name) for name in (rule if isinstance(rule, list) else [rule])):
                found.append(f"{path}: {value!r} is no {rule}")
        elif word == "enum":
            found += [] if value in rule else [f"{path}: {value!r} is none of {rule}"]
        elif word == "const":
            found += [] if value == rule else [f"{path}: {value!r} is not {rule}"]
        elif word == "anyOf":
            if all(errors(each, value, root) for each in rule):
                found.append(f"{path}: {value!r} is nothing of {rule}")
        elif word == "if":
            branch = schema.get("else" if errors(rule, value, root) else "then", {})
            found += errors(branch, value, root, path)
        elif word in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            if has_type(value, "number") and not {"minimum": value >= rule, "maximum": value <= rule, "exclusiveMinimum": value > rule,
                                                  "exclusiveMaximum": value < rule}[word]:
                found.append(f"{path}: {value!r} against {word} {rule}")
        elif word in ("minItems", "maxItems", "uniqueItems", "items"):
            if isinstance(value, list):
                if (word == "minItems" and len(value) < rule) or (word == "maxItems" and len(value) > rule) or \
                        (word == "uniqueItems" and len(set(map(str, value))) < len(value)):
                    found.append(f"{path}: {value!r} against {word} {rule}")
                if word == "items":
                    for i, item in enumerate(value):
                        found += errors(rule, item, root, f"{path}[{i}]")
        elif word == "pattern":
            found += [f"{path}: {value!r} is not as {rule}"] if isinstance(value, str) and not re.search(rule, value) else []
        elif word == "minLength":
            found += [f"{path}: empty"] if isinstance(value, str) and len(value) < rule else []
        elif word in ("properties", "patternProperties", "additionalProperties", "required", "minProperties"):
            if not isinstance(value, dict):
                continue
            if word == "required":
                found += [f"{path}.{name} is missing" for name in rule if name not in value]
            elif word == "minProperties":
                found += [f"{path}: too few"] if len(value) < rule else []
            else:
                for name, item in value.items():
                    known = name in schema.get("properties", {}) and [schema["properties"][name]] or \
                        [each for pattern, each in schema.get("patternProperties", {}).items() if re.search(pattern, name)]
                    if word == "additionalProperties" and not known:
                        found += [f"{path}.{name} is unknown"] if rule is False else errors(rule, item, root, f"{path}.{name}")
                    elif word == "properties" and name in rule:
                        found += errors(rule[name], item, root, f"{path}.{name}")
                    elif word == "patternProperties" and known and name not in schema.get("properties", {}):
                        found += errors(known[0], item, root, f"{path}.{name}")
        else:
            found.append(f"{path}: the keyword {word}")
    return found


@pytest.fixture
def schema(poisson):
    return json.loads(poisson("schema", "--json").stdout)


def problems(schema, text):
    value = load(text)
    found = errors(schema, value, schema)
    try:
        import jsonschema
    except ImportError:
        return found
    jsonschema.Draft202012Validator.check_schema(schema)
    theirs = list(jsonschema.Draft202012Validator(schema).iter_errors(value))
    assert bool(theirs) == bool(found), (found, theirs)
    return found


def test_every_configuration_that_ships_is_valid(schema):
    assert len(CONFIGS) >= 17
    for path in CONFIGS:
        assert problems(schema, path.read_text()) == [], path


def test_what_the_program_prints_is_valid(poisson, schema):
    assert problems(schema, poisson("schema").stdout) == []
    for path in [path for path in CONFIGS if path.stem not in ("from_file", "mesh_file") and (path.stem != "drawing" or shutil.which("gmsh"))]:
        assert problems(schema, poisson("check", path, "--verbose").stdout) == [], path


VALID = ["problem: {mesh: {boundaries: [{name: left, where: \"x < 0.1\"}]}, boundary: [{names: [left], type: dirichlet}, {ids: all, type: neumann}]}",
         "problem: {coefficient: {0: 10, default: [1, \"x\", 2.5]}}", "problem: {exact: null}", "solver: {tolerance: 1e-9}",
         "parameters: {h: 2}\nsolver: {tolerance: \"1e-9 * h\", max_iterations: \"100 * h\"}", "solver:", "matrix: {threads_per_row: 0, sigma: auto}", "backend: auto", "analysis: {svd: null}",
         "analysis: {svd: [{of: field, points: auto, at: 0.5}]}", "sweep: {\"problem.boundary[0].value\": [1, 2], mode: zip}",
         "sweep: {problem.mesh.cells: [8, [8, 8, 16]], until: {quantity: flux.1, relative: 1e-3}}",
         "problem: {mesh: {generator: hyper_shell, arguments: [[0, 0, 0], 0.5, 1.0, 6, true]}}", "output: {directory: 2026}"]
INVALID = {"solver: {tolerence: 1}": ".solver.tolerence is unknown", "solvers: {}": ".solvers is unknown",
           "solver: {tolerance: 0}": "exclusiveMinimum", "solver: {tolerance: \"1e-9\"}": ".solver.tolerance",
           "solver: {method: qmr}": "none of", "solver: {method: null}": "none of", "matrix: {slice_size: 3}": "none of",
           "problem: {mesh: {cells: [1, 2]}}": "minItems", "problem: {mesh: {cells: [1, 2, 0]}}": "cells[2]",
           "problem: {mesh: {extent: [1, 1, 0]}}": "extent[2]", "problem: {element: {order: 9}}": "maximum",
           "problem: {element: {order: 1.5}}": ".order", "problem: {coefficient: {iron: [1, 2]}}": "coefficient",
           "problem: {boundary: []}": "minItems", "problem: {boundary: [{ids: all}]}": "type is missing", "problem: {boundary: [{type: dirichlet}]}": "nothing of",
           "problem: {boundary: [{ids: all, type: robin}]}": "alpha is missing",
           "problem: {boundary: [{ids: all, type: neumann, alpha: 1}]}": "alpha",
           "problem: {boundary: [{ids: every, type: neumann}]}": "ids", "output: {picture: yes}": "picture",
           "output: {vtk: {fields: [u, u]}}": "uniqueItems", "analysis: {svd: [{modes: 3}]}": "of is missing",
           "sweep: {solver.tolerance: 1.0e-3}": "sweep", "sweep: {solver.tolerance: [1.0e-3, true]}": "tolerance[1]", "sweep: {problem.mesh.cells: [8, [8, 8]]}": "cells[1]",
           "sweep: {problem.mesh.cells: [true]}": "cells[0]", "sweep: {until: {quantity: max}}": "relative is missing", "backend: gpu": "none of"}


def complete(text):
    """The case with the boundary conditions that every configuration needs."""
    boundary = "boundary: [{ids: all, type: dirichlet}]"
    if "boundary: " in text:
        return text
    return text.replace("problem: {", f"problem: {{{boundary}, ") if "problem: {" in text else f"{text}\nproblem: {{{boundary}}}"


@pytest.mark.parametrize("text", VALID)
def test_schema_and_program_accept(poisson, schema, text):
    assert problems(schema, complete(text)) == []
    poisson("check", poisson.write(complete(text)))


@pytest.mark.parametrize("text", INVALID)
def test_schema_and_program_refuse(poisson, schema, text):
    found = problems(schema, complete(text))
    assert found and INVALID[text] in " ".join(found), found
    poisson("check", poisson.write(complete(text)), code=1)


def test_what_is_missing(schema):
    assert problems(schema, "problem: {source: 1}") == [".problem.boundary is missing"]
    assert problems(schema, "{}") == [".problem is missing"]
    assert problems(schema, "problem: null")


def leaves(schema, prefix=""):
    for name, part in schema["properties"].items():
        if name == "sweep" or "properties" not in part:
            yield f"{prefix}{name}", part
        else:
            assert part["additionalProperties"] is False and part["description"]
            yield from leaves(part, f"{prefix}{name}.")


def test_it_has_every_key_with_type_default_and_description(poisson, schema):
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema" and schema["additionalProperties"] is False
    reference = load(poisson("schema").stdout)
    keys = dict(leaves(schema))
    assert len(keys) > 40
    for path, key in keys.items():
        assert len(key["description"]) > 20 and "Allowed: " in key["description"], path
        assert {"type", "anyOf", "enum"} & set(key), path
        value = reference
        for name in path.split("."):
            value = value[name]
        if path in ("problem.boundary", "problem.mesh.arguments", "problem.mesh.join", "problem.mesh.array", "problem.mesh.boundary_array", "problem.mesh.step",
                    "problem.mesh.scale", "analysis.effective.direction", *(f"analysis.effective.sub_volumes.{key}" for key in ("size", "count", "seed")),
                    *(f"problem.mesh.adaptive.{key}" for key in ("target", "max_unknowns", "max_cycles", "max_levels", "estimator", "marking", "orders", "fraction", "coarsen_fraction", "keep_cycles")), *(f"problem.mesh.{key}" for key in ("type", "big_endian", "spacing", "crop", "flip", "threshold", "coarsen", "names", "size",
                                                                                                   "shape_order", "time_limit", "allow_commands"))):
            assert "default" not in key
        else:
            assert key["default"] == ([] if path in ("analysis.svd", "output.pictures") else value), path
            assert errors(key, key["default"], schema) == [], path
    assert keys["solver.tolerance"]["default"] == 1e-12 and keys["solver.method"]["enum"] == ["cg", "bicgstab", "gmres", "minres", "auto"]
    entry = keys["problem.boundary"]["items"]
    assert set(entry["properties"]) == {"ids", "names", "type", "value", "alpha"} and entry["required"] == ["type"]
    axes = set(schema["properties"]["sweep"]["properties"]) - {"mode", "zip", "product", "when", "sample", "until", "greedy", "time_limit"}
    assert axes == {path for path in keys if not path.startswith(("output.", "sweep"))}


def test_a_part_of_the_reference(poisson):
    whole = poisson("schema").stdout
    part = poisson("schema", "solver.multigrid").stdout
    assert part.startswith("solver:\n  # Details of multigrid") and part.removeprefix("solver:\n") in whole
    assert yaml.safe_load(part) == {"solver": {"multigrid": yaml.safe_load(whole)["solver"]["multigrid"]}}
    assert "".join(poisson("schema", key).stdout for key in yaml.safe_load(whole)) == whole[whole.index("# Named constants"):]
    one = poisson("schema", "solver.tolerance").stdout
    assert yaml.safe_load(one) == {"solver": {"tolerance": 1e-12}} and "Allowed: discretization, finite number > 0" in one


def test_a_part_of_a_list(poisson):
    for key in ("problem.boundary.type", "problem.boundary[].type", "problem.boundary[0].type"):
        part = poisson("schema", key).stdout
        assert list(yaml.safe_load(part)["problem"]["boundary"][0]) == ["type"] and "robin: k du/dn + alpha u" in part
    assert list(yaml.safe_load(poisson("schema", "problem.boundary").stdout)["problem"]["boundary"][0]) == ["ids", "names", "type", "value", "alpha"]
    for key, text in (("output.probes.at", "[0, 0, 0]"), ("output.planes.points", "[101, 101]"), ("problem.fields.interpolation", "linear")):
        assert f"{key.rsplit('.', 1)[1]}: {text}" in poisson("schema", key).stdout  # of lists that are empty by default
    for key, keys in (("output.lines", ["name", "from", "to", "points"]), ("output.contours", ["name", "values"]),
                      ("problem.point_sources", ["at", "value"])):
        section, name = key.split(".")
        assert list(yaml.safe_load(poisson("schema", key).stdout)[section][name][0]) == keys
    part = poisson("schema", "analysis.svd.max_dense").stdout
    assert yaml.safe_load(part) == {"analysis": {"svd": None}} and "# - max_dense: 4096" in part and "modes" not in part


@pytest.mark.parametrize("key, meant", [("solver.tolerence", "did you mean 'solver.tolerance'?"), ("slover", "did you mean 'solver'?"),
                                        ("tolerance", "'problem.mesh.adaptive.tolerance' or 'solver.tolerance'"), ("zzzzzzzz", "there are parameters, problem, matrix"),
                                        ("precision", "'solver.precision' or 'solver.multigrid.precision' or 'output.vtk.precision'"),
                                        ("problem.bondary.alpha", "did you mean 'problem.boundary.alpha'?"), ("", "unknown key ''"),
                                        ("solver.", "unknown key 'solver.'"), ("solver.tolerance.x", "unknown key")])
def test_an_unknown_key(poisson, key, meant):
    assert meant in poisson("schema", key, code=1).stderr


def test_wrong_words(poisson):
    assert "found also 'matrix'" in poisson("schema", "solver", "matrix", code=1).stderr
    assert "takes no key; found 'solver'" in poisson("schema", "solver", "--json", code=1).stderr
    assert "--json" in poisson("schema", "--help").stdout


class Digits(str):
    """A number as the program has written it."""


def compact(node):
    if isinstance(node, dict):
        return "{" + ",".join(json.dumps(name, ensure_ascii=False) + ":" + compact(item) for name, item in node.items()
                              if name != "description" or not isinstance(item, str)) + "}"
    if isinstance(node, list):
        return "[" + ",".join(map(compact, node)) + "]"
    return str(node) if isinstance(node, Digits) else json.dumps(node, ensure_ascii=False)


def identity(schema):
    """Of the schema without descriptions and without its own name, by 64-bit FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in compact({name: item for name, item in schema.items() if name != "$id"}).encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"{value:016x}"


def test_its_name_has_a_version_that_changes_with_the_keys(poisson):
    schema = json.loads(poisson("schema", "--json").stdout, parse_float=Digits, parse_int=Digits)
    version = re.match(r"poisson (\S+)", poisson("--version").stdout)[1]
    same = identity(schema)
    assert schema["$id"] == f"urn:poisson:configuration:{version}:{same}"
    tolerance = schema["properties"]["solver"]["properties"]["tolerance"]
    tolerance["description"] += " In other words."
    assert identity(schema) == same
    tolerance["default"] = Digits("1e-3")
    other = identity(schema)
    del schema["properties"]["solver"]["properties"]["tolerance"]
    assert len({same, other, identity(schema)}) == 3
