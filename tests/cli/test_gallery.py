"""The problems of the gallery: each has a known answer, and its configuration computes the difference from it."""

import re
import shutil

import pytest
from conftest import ROOT

# The largest |difference|: what the mesh, or the textbook's assumptions, leave.
DIFFERENCES = {"coaxial_capacitor": 1e-4, "plate_capacitor": 1e-12, "sphere_in_field": 1e-3, "heat_sink": 0.01, "cooling_fin": 3e-4, "well": 1e-3,
               "l_domain": 3e-3, "torus": 1e-4, "resistor_network": 1e-7, "spheres": 0.02, "foam": 3e-3, "busbar": 3e-4}


def test_every_configuration_has_its_test_and_its_page():
    page = (ROOT / "docs/gallery.md").read_text()
    names = {path.stem for path in (ROOT / "configs/gallery").glob("*.yaml")}
    assert names == set(DIFFERENCES)
    for name in names:
        assert f"images/gallery/{name}.png" in page and f"configs/gallery/{name}.yaml" in page
        assert (ROOT / f"docs/images/gallery/{name}.png").exists()


@pytest.mark.parametrize("name", DIFFERENCES)
def test_the_answer_is_the_known_one(poisson, name):
    shutil.copytree(ROOT / "configs/gallery", poisson.directory / "configs/gallery")
    poisson("run", f"configs/gallery/{name}.yaml", "--output", "out", "--quiet")
    record = poisson.record()
    q = record["quantities"]
    assert record["status"] == "converged" and record["warnings"] == [] and "solution.png" in record["files"]
    assert q["difference"] == pytest.approx(next(v for k, v in reversed(q.items()) if k not in ("difference", "reference")) / q["reference"] - 1)
    assert abs(q["difference"]) <= DIFFERENCES[name]
    # The page says what the program says.
    page = (ROOT / "docs/gallery.md").read_text()
    said = re.search(rf"configs/gallery/{name}\.yaml\).*?\| ([-−.0-9e]+) \|", page, re.S)[1].replace("−", "-")
    assert abs(float(said)) <= 2 * abs(q["difference"]) + 1e-8 and abs(q["difference"]) <= 2 * abs(float(said)) + 1e-8
