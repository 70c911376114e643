"""docs/result_json.md names every key of every record, and no other."""

import json
import re
import resource

import numpy as np
import pytest
from conftest import CUBE, ROOT

FORMATS = CUBE + "output: {picture: false, probes: [{name: tip, at: [0.5, 0.5, 0.5]}], quantities: {mine: 2 * probe.tip}}\n"


def documented():
    """Title of a section -> {key: whether it is there on every machine}."""
    sections, title = {}, ""
    for line in (ROOT / "docs/result_json.md").read_text().splitlines():
        if line.startswith("## "):
            title = line[3:]
            sections[title] = {}
        elif line.startswith("| `"):
            cell = line.split("|")[1]
            for key in re.findall(r"`([^`]+)`", cell):
                assert key not in sections[title], f"{title}: {key} stands there twice"
                sections[title][key] = "†" not in cell
    return sections


DOCUMENTED = documented()


def general(quantity):
    """The name of a quantity in docs/result_json.md."""
    name = re.sub(r"^probe\.\w+", "probe.NAME", re.sub(r"\.\d+$", ".ID", quantity))
    return name if "." in name or f"quantities.{name}" in DOCUMENTED["Run"] else "OWN"


def keys(value, path="", named=()):
    """Paths of all leaves: a.b, a[].b; what the paths in `named` hold has names of its own, which count as '*'."""
    if isinstance(value, dict):
        for name, inside in value.items():
            yield from keys(inside, (path + "." if path else "") + ("*" if path in named else general(name) if path == "quantities" else name), named)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for item in value:
            yield from keys(item, path + "[]", named)
    else:
        yield path


def compare(records, sections, named=(), without=()):
    """The records have the keys of the sections, all of them somewhere."""
    known = {key: everywhere for title in sections for key, everywhere in DOCUMENTED[title].items() if key not in without}
    # An empty list has no entries to show their keys.
    lists = {key.split("[]")[0] for title in sections for key in DOCUMENTED[title] if "[]" in key}
    found = {key for record in records for key in keys(record, named=named)}
    assert found - set(known) - lists == set(), "not in docs/result_json.md"
    assert {key for key, everywhere in known.items() if everywhere} - found == set(), "in docs/result_json.md only"


ANALYSIS = {"analysis[]"}


@pytest.fixture
def small():
    """Every write beyond 64 KiB fails."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))


def test_run_and_its_analysis(poisson, small):
    config = poisson.write(FORMATS)
    poisson("run", config, "--output", "a", "--set", "solver.preconditioner=ic0", "--set", "solver.precision=mixed", "--set", "solver.tolerance=1e-25",
            "--set", "analysis.svd=[{of: operator}, {of: operator, max_dense: 50}, {of: field, points: 9}, {of: field, sample: box, points: 9}, {of: snapshots}]")
    poisson("run", config, "--output", "b", "--set", "problem.boundary=[{ids: all, type: neumann, value: '0'}]", "--set",
            "problem.exact=null", "--set", "problem.source='cos(pi*x)'", "--set", "problem.mesh.cells=[4, 4, 4]", "--set",
            "analysis.svd=[{of: operator}, {of: field, at: 9}]", code=1)
    poisson("run", config, "--output", "c", "--set", "problem.mesh.cells=[24, 24, 24]", "--set", "output.vtk.compression=none", code=3, preexec_fn=small)
    records = [poisson.record(name) for name in "abc"]
    entries = [entry for record in records for entry in record.pop("analysis", [])]
    compare(records, ["Run"], without={*ANALYSIS, "solver.extended_from"})  # which a system below has

    def of(kind):
        return [entry for entry in entries if entry["of"] == kind]

    # What is of every entry is compared over all of them.
    common = set(DOCUMENTED["Analysis"])
    assert common <= {key for entry in entries for key in entry}
    for entry in entries:
        for key in common - {"of"}:
            entry.pop(key, None)
    for kind, title in (("operator", "Analysis of an operator"), ("field", "Analysis of a field")):
        merged = {**DOCUMENTED["Decomposition"], **DOCUMENTED[title], "of": True}
        found = {key for entry in of(kind) for key in keys(entry)}
        assert found == set(merged), kind


def test_adaptive(poisson):
    config = poisson.write("""
problem:
  mesh: {cells: [2, 2, 2], adaptive: {tolerance: 30%, max_cycles: 2}}
  boundary: [{ids: all, type: dirichlet, value: "exp(x) * sin(y)"}]
  exact: "exp(x) * sin(y)"
output: {picture: false, report: false, vtk: {enabled: false}}
""")
    poisson("run", config, "--output", "a")
    poisson("run", config, "--output", "b", "--set", "problem.mesh.adaptive.target=integral_u", "--set", "problem.exact=null")
    poisson("run", config, "--output", "c", "--set", "problem.mesh.adaptive.orders=auto")
    records = [{key: record[key] for key in ("adaptive", "errors_of")} for record in map(poisson.record, "abc")]
    compare(records, ["Adaptive refinement"], named=("errors_of",))


def test_effective(poisson):
    config = poisson.write("""
problem:
  mesh: {cells: [4, 4, 4], regions: [{name: rock, where: "y < 0.5"}]}
  coefficient: {rock: "3", default: "1"}
output: {picture: false, report: false, vtk: {enabled: false}}
""")
    poisson("run", config, "--output", "a", "--set", "analysis.effective.conditions=both", "--set", "analysis.effective.sub_volumes={size: 2, count: 2}")
    poisson("run", config, "--output", "b", "--set", "analysis.effective.conditions=fixed", "--set", "problem.coefficient={rock: void, default: 1}",
            "--set", "problem.mesh.regions[0].where=y > 0.3 && y < 0.7")
    records = [{"effective": record["effective"], "quantities": {name: value for name, value in record["quantities"].items() if name.startswith("effective.")}}
               for record in map(poisson.record, "ab")]
    compare(records, ["Effective tensor"])


def test_solve(poisson, small):
    n, row = 120, [924, -792, 495, -220, 66, -12, 1]  # second differences to the sixth power, which refinement in double cannot solve
    entries = [f"{i} {j} {row[abs(i - j)]}\n" for i in range(1, n + 1) for j in range(max(1, i - 6), min(n, i + 6) + 1)]
    poisson.write(f"%%MatrixMarket matrix coordinate real general\n{n} {n} {len(entries)}\n" + "".join(entries), "a.mtx")
    poisson("solve", "--matrix", "a.mtx", "--output", "out", "--set", "solver.precision=mixed", "--set", "solver.tolerance=1e-8", "--set",
            "solver.max_iterations=100000")
    poisson("solve", "--matrix", "a.mtx", "--output", "ilu0", "--set", "solver.preconditioner=ilu0", "--set", "solver.tolerance=1e-1", "--set",
            "solver.method=bicgstab", "--set", "solver.max_iterations=3", code=(0, 2))
    poisson.write("%%MatrixMarket matrix coordinate real symmetric\n9000 9000 9000\n" + "".join(f"{i} {i} {i}.5\n" for i in range(1, 9001)), "b.mtx")
    poisson("solve", "--matrix", "b.mtx", "--output", "large", code=3, preexec_fn=small, *["--set", "solver.preconditioner=jacobi"])
    poisson.write("%%MatrixMarket matrix coordinate real symmetric\n9 9 17\n" + "".join(f"{i} {i} 2\n" for i in range(1, 10))
                  + "".join(f"{i + 1} {i} -1\n" for i in range(1, 9)), "c.mtx")
    poisson("solve", "--matrix", "c.mtx", "--output", "multigrid", "--set", "solver.preconditioner=multigrid")
    absent = {"configuration", "order", "compatibility_defect", "timing.mesh", "timing.assembly", "timing.reconstruct", "timing.analysis", "analysis[]",
              *(key for key in DOCUMENTED["Run"] if key.startswith(("mesh.", "errors.", "quantities.")))}
    compare([poisson.record(name) for name in ("out", "ilu0", "large", "multigrid")], ["Run", "Solve"], without=absent)


def test_svd(poisson, small):
    poisson("svd", "--random", 80, "--vectors", "--output", "out", code=3, preexec_fn=small)
    compare([poisson.record()], ["Decomposition", "Svd"])


def test_one_schema_for_decompositions(poisson):
    """The same matrix through the command and through an analysis: the same keys and, to rounding, the same figures."""
    poisson("run", poisson.write(FORMATS), "--output", "run", "--set", "problem.mesh.cells=[4, 4, 4]", "--set", "analysis.svd=[{of: operator}]")
    entry = poisson.record("run")["analysis"][0]
    # 27 free nodes of the 27-point matrix on a box of 1/4: a product of 1D matrices, written out here.
    k1 = 4 * (2 * np.eye(3) - np.eye(3, k=1) - np.eye(3, k=-1))
    m1 = (4 * np.eye(3) + np.eye(3, k=1) + np.eye(3, k=-1)) / 24
    a = sum(np.kron(np.kron(*(k1 if d == i else m1 for d in (0, 1))), k1 if i == 2 else m1) for i in range(3))
    poisson.write("%%MatrixMarket matrix array real general\n27 27\n" + "".join(f"{float(x)!r}\n" for x in a.T.flat), "a.mtx")
    poisson("svd", "--matrix", "a.mtx", "--vectors", "--output", "svd")
    record = poisson.record("svd")
    for key in {key.split(".")[0] for key in DOCUMENTED["Decomposition"]}:
        assert type(record[key]) is type(entry[key]), key
    for key in ("largest", "smallest", "condition", "rank_threshold"):
        assert record[key] == pytest.approx(entry[key], rel=1e-10)
    assert record["rank"] == entry["rank"] == 27 and record["matrix"]["n_rows"] == entry["matrix"]["n_rows"] == 27


def test_sweep(poisson):
    config = poisson.write(FORMATS.replace("exact:", "# exact:") + """
analysis: {svd: [{of: snapshots, modes: 2}]}
sweep: {problem.source: ["1", "2", "x"]}
""")
    poisson("sweep", config, "--output", "out", "--set", "problem.mesh.cells=[4, 4, 4]")
    orders = poisson.write(CUBE + "output: {picture: false}\nsweep: {problem.mesh.cells: [[2, 2, 2], [4, 4, 4], [0, 1, 1]]}\n", "orders.yaml")
    poisson("sweep", orders, "--output", "orders", code=1)
    numbers = poisson.write(FORMATS.replace("exact:", "# exact:") + """
analysis: {svd: [{of: snapshots, modes: 2}]}
sweep: {problem.coefficient: [1, 2, 3]}
""", "numbers.yaml")
    poisson("sweep", numbers, "--output", "numbers", "--set", "problem.mesh.cells=[4, 4, 4]")
    sample = poisson.write(FORMATS.replace("exact:", "# exact:") + """
parameters: {k: 1}
sweep: {sample: {count: 4, indices: true, parameters: {k: {uniform: [1, 2]}}}, when: k < 3}
""", "sample.yaml")
    settings = ("--set", "problem.coefficient=k", "--set", "problem.mesh.cells=[2, 2, 2]")
    poisson("sweep", sample, "--output", "sample", *settings)
    poisson("sweep", sample, "--output", "samples", *settings, "--set", "sweep.problem.element.order=[1, 2]")
    until = ("--set", "sweep={problem.mesh.cells: [2, 4, 8], problem.element.order: [1, 2], until: {quantity: mean, relative: 1e-3}}")
    poisson("sweep", orders, "--output", "until", *until)
    poisson("sweep", orders, "--output", "greedy", "--set", "sweep={problem.source: [1, x, y], greedy: {tolerance: 1e-3}}")
    names = ("out", "orders", "numbers", "until", "greedy", "sample", "samples")
    records = [json.loads((poisson.directory / name / "sweep.json").read_text()) for name in names]
    for group in records[-1]["statistics_of"]:
        assert set(group["statistics"]["mine"]) == set(records[-2]["statistics"]["mine"])
        group["statistics"] = {"mine": None}
    entries = [entry for record in records for entry in record.pop("analysis", [])]
    for record in records:
        for case in record["cases"]:
            case["result"] = None
    failed = {"files_failed[].file", "files_failed[].reason", "extrapolation[].note", "until.studies[].note"}  # seen in a run; of meshes that are not similar
    of_statistics = ("correlation", "rank_correlation", "sobol.first", "sobol.total", "sobol.first_half_width", "sobol.total_half_width")
    named = ("axes", "cases[].parameters", "cases[].observed_orders", "extrapolation[].parameters", "extrapolation[].quantities", "sample.parameters", "until.studies[].parameters",
             "statistics", *(f"statistics.*.{name}" for name in of_statistics), "statistics_of[].parameters", "statistics_of[].statistics")
    compare(records, ["Sweep"], named=named, without={*ANALYSIS, *failed})
    found = {key for entry in entries for key in keys(entry)}
    assert found == {*DOCUMENTED["Decomposition"], *DOCUMENTED["Analysis of snapshots"], "of"}
    model = json.loads((poisson.directory / "numbers/svd0_snapshots_model.json").read_text())
    assert set(keys(model)) == set(DOCUMENTED["Model of a sweep"])
    prediction = json.loads(poisson("predict", "numbers", "--set", "problem.coefficient=2.5", "--json").stdout)
    assert set(keys(prediction, named=("at", "errors_of", "quantities"))) == set(DOCUMENTED["Prediction"])


BENCHES = {
    "spmv": [["--nodes", "9", "--random", "--rows", "100"]],
    "convert": [["--nodes", "9", "--random", "--rows", "100"]],
    "solve": [["--nodes", "9", "--format", "auto,csr,sell_c_sigma", "--preconditioner", "none,ilu0", "--max-iterations", "5"],
              ["--nodes", "9", "--format", "half_cds,csr", "--method", "cg", "--matrix", "u.mtx"]],
    "svd": [["--size", "30", "--peer", "gesdd,gesvd"]],
}


@pytest.mark.parametrize("kind", BENCHES)
def test_bench(poisson, kind):
    poisson.write("%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 2\n2 2 2\n1 2 -1\n", "u.mtx")
    records = []
    for words in BENCHES[kind]:
        poisson("bench", kind, *words, "--backend", "cpu", "--json", "out.json", "--quiet")
        records.append(json.loads((poisson.directory / "out.json").read_text()))
    titles = ["Bench", f"Bench {kind}"]
    known = {key: everywhere for title in titles for key, everywhere in DOCUMENTED[title].items()}
    wild = re.compile(r"\.(sequential|host|device)\.")
    found = {wild.sub(".*.", key) for record in records for key in keys(record)}
    lists = {"matrices[].results", "matrices[].peers", "matrices[].left_out"}
    assert found - set(known) - lists == set(), "not in docs/result_json.md"
    assert {key for key, everywhere in known.items() if everywhere} - found - lists == set(), "in docs/result_json.md only"
