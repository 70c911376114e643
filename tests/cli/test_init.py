"""`poisson init`: the templates, and that a newcomer can run each of them as it is."""

import csv
import shutil

import numpy as np
import pytest
import yaml
from conftest import ROOT, array, read_solution

TEMPLATES = sorted(path.stem for path in (ROOT / "configs/templates").glob("*.yaml"))


def test_the_list_names_every_template(poisson):
    lines = poisson("init").stdout.splitlines()
    assert [line.split()[0] for line in lines] == TEMPLATES
    assert {"capacitor", "heat_sink", "groundwater", "potential_flow", "manufactured", "mesh_file"} <= set(TEMPLATES)
    for line in lines:
        assert len(line.split()) > 5 and "#" not in line and len(line) <= 132, line
    assert "init" in poisson("--help").stdout and "--output" in poisson("init", "--help").stdout


@pytest.mark.parametrize("name", TEMPLATES)
def test_the_program_holds_the_file(poisson, name):
    assert poisson("init", name).stdout == (ROOT / f"configs/templates/{name}.yaml").read_text()


def run(poisson, name, *words):
    """The record of a run of the template, which `init` has written to a file."""
    shutil.copytree(ROOT / "meshes", poisson.directory / "meshes")
    poisson("init", name, "--output", "case.yaml")
    poisson("check", "case.yaml")
    poisson("run", "case.yaml", *words)
    directory = yaml.safe_load((poisson.directory / "case.yaml").read_text())["output"]["directory"]
    assert directory == f"results/{name}"
    record = poisson.record(directory)
    assert record["status"] == "converged" and record["warnings"] == []
    return record


def test_capacitor(poisson):
    quantities = run(poisson, "capacitor")["quantities"]
    assert (quantities["min"], quantities["max"]) == (0, 100)
    capacitance = 8.8541878e-12 * 0.01**2 / (0.0005 / 3.4 + 0.0005)  # of two layers in series
    assert quantities["energy"] == pytest.approx(capacitance * 100**2 / 2, rel=1e-9)


def test_heat_sink(poisson):
    run(poisson, "heat_sink")
    grid = read_solution(poisson.directory / "results/heat_sink")
    u = array(grid.GetPointData(), "u").reshape(6, 41, 41)
    weights = np.full(41, 0.001)
    weights[[0, -1]] /= 2
    carried_away = 1000 * np.einsum("y,x,yx", weights, weights, u[-1] - 25)
    assert carried_away == pytest.approx(50000 * 0.02**2, rel=1e-6)  # what flows in flows out: 20 W
    assert u.min() > 25 and u.argmax() == np.ravel_multi_index((0, 20, 20), u.shape)


def test_groundwater(poisson):
    quantities = run(poisson, "groundwater")["quantities"]
    assert quantities["integral_f"] == pytest.approx(-0.01, rel=1e-9)
    assert quantities["max"] == pytest.approx(10, abs=0.05) and 6.5 < quantities["min"] < 8
    assert quantities["min_at"][:2] == [500, 240]  # in the well


def test_potential_flow(poisson):
    record = run(poisson, "potential_flow")
    assert record["errors"]["l2"] < 1e-3
    flux = array(read_solution(poisson.directory / "results/potential_flow").GetCellData(), "flux")
    assert np.linalg.norm(flux, axis=1).max() == pytest.approx(1 + 0.5 / 1.125**3, rel=0.02)  # at the equator, in the middle of the first cells


def test_manufactured(poisson):
    assert run(poisson, "manufactured")["errors"]["l2"] < 0.002
    poisson("sweep", "case.yaml", "--output", "sweep", "--set", "output.picture=false")
    rows = list(csv.DictReader(open(poisson.directory / "sweep/sweep.csv")))
    assert len(rows) == 6
    for order in (1, 2):
        errors = [float(row["error_l2"]) for row in rows if row["problem.element.order"] == str(order)]
        rates = np.log2(np.array(errors[:-1]) / errors[1:])
        assert np.all(np.abs(rates - (order + 1)) < 0.25), rates


def test_the_mesh_of_a_template_is_written(poisson):
    poisson("init", "mesh_file", "--output", "new/case.yaml", code=3)  # in a folder that is not there: as before
    (poisson.directory / "new").mkdir()
    poisson("init", "mesh_file", "--output", "new/case.yaml")
    assert (poisson.directory / "new/meshes/ball.msh").read_text() == (ROOT / "meshes/ball.msh").read_text()
    assert "cells          2 048" in poisson("check", "new/case.yaml").stdout
    assert "meshes/ball.msh" in poisson("init", "mesh_file").stderr and poisson("init", "capacitor").stderr == ""


def test_mesh_file(poisson):
    record = run(poisson, "mesh_file")
    assert record["quantities"]["max"] == pytest.approx(1 / 6, rel=0.06)  # of the ball: (1 - r^2) / 6
    other = ROOT / "meshes/two_materials.msh"
    poisson("run", "case.yaml", "--output", "other", "--set", f"problem.mesh.file={other}")
    assert poisson.record("other")["mesh"]["cells"] == 8 * 128


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_newcomer_is_told_every_line(name):
    text = (ROOT / f"configs/templates/{name}.yaml").read_text()
    assert f"poisson init {name} --output" in text and "-div(k grad u) = f" in text
    lines = text.splitlines()
    assert max(map(len, lines)) <= 140
    leaf = [line for line in lines if ":" in line.split("#")[0] and not line.split("#")[0].rstrip().endswith(":")]
    explained = [line for line in leaf if "#" in line or lines[lines.index(line) - 1].lstrip().startswith("#")]
    assert len(explained) >= 0.6 * len(leaf), set(leaf) - set(explained)


def test_a_file_is_not_replaced_unless_asked_for(poisson):
    target = poisson.write("mine", "mine.yaml")
    error = poisson("init", "capacitor", "--output", "mine.yaml", code=1).stderr
    assert "'mine.yaml' exists" in error and "--overwrite" in error and target.read_text() == "mine"
    poisson("init", "capacitor", "--output", "mine.yaml", "--overwrite")
    assert target.read_text() == poisson("init", "capacitor").stdout
    (poisson.directory / "link.yaml").symlink_to("mine.yaml")
    for other in ("link.yaml", ".", "/dev/null"):
        assert "not a regular file" in poisson("init", "heat_sink", "--output", other, "--overwrite", code=1).stderr
    assert (poisson.directory / "link.yaml").is_symlink() and target.read_text() == poisson("init", "capacitor").stdout
    assert not list(poisson.directory.glob(".*"))


def test_a_place_that_cannot_be_written_to(poisson):
    assert "missing/case.yaml" in poisson("init", "capacitor", "--output", "missing/case.yaml", code=3).stderr


def test_wrong_words(poisson):
    error = poisson("init", "capaciter", code=1).stderr
    assert "unknown template 'capaciter'; did you mean 'capacitor'?" in error
    assert all(name in error for name in TEMPLATES)
    assert "did you mean" not in poisson("init", "zzzzzzz", code=1).stderr
    assert "found also 'heat_sink'" in poisson("init", "capacitor", "heat_sink", code=1).stderr
    assert "name of a template is needed" in poisson("init", "--output", "x.yaml", code=1).stderr
    assert "--overwrite" in poisson("init", "capacitor", "--overwrite", code=1).stderr
    assert "found ''" in poisson("init", "capacitor", "--output", "", code=1).stderr
    assert not (poisson.directory / "x.yaml").exists()
