"""output.pictures: what is drawn, the files and the report that name it, and wrong requests."""

import json
import os
import re

import numpy as np
import pytest
from conftest import CUBE

TWO_MATERIALS = """
problem:
  mesh: {cells: [12, 8, 8], extent: [1.5, 1, 1], regions: [{name: core, where: "x < 0.75"}]}
  coefficient: {core: "10", default: "1"}
  boundary: [{ids: [0], type: dirichlet, value: "1"}, {ids: [1], type: dirichlet, value: "0"}, {ids: all, type: neumann, value: "0"}]
  exact: "x < 0.75 ? 1 - x*2/16.5 : (1.5 - x)*20/16.5"
"""
PICTURES = """
output:
  vtk: {enabled: false}
  planes: [{name: mid, origin: [0, 0, 0.5], first: [1.5, 0, 0], second: [0, 1, 0], points: [31, 21]}]
  pictures:
    - {name: a, quantity: u, normal: z, at: 0.3, colors: grey, mesh: false, size: [600, 450], range: [0, 1]}
    - {name: b, quantity: flux, scale: log}
    - {name: c, quantity: arrows}
    - {name: d, quantity: materials, normal: x, view: [1, 1, 1]}
    - {name: e, quantity: coefficient, view: [0, 0, 1]}
    - {name: f, quantity: exact, mesh: true}
    - {name: g, quantity: error, normal: y}
"""
NAMES = ["solution.png", "materials.png", *[f"picture_{name}.png" for name in "abcdefg"]]


def read_png(path):
    """Red, green, blue of every pixel, from the upper left."""
    from vtkmodules.util.numpy_support import vtk_to_numpy
    from vtkmodules.vtkIOImage import vtkPNGReader

    reader = vtkPNGReader()
    reader.SetFileName(str(path))
    reader.Update()
    image = reader.GetOutput()
    width, height, _ = image.GetDimensions()
    pixels = vtk_to_numpy(image.GetPointData().GetScalars())
    assert pixels.dtype == np.uint8
    return pixels.reshape(height, width, 3)[::-1]


def test_a_run_with_several_pictures(poisson):
    poisson("run", poisson.write(TWO_MATERIALS + PICTURES), "--output", "out")
    record, out = poisson.record(), poisson.directory / "out"
    assert [name for name in record["files"] if name.endswith(".png") and name != "residuals.png"] == [*NAMES, "plane_mid.png"]
    assert all((out / name).read_bytes()[:4] == b"\x89PNG" for name in NAMES) and record["warnings"] == []
    # From left to right u falls, in grey: exactly, as nothing is in the way and no light falls on the section.
    image = read_png(out / "picture_a.png")
    assert image.shape == (450, 600, 3)
    row = image[225].astype(int)
    grey = [x for x in range(100, 490) if np.ptp(row[x]) == 0 and 27 <= row[x][0] <= 241]
    assert len(grey) > 300 and (np.diff(row[grey, 0]) <= 0).all() and row[grey[0]][0] > 230 and row[grey[-1]][0] < 40
    # resolved.yaml says the same, and the report shows all with captions.
    poisson("run", "out/resolved.yaml", "--output", "again", "--quiet")
    assert poisson.record("again")["files"] == record["files"]
    page = (out / "report.html").read_text()
    captions = re.findall(r"<figcaption>(.*?)</figcaption></figure>", page)
    for part in ("u", "materials", "a: u, z = 0.3", "b: |flux|, logarithmic scale", "d: materials, x = 0.75", "e: coefficient k", "f: exact solution",
                 "g: u − exact, y = 0.5", "u on the plane mid"):
        assert part in captions
    assert any(caption.startswith("c: flux: arrows") for caption in captions)
    assert page.count("data:image/png;base64,") == len(NAMES) + 1


def test_the_same_bytes_for_any_number_of_threads(poisson):
    config = poisson.write(TWO_MATERIALS + PICTURES)
    for threads in (1, 1, 3):
        poisson("run", config, "--output", f"t{threads}", "--overwrite", "--quiet", "--threads", threads)
    for name in [*NAMES, "plane_mid.png"]:
        assert (poisson.directory / "t1" / name).read_bytes() == (poisson.directory / "t3" / name).read_bytes(), name


def test_a_machine_without_fonts(poisson):
    empty = poisson.write(f'<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig><cachedir>{poisson.directory}/c</cachedir></fontconfig>', "fonts.conf")
    config = poisson.write(TWO_MATERIALS + PICTURES)
    without = {**{k: v for k, v in os.environ.items() if k not in ("DISPLAY", "FONTCONFIG_PATH")}, "FONTCONFIG_FILE": str(empty), "HOME": str(poisson.directory)}
    poisson("run", config, "--output", "with", "--quiet")
    done = poisson("run", config, "--output", "without", "--quiet", env=without)
    assert done.stderr == ""
    for name in NAMES:
        assert (poisson.directory / "without" / name).stat().st_size > 5000
    # Letters differ, what they surround does not.
    a, b = (read_png(poisson.directory / folder / "picture_a.png") for folder in ("with", "without"))
    assert (a[60:380, 100:480] == b[60:380, 100:480]).all() and (a != b).any()
    assert (b[:40] < 128).any()  # a title there is


@pytest.mark.parametrize("mesh, order", [("generator: hyper_ball, refinements: 1", 2), ("generator: torus, arguments: [2, 0.5]", 3),
                                         ("cells: [3, 4, 5]", 2), ("cells: [2, 2, 2], refinements: 2", 1), ("cells: [40, 1, 1], extent: [100, 1, 1]", 1)])
def test_every_kind_of_mesh(poisson, mesh, order):
    poisson("run", poisson.write(f"""
        problem:
          mesh: {{{mesh}}}
          element: {{order: {order}}}
          coefficient: ["1", "2", "3"]
          source: "1"
          boundary: [{{ids: all, type: dirichlet, value: "x"}}]
        output:
          picture: false
          vtk: {{format: vtu}}
          pictures: [{{name: f, quantity: flux}}, {{name: a, quantity: arrows}}, {{name: k, quantity: coefficient, normal: x}}, {{name: u, view: [-1, 2, -1]}}]
        """), "--output", "out", "--quiet")
    files = poisson.record()["files"]
    assert {"picture_f.png", "picture_a.png", "picture_k.png", "picture_u.png"} <= set(files) and "solution.png" not in files
    assert "materials.png" not in files and "residuals.png" not in files


def test_materials_are_drawn_only_where_there_are_several(cube):
    poisson, config = cube
    poisson("run", config, "--output", "one", "--quiet")
    assert "materials.png" not in poisson.record("one")["files"]
    poisson("run", poisson.write(TWO_MATERIALS), "--output", "two", "--quiet")
    assert "materials.png" in poisson.record("two")["files"]
    poisson("run", poisson.write(TWO_MATERIALS), "--output", "none", "--quiet", "--set", "output.picture=false")
    assert not [name for name in poisson.record("none")["files"] if name.endswith(".png")]


@pytest.mark.parametrize("name", ["picture_a.png", "materials.png", "plane_mid.png"])
def test_files_of_others_are_not_replaced(poisson, name):
    config = poisson.write(TWO_MATERIALS + PICTURES)
    (poisson.directory / "out").mkdir()
    (poisson.directory / "out" / name).write_text("mine")
    done = poisson("run", config, "--output", "out", "--overwrite", code=1)
    assert name in done.stderr and "no earlier run" in done.stderr and "solve" not in done.stdout
    assert (poisson.directory / "out" / name).read_text() == "mine"


@pytest.mark.parametrize("pictures, words", [
    ("7", ["output.pictures", "list of maps"]),
    ("[{quantity: u}]", ["output.pictures[0].name", "a picture has a name"]),
    ("[{name: ../a}]", ["output.pictures[0].name", "letters, digits"]),
    ("[{name: a}, {name: b}, {name: a}]", ["output.pictures[2].name", "'a'", "output.pictures[0]"]),
    ("[{name: a, quantity: fluxx}]", ["output.pictures[0].quantity", "did you mean 'flux'"]),
    ("[{name: a, quantity: temperature}]", ["output.pictures[0].quantity", "u, flux, arrows, materials, coefficient, exact, error"]),
    ("[{name: a, quantity: error}]", ["output.pictures[0].quantity", "problem.exact"]),
    ("[{name: a, quantity: exact}]", ["output.pictures[0].quantity", "problem.exact"]),
    ("[{name: a, normal: w}]", ["output.pictures[0].normal", "x, y, z"]),
    ("[{name: a, at: 0.5}]", ["output.pictures[0].at", "only with normal or quantity: arrows"]),
    ("[{name: a, normal: z, at: .nan}]", ["output.pictures[0].at", "finite"]),
    ("[{name: a, normal: z, at: 1.5}]", ["output.pictures[0].at", "z = 1.5", "from 0 to 1"]),
    ("[{name: a, quantity: arrows, at: -3}]", ["output.pictures[0].at", "does not meet the mesh"]),
    ("[{name: a, view: [0, 0, 0]}]", ["output.pictures[0].view", "no direction"]),
    ("[{name: a, view: [1, 2]}]", ["output.pictures[0].view", "[x, y, z]"]),
    ("[{name: a, view: above}]", ["output.pictures[0].view", "auto; or [x, y, z]"]),
    ("[{name: a, quantity: arrows, view: [1, 0, 0]}]", ["output.pictures[0].view", "arrows"]),
    ("[{name: a, colors: viridid}]", ["output.pictures[0].colors", "did you mean 'viridis'"]),
    ("[{name: a, quantity: materials, colors: grey}]", ["output.pictures[0].colors", "only without quantity: materials"]),
    ("[{name: a, scale: logarithmic}]", ["output.pictures[0].scale", "linear, log"]),
    ("[{name: a, range: [1, 1]}]", ["output.pictures[0].range", "less than"]),
    ("[{name: a, range: [0, 1], scale: log}]", ["output.pictures[0].range[0]", "> 0"]),
    ("[{name: a, range: 3}]", ["output.pictures[0].range", "[low, high]"]),
    ("[{name: a, range: [0, .inf]}]", ["output.pictures[0].range[1]"]),
    ("[{name: a, mesh: yes}]", ["output.pictures[0].mesh", "true or false"]),
    ("[{name: a, size: [1e9, 3]}]", ["output.pictures[0].size[0]", "240 to 8192"]),
    ("[{name: a, size: 300}]", ["output.pictures[0].size", "[width, height]"]),
    ("[{name: a, colour: grey}]", ["output.pictures[0].colour", "did you mean 'colors'"]),
])
def test_wrong_pictures_are_found_before_the_solve(poisson, pictures, words):
    config = poisson.write(CUBE.replace('  exact: "sin(pi*x)*sin(pi*y)*sin(pi*z)"\n', "") + f"output:\n  pictures: {pictures}\n")
    done = poisson("run", config, "--output", "out", code=1)
    assert "case.yaml:" in done.stderr and all(word in done.stderr for word in words), done.stderr
    assert "solve" not in done.stdout and not (poisson.directory / "out").exists()


def test_schema_and_other_commands(poisson):
    entry = json.loads(poisson("schema", "--json").stdout)["properties"]["output"]["properties"]["pictures"]
    keys = entry["items"]["properties"]
    assert list(keys) == ["name", "quantity", "normal", "at", "view", "colors", "scale", "range", "mesh", "size"]
    assert keys["quantity"]["enum"][0] == "u" and "viridis" in keys["colors"]["enum"]
    assert "# - name:" in poisson("schema", "output.pictures").stdout
    shown = poisson("schema", "output.pictures.colors").stdout
    assert "colors: auto" in shown and "Map of colors" in shown
    poisson.write("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n", "a.mtx")
    done = poisson("solve", "--matrix", "a.mtx", "--output", "out", "--set", "output.pictures=[{name: a}]", code=1)
    assert "output.pictures" in done.stderr
