#!/usr/bin/env python3
"""Random configurations on one rank and on several: the same exit code, and the same answers.

  tests/fuzz/ranks_fuzz.py EXECUTABLE [--count 100] [--seed 1] [--ranks 2,3,5] [--jobs 2] [--keep DIR]

What a mesh and a format allow does not depend on how the mesh is cut: where one rank runs, all numbers of ranks do, and where one rank
refuses, they refuse. Errors, quantities and probes agree to what the tolerance of the solver allows. A case is made
from its seed alone; --only SEED runs one and prints its configuration. The meshes are small, so that blocks are thin, pieces few, and
ranks without cells common. tests/cli/test_rank_random.py runs some of them with every build, .ci/full many.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOLERANCE = 1e-10  # of the solver
AGREEMENT = 1e-6   # relative, of what is compared


def draw_box(random, order):
    """Lines of a mesh, and the conditions that fit it."""
    n = random.choice([3, 4, 6, 9]) if order == 1 else 4
    cells = [random.randint(1, n) for _ in range(3)]
    mesh = {"cells": cells, "extent": [1, 1.5, 0.8]}
    if random.random() < 0.2:
        mesh["growth"] = [1.2, 1, 0.9]
    if random.random() < 0.2:
        mesh["refinements"] = 1
    return mesh


def draw_other(random, order):
    mesh = dict(random.choice([{"file": str(ROOT / "meshes/ball.msh")}, {"file": str(ROOT / "meshes/two_materials.msh")},
                               {"generator": "hyper_ball"}, {"generator": "hyper_shell", "arguments": "0,0,0 : 0.5 : 1 : 6 : true"}]))
    if "ball.msh" not in mesh.get("file", ""):
        mesh["refinements"] = random.choice([0, 1, 2, 3] if order == 1 else [0, 1, 2] if order == 2 else [0, 1])
    return mesh


def draw(seed):
    """A configuration as a dictionary, which is YAML as JSON."""
    r = random.Random(seed)
    order = r.choice([1, 1, 1, 2, 2, 3])
    is_box = r.random() < 0.6
    mesh = (draw_box if is_box else draw_other)(r, order)
    two_materials = "two_materials" in mesh.get("file", "")
    problem = {"mesh": mesh, "element": {"order": order}, "exact": "x*y + z"}
    has_core = r.random() < 0.2 and not two_materials
    if has_core:
        mesh["regions"] = [{"name": "core", "where": "x > 0.3"}]
    has_top = r.random() < 0.2
    if has_top:
        mesh["boundaries"] = [{"name": "top", "where": "z > 0.31"}]
    if two_materials and r.random() < 0.7:
        problem["coefficient"] = {"1": "1", "2": "20 + x"}
    elif has_core and r.random() < 0.7:
        problem["coefficient"] = {"0": "1", "core": r.choice(["5", "50 + y"])}
    else:
        problem["coefficient"] = r.choice(["1", "2", "1 + x*x + 0.5*y", ["1", "2 + y", "3"], ["2", "1", "1", "0.3", "0", "0"]])
    problem["source"] = r.choice(["1", "sin(3*x) + y*z", "0"])
    if has_core and r.random() < 0.3:
        problem["source"] = {"core": "1", "default": "x"}
    if r.random() < 0.15:
        problem["point_sources"] = [{"at": [0.41, 0.21, 0.33], "value": 2}]
    robin = {"ids": "all", "type": "robin", "alpha": "2 + z", "value": "1 - x"}
    dirichlet = {"ids": "all", "type": "dirichlet", "value": "x + 2*y - z"}
    conditions = [[dirichlet], [robin]]
    if has_top:
        conditions += [[{"names": ["top"], "type": "dirichlet", "value": "x"}, robin]] * 3
    elif is_box:
        conditions += [[{"ids": [0], **{k: v for k, v in robin.items() if k != "ids"}}, {"ids": [3, 4], "type": "neumann", "value": "x - z"}, dirichlet],
                       [{"ids": [0, 1], "type": "periodic", "value": "1"}, dirichlet], [{"ids": [2, 3], "type": "periodic"}, robin]]
        if problem["source"] == "0" and "point_sources" not in problem:
            conditions.append([{"ids": "all", "type": "neumann", "value": "0"}])
    problem["boundary"] = r.choice(conditions)
    matrix_format = r.choice(["auto", "csr", "half_cds", "half_cds", "matrix_free", "matrix_free", "matrix_free", "cds", "sell_c_sigma", "crs_t", "cod_sell"])
    solver = {"tolerance": TOLERANCE, "preconditioner": r.choice(["auto", "none", "jacobi", "multigrid", "multigrid", "ic0", "ilu0"]),
              "method": r.choice(["cg", "cg", "cg", "bicgstab"])}
    if solver["preconditioner"] == "ilu0":
        solver["method"] = "bicgstab"
    if r.random() < 0.1:
        solver["precision"] = r.choice(["refined", "double_double"])
    if r.random() < 0.15:
        solver["preconditioner"], solver["initial"] = "multigrid", "nested"
        if is_box and order == 1 and "growth" not in mesh and r.random() < 0.5:
            solver["tolerance"] = "discretization"
    output = {"picture": False, "vtk": {"enabled": False}, "probes": [{"name": "near", "at": [0.4, 0.2, 0.3]}]}
    return {"backend": "cpu", "problem": problem, "matrix": {"format": matrix_format}, "solver": solver, "output": output}


def answers(record):
    """What must agree: names to numbers."""
    found = {f"errors.{name}": value for name, value in record.get("errors", {}).items()}
    found.update({f"quantities.{name}": value for name, value in record.get("quantities", {}).items() if isinstance(value, (int, float))})
    return found


class Runs:
    def __init__(self, executable, ranks, folder):
        self.executable, self.ranks, self.folder = executable, ranks, pathlib.Path(folder)

    def run(self, config, n, output):
        words = [self.executable, "run", str(config), "--output", str(output), "--quiet", "--threads", "1"]
        if n > 1:
            words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(n), *words]
        done = subprocess.run(words, text=True, capture_output=True, stdin=subprocess.DEVNULL, timeout=300,
                              env=os.environ | {"OMP_WAIT_POLICY": "passive", "OMPI_MCA_pml": "ob1"})
        record = output / "result.json"
        return done.returncode, done.stderr, json.loads(record.read_text()) if record.exists() else {}

    def wrong(self, seed):
        """What is wrong with a case, as sentences; none: all agrees. And whether one rank took it."""
        folder = self.folder / str(seed)
        folder.mkdir()
        config = folder / "case.yaml"
        config.write_text(json.dumps(draw(seed), indent=1))
        code, stderr, one = self.run(config, 1, folder / "1")
        found = [] if code in (0, 1, 2) else [f"one rank ends with {code}: {stderr.strip()[-300:]}"]
        for n in self.ranks:
            code_n, stderr_n, other = self.run(config, n, folder / str(n))
            if code_n != code:
                found.append(f"exit code {code_n} on {n} ranks, {code} on one: {(stderr_n if code_n else stderr).strip()[:400]}")
            elif code == 0:
                found += [f"{text} on {n} ranks" for text in differences(one, other)]
        return found, code == 0


def differences(one, other):
    tolerance = AGREEMENT
    if one["solver"].get("tolerance", 0) > 10 * TOLERANCE or one["solver"].get("discretization_error"):
        tolerance = 20 * max(one["solver"]["tolerance"], other["solver"]["tolerance"], AGREEMENT)
    if one["dofs"] != other["dofs"] or one["nnz"] != other["nnz"]:
        yield f"unknowns and non-zeros {other['dofs']}, {other['nnz']} instead of {one['dofs']}, {one['nnz']}"
    first, second = answers(one), answers(other)
    if first.keys() != second.keys():
        yield f"other answers: {sorted(first.keys() ^ second.keys())}"
    scale = max([abs(value) for value in first.values() if math.isfinite(value)], default=1)
    for name in first.keys() & second.keys():
        if not abs(first[name] - second[name]) <= tolerance * (abs(first[name]) + scale):
            yield f"{name} = {second[name]} instead of {first[name]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("executable")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--ranks", default="2,3,5")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    if options.only is not None:
        print(json.dumps(draw(options.only), indent=1))
        seeds = [options.only]
    folder = tempfile.mkdtemp(prefix="ranks_fuzz_")
    runs = Runs(options.executable, [int(n) for n in options.ranks.split(",")], folder)
    n_wrong = n_taken = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for seed, (found, taken) in zip(seeds, pool.map(runs.wrong, seeds)):
            n_taken += taken
            n_wrong += bool(found)
            for text in found:
                print(f"seed {seed}: {text}", flush=True)
    shutil.rmtree(folder)
    print(f"{len(seeds)} configurations, of which one rank takes {n_taken}; {n_wrong} differ")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
