"""Every configuration that ships is run, and is right where it says what is right."""

import csv
import shutil

import pytest
import yaml
from conftest import ROOT

CONFIGS = sorted((ROOT / "configs").glob("*.yaml"))


def test_there_are_configurations():
    assert len(CONFIGS) >= 6


@pytest.mark.parametrize("path", CONFIGS, ids=lambda p: p.stem)
def test_config(poisson, path):
    shutil.copytree(ROOT / "configs", poisson.directory / "configs")
    shutil.copytree(ROOT / "meshes", poisson.directory / "meshes")
    text = yaml.safe_load(path.read_text())
    if path.stem == "drawing" and not shutil.which("gmsh"):
        pytest.skip("there is no gmsh (Debian's package gmsh)")
    if text.get("sweep"):
        poisson("sweep", f"configs/{path.name}", "--output", "out")
        for log in (poisson.directory / "out").glob("cases/*/log.txt"):
            assert "warning" not in log.read_text()
        rows = list(csv.DictReader(open(poisson.directory / "out/sweep.csv")))
        assert rows and all(r["status"] == "converged" for r in rows)
        return
    poisson("run", f"configs/{path.name}", "--output", "out")
    record = poisson.record()
    assert record["warnings"] == []
    assert record["status"] == "converged" and record["solver"]["residual_true"] < 10 * record["solver"]["tolerance"]
    mesh = text["problem"].get("mesh", {})
    solution = "solution.vtu" if "file" in mesh or "adaptive" in mesh or mesh.get("generator", "box") != "box" else \
        "solution.vti" if text["problem"].get("element", {}).get("order", 1) == 1 else "solution.vtr"
    assert {solution, "solution.png", "residuals.png"} <= set(record["files"])
    if text["problem"].get("exact"):
        assert record["errors"]["l2"] < 0.01
