import pytest
import yaml


def test_check_prints_the_resolved_configuration_and_estimates(cube):
    poisson, config = cube
    done = poisson("check", config, "--set", "solver.tolerance=1e-9", "--verbose")
    resolved = yaml.safe_load(done.stdout)  # estimates are comments
    assert resolved["solver"]["tolerance"] == 1e-9 and resolved["problem"]["mesh"]["cells"] == [8, 8, 8]
    assert "unknowns       729" in done.stdout and "non-zeros      15 625" in done.stdout
    for word in ("csr", "half_cds", "device memory"):
        assert word in done.stdout
    assert "half_cds (auto), predicted for c" in done.stdout and "taken" in done.stdout
    given = poisson("check", config, "--set", "matrix.format=cds").stdout
    assert "cds, predicted" in given and next(line for line in given.splitlines() if line.endswith("taken")).split()[1] == "cds"
    brief = poisson("check", config, "--threads", 1)
    assert yaml.safe_load(brief.stdout) is None and "unknowns       729" in brief.stdout
    assert poisson("check", config, "--quiet").stdout == ""
    assert "sin(" in poisson("check", config, "--quiet", "--set", "problem.source=sin(", code=1).stderr
    assert not list(poisson.directory.glob("results"))


def test_check_lists_boundaries_and_materials(poisson):
    config = poisson.write("""
        problem:
          mesh:
            cells: [4, 2, 2]
            extent: [2, 1, 1]
            boundaries: [{name: heater, where: "z > 0.99 && x < 1"}]
            regions: [{name: die, where: "x > 1"}]
          coefficient: {die: "2", default: "1"}
          boundary: [{ids: all, type: dirichlet, value: "0"}]
        """)
    rows = [line.split("  ") for line in poisson("check", config).stdout.splitlines() if line.startswith("#   ")]
    rows = [[word.strip() for word in row if word.strip() not in ("", "#")] for row in rows]
    assert ["0", "-", "4", "1", "(0, 0, 0)", "(0, 1, 1)"] in rows
    assert ["6", "heater", "4", "1", "(0, 0, 1)", "(1, 1, 1)"] in rows
    assert ["0", "-", "8", "1", "(0, 0, 0)", "(1, 1, 1)"] in rows and ["1", "die", "8", "1", "(1, 0, 0)", "(2, 1, 1)"] in rows
    # too large a mesh is not made for a table
    large = poisson("check", config, "--set", "problem.mesh.cells=[400, 200, 200]").stdout
    assert "boundary ids" in large and "up to 1 000 000 cells" in large
    assert "# note: whether mesh.regions and mesh.boundaries hold cells and faces" in large
    # what a run would refuse when it has its mesh
    assert "no cell has its centre where 'x > 9' holds" in poisson("check", config, "--set", "problem.mesh.regions=[{name: nowhere, where: 'x > 9'}]",
                                  "--set", "problem.coefficient=1", code=1).stderr


def test_check_of_a_large_mesh_tells_what_its_file_is_like(poisson):
    """Two cubes with nodes of their own, refined to more cells than check makes."""
    cubes = [(x + shift, y, z) for shift in (0, 1) for z in (0, 1) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))]
    nodes = "".join(f"{i + 1} {x} {y} {z}\n" for i, (x, y, z) in enumerate(cubes))
    cells = "".join(f"{c + 1} 5 2 1 1 {' '.join(str(8 * c + v) for v in range(1, 9))}\n" for c in range(2))
    poisson.write(f"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n16\n{nodes}$EndNodes\n$Elements\n2\n{cells}$EndElements\n", "two.msh")
    config = poisson.write("""
        problem:
          mesh: {file: two.msh}
          boundary: [{ids: all, type: dirichlet, value: "0"}]
        """)
    note = "# note: mesh file 'two.msh': 4 nodes coincide with others and were joined with them"
    for refinements in (0, 7):
        assert note in poisson("check", config, "--set", f"problem.mesh.refinements={refinements}").stdout
    assert note not in poisson("check", config, "--set", "problem.mesh.join=false").stdout


def test_check_output_is_a_configuration(cube):
    poisson, config = cube
    poisson.write(poisson("check", config, "--verbose").stdout, "again.yaml")
    poisson("run", "again.yaml", "--output", "out", "--quiet")
    assert poisson.record()["status"] == "converged"


@pytest.mark.parametrize("sets", ["problem.boundary[0].ids=[9]", "problem.source=sin(", "problem.mesh.file=missing.msh"])
def test_check_finds_what_run_would_find(cube, sets):
    poisson, config = cube
    poisson("check", config, "--set", sets, code=1)


def test_check_of_an_impossible_size(cube):
    poisson, config = cube
    poisson("check", config, "--set", "problem.mesh.cells=[1000000,1000000,1000000]", code=1, timeout=20)


SWEEP = """
problem:
  boundary: [{ids: all, type: dirichlet, value: "0"}]
matrix: {format: csr}
sweep:
  problem.mesh.cells: [[8, 8, 8], [4, 4, 4], [16, 16, 16]]
  problem.element.order: [1, 2]
"""


def test_check_of_a_sweep_counts_its_cases(poisson):
    text = poisson("check", poisson.write(SWEEP)).stdout
    lines = {line.split()[1]: line for line in text[text.index("# Sweep"):].splitlines()[1:]}
    assert "cases          6" in text
    assert " 125 unknowns" in lines["smallest"] and "case 2: cells = [4, 4, 4], order = 1" in lines["smallest"]
    assert " 35 937 unknowns" in lines["largest"] and "case 5: cells = [16, 16, 16], order = 2" in lines["largest"]
    assert all("iB" in lines[name] for name in ("smallest", "largest"))
    yaml.safe_load(text)
    assert "# Sweep" not in poisson("check", poisson.write("problem: {boundary: [{ids: all, type: dirichlet}]}")).stdout
    assert not list(poisson.directory.glob("results"))


def test_check_of_a_sweep_finds_what_its_cases_would_find(poisson):
    config = poisson.write(SWEEP.replace("[16, 16, 16]]", "[0, 4, 4]]"))
    done = poisson("check", config, code=1)
    assert "2 of 6 cases are not valid" in done.stderr and "case 4" in done.stderr and "problem.mesh.cells" in done.stderr
    config = poisson.write(SWEEP.replace("problem.element.order: [1, 2]", "problem.source: [\"1\", sin(]"))
    assert "3 of 6 cases are not valid" in poisson("check", config, code=1).stderr


def test_schema_lists_what_expressions_may_use(poisson):
    text = poisson("schema").stdout.replace("\n#", "")
    for word in ("pi", "sin", "erf", "atan2(a, b)", "min(a, b, ...)", "if(condition, a, b)", "a ? b : c"):
        assert f" {word}" in text, word


def test_schema_is_a_configuration_with_every_key(poisson):
    text = poisson("schema").stdout
    keys = yaml.safe_load(text)
    assert set(keys) >= {"problem", "matrix", "solver", "backend", "analysis", "output", "sweep"}
    assert set(keys["solver"]) >= {"method", "precision", "matrix_precision", "preconditioner", "tolerance", "max_iterations"}
    poisson.write(text, "schema.yaml")
    poisson("check", "schema.yaml")


def test_info(poisson):
    text = poisson("info").stdout
    for word in ("deal.II", "VTK", "half_cds", "threads", "copy bandwidth", "cuda"):
        assert word in text


def test_version_and_help(poisson):
    assert poisson("--version").stdout.startswith("poisson ")
    assert "run CONFIG" in poisson("--help").stdout
    assert "--set" in poisson("run", "--help").stdout


@pytest.mark.parametrize("mesh, quantity", [("{cells: [4, 4, 4]}", "mean.r"), ("{cells: [4, 4, 4]}", "flux.9"),
                                            ("{cells: [4, 4, 4], regions: [{name: a, where: x < 0.5}]}", "mean.r")])
def test_check_refuses_quantities_that_the_mesh_has_not(poisson, mesh, quantity):
    text = """
problem:
  mesh: %s
  source: "1"
  boundary: [{ids: all, type: dirichlet, value: "0"}]
output: {picture: false, quantities: {one: "2 * %s"}}
"""
    config = poisson.write(text % (mesh, quantity))
    for command in ("check", "run"):
        assert f"output.quantities.one: '{quantity}' is not known" in poisson(command, config, code=1).stderr
    poisson("check", poisson.write(text % (mesh, "mean.a" if "regions" in mesh else "flux.1"), "right.yaml"))


@pytest.mark.parametrize("sets, words", [
    (["problem.source=1/0"], ["problem.source: ", "is inf; it must be finite"]),
    (["problem.boundary[0].value=1/0"], ["problem.boundary[0].value: the Dirichlet value '1/0' is inf"]),
    (["problem.boundary[1].value=sqrt(-1)"], ["problem.boundary[1].value: the boundary value 'sqrt(-1)' is "]),
    (["problem.boundary[1].alpha=-2"], ["problem.boundary[1].alpha: alpha is -2; it must not be negative"]),
    (["problem.exact=log(0)"], ["problem.exact: the exact solution 'log(0)' is -inf"]),
])
def test_constants_that_no_mesh_makes_right_are_refused_as_a_run_does(poisson, sets, words):
    config = poisson.write("""
problem:
  mesh: {cells: [4, 4, 4]}
  boundary: [{ids: [0], type: dirichlet, value: "0"}, {ids: all, type: robin, alpha: "1", value: "0"}]
output: {picture: false, vtk: {enabled: false}}
""")
    for command in (["check"], ["run", "--output", "out", "--overwrite", "--quiet"]):
        done = poisson(command[0], config, *command[1:], *[f"--set={one}" for one in sets], code=1)
        for word in words:
            assert word in done.stderr, done.stderr
