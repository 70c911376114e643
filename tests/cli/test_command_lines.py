"""Every command line of the documents: it is run as it stands, or NOT_RUN tells why not. What a page says is printed is compared."""

import gzip
import os
import pathlib
import re
import subprocess

import pytest

from conftest import EXECUTABLE, ROOT
from ranks import LIBRARY, MPIRUN
from test_docs import DOCUMENTS, FENCED, NAMED, blocks, name_of, prose

PROGRAM = re.compile(r"(?:\$ )?(?:mpirun|poisson|tools/\w+|cmake|apt|docker|g\+\+|sbatch|build/\S+|cp|\w+=\$\() ?")
SYNOPSIS = re.compile(r"\[\.|\b(?:CONFIG|COMMAND|RESULTS|KEY|FILE|DIR|NAME|SCRIPT|R)\b|\w\|\w|\.\.\.")  # test_docs.py looks whether its options exist
NOT_RUN = {  # what a test of documents cannot do, and where it is done
    r"tools/(demo|test|build|make_packages)\b": "builds the program",
    r"cmake (-S|--build)|build/": "builds gpu/ alone: .ci/run device",
    r"cmake --install|g\+\+ mine": "tests/cli/test_install.py, which has a build folder",
    r"apt install": "needs packages, and root",
    r"docker ": "builds the program in a container: tests/cli/test_container.py reads its files",
    r"cp -r build/default|tools/compare_builds": "tests/cli/test_compare_builds.py",
    r"sbatch|array=\$\(sbatch|cases=": "needs Slurm: tests/cli/test_cluster.py runs the script",
    r"mpirun --mca": "an option beside a sentence",
    r"tools/make_site": "tests/cli/test_site.py",
    r"poisson bench solve --backend cpu --nodes 64,128|poisson bench spmv --backend cpu --nodes 128": "takes minutes: docs/performance.md has what it printed",
}
SMALLER = {"--nodes 256": "--nodes 10", "--nodes 128": "--nodes 10", "--size 512,1024": "--size 20,30"}  # sizes for measurements
WITHOUT_ARGUMENTS = {"poisson init", "poisson schema", "poisson info", "poisson --version", "poisson --help"}  # others are names of commands in a sentence


def lines_of(path):
    """(command, what is said to be printed or None), in order. Two spaces begin a comment; a block with `$ ` has output, too."""
    for _, text in FENCED.findall(path.read_text(encoding="utf-8")):
        said = None
        for line in text.splitlines():
            if line.startswith("$ ") or PROGRAM.match(line) and "$ " not in text:
                said = [] if line.startswith("$ ") else None
                yield re.sub(r"  .*", "", line.removeprefix("$ ")), said
            elif said is not None:
                said.append(line)
    for code in re.findall(r"`((?:mpirun|poisson|cmake|tools/\w+) [^`]+)`", prose(path)):
        code = code.replace("\n", " ")
        if len(code.split()) > 3 or re.search(r"\.(?:yaml|mtx)|schema \w", code) or code in WITHOUT_ARGUMENTS:
            yield code, None


COMMANDS = {path: list(lines_of(path)) for path in DOCUMENTS if path.name != "CHANGELOG.md"}
RUN = {path: [(command, said) for command, said in commands if not SYNOPSIS.search(command) and not any(re.match(reason, command) for reason in NOT_RUN)]
       for path, commands in COMMANDS.items()}
PAGES = [path for path, commands in RUN.items() if commands]


def difference(said, printed):
    """The first line of a page that is not printed, or None; `...` stands for lines, or for the rest of one."""
    printed = [" ".join(line.split()) for line in printed]
    at = 0
    for line in (" ".join(line.split()) for line in said):
        if line == "...":
            continue
        begins = line.endswith(" ...")
        found = [place for place in range(at, len(printed)) if (printed[place].startswith(line[:-4]) if begins else printed[place] == line)]
        if not found:
            return f"no line '{line}' in\n" + "\n".join(printed[at:])
        at = found[0] + 1
    return None


@pytest.fixture
def folder(tmp_path, request):
    """The files that the commands read, where no page writes them itself."""
    readme = ROOT / "README.md"
    (tmp_path / "cube.yaml").write_text(blocks(readme, "yaml")[0])
    cooled = blocks(ROOT / "docs/usage/sweeps.md", "yaml")[0]
    if "singular_values" in request.node.name:
        cooled = cooled.partition("  problem.mesh.refinements")[0] + "analysis: {svd: [{of: snapshots, modes: 8}]}\n"
    (tmp_path / "cooled.yaml").write_text(cooled)
    plate = blocks(ROOT / "docs/usage/greedy_sweeps.md", "yaml")[0]
    (tmp_path / "plate.yaml").write_text(plate.replace("[32, 32, 32]", "[8, 8, 8]").replace("count: 20", "count: 5"))
    n = 40
    matrices = {}
    for name, upper in (("A.mtx", -2), ("memplus.mtx", -1)):  # the latter is not symmetric
        entries = [f"{i} {j} {4 if i == j else upper if j > i else -2}" for i in range(1, n + 1) for j in (i - 1, i, i + 1) if 1 <= j <= n]
        matrices[name] = f"%%MatrixMarket matrix coordinate real general\n{n} {n} {len(entries)}\n" + "\n".join(entries) + "\n"
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(matrices[name].encode()))
    if "systems" not in request.node.name:  # which writes it
        (tmp_path / "A.mtx").write_text(matrices["A.mtx"])
    (tmp_path / "b.mtx").write_text(f"%%MatrixMarket matrix array real general\n{n} 1\n" + "1\n" * n)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/poisson").symlink_to(pathlib.Path(EXECUTABLE).resolve())
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    return tmp_path


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_command_lines_of_a_page(folder, path):
    for name, text in NAMED.findall(path.read_text(encoding="utf-8")):
        (folder / name).write_text(text)
    env = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                        "OMPI_MCA_rmaps_base_oversubscribe": "1",}
    for command, said in RUN[path]:
        command = command.replace("ls ", "ls -C -w 200 ") if command.startswith("ls ") else command
        if command.startswith("mpirun") and (MPIRUN is None or not LIBRARY.exists()):
            continue
        for size, small in SMALLER.items():
            command = command.replace(size, small)
        if said is None and re.match(r"(?:mpirun -n \d+ )?poisson (?:run|sweep|solve|svd .*--output) ", command) and not re.search(r"--overwrite|poisson run .*--resume", command):
            command = command.partition(" #")[0] + " --overwrite"  # examples of a page by themselves, one after another
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=300)
        refused = said is not None and any(line.startswith("poisson: error: ") for line in said)
        assert done.returncode == (1 if refused else 0), f"{command}\n{done.stdout}{done.stderr}"
        if said is not None:
            different = difference(said, (done.stdout + done.stderr).splitlines())
            assert different is None, f"{command}\n{different}"


def test_what_is_not_run_is_known():
    everything = [(name_of(path), command) for path, commands in COMMANDS.items() for command, _ in commands]
    assert sum(len(commands) for commands in RUN.values()) > 30
    for reason in NOT_RUN:
        assert any(re.match(reason, command) for _, command in everything), f"no document has {reason}"
