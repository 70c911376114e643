"""The layer rules of docs/architecture.md, read off the includes."""

import re

from conftest import ROOT

LAYERS = {"app": {"app", "assembly", "output", "gpu"}, "assembly": {"assembly", "gpu/core"}, "output": {"output", "gpu/core"}, "gpu": {"gpu"}}
OWNERS = {r"deal\.II/": {"assembly"}, r"vtk": {"output"}, r"yaml-cpp/": {"app"}, r"boost/program_options": {"app"},
          r"(cuda|cublas|cusparse|cusolver|cooperative_groups|cub/)": {"gpu/kernels/cuda"}, r"cairo": {"output"}}


def includes():
    found = []
    for layer in LAYERS:
        for path in (ROOT / layer).rglob("*"):
            if path.suffix in (".hpp", ".cpp", ".cu", ".cuh"):
                name = path.relative_to(ROOT).as_posix()
                for line in path.read_text().splitlines():
                    if m := re.match(r'\s*#\s*include\s*([<"])([^>"]+)[>"]', line):
                        found.append((name, m[1], m[2]))
    return found


def test_project_includes_follow_the_layers():
    bad = []
    for name, kind, target in includes():
        layer = name.split("/")[0]
        if kind == '"' and not any(target.startswith(allowed + "/") for allowed in LAYERS[layer]):
            bad.append(f"{name} includes {target}")
    assert not bad, bad


def test_libraries_stay_with_their_owners():
    bad = []
    for name, kind, target in includes():
        for pattern, owners in OWNERS.items():
            if kind == "<" and re.match(pattern, target) and not any(name.startswith(owner + "/") for owner in owners):
                bad.append(f"{name} includes {target}")
    assert not bad, bad


def test_no_cuda_switches_outside_core():
    bad = []
    for layer in LAYERS:
        for path in (ROOT / layer).rglob("*"):
            name = path.relative_to(ROOT).as_posix()
            if path.suffix in (".hpp", ".cpp") and not name.startswith("gpu/core/"):
                bad += [name for line in path.read_text().splitlines() if re.match(r"\s*#\s*(if|elif).*CUDA", line)]
    assert not bad, bad


def test_the_rules_see_something():
    assert any(t.startswith("deal.II/") for _, _, t in includes()) and any(t.startswith("vtk") for _, _, t in includes())
