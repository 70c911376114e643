"""docs/security.md: what a configuration of a stranger can read, write and start, and what its texts do to pages."""

import html.parser
import os
import re
import shutil
import subprocess

import pytest
from conftest import CUBE, EXECUTABLE, ROOT

NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg onload=alert(3)>&lt;b&gt;"


@pytest.fixture
def home(poisson, monkeypatch):
    """A world in which every place that a program likes to write to is watched."""
    for name in ("home", "tmp", "work"):
        (poisson.directory / name).mkdir()
    poisson.directory /= "work"
    monkeypatch.setenv("HOME", str(poisson.directory.parent / "home"))
    monkeypatch.setenv("TMPDIR", str(poisson.directory.parent / "tmp"))
    return poisson


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def calls(poisson, *words):
    """The system calls of a run that open files, change folders and start programs."""
    if shutil.which("strace") is None:
        pytest.skip("no strace")
    log = poisson.directory.parent / "calls"
    done = subprocess.run(["strace", "-f", "-qq", "-s", "4096", "-e", "trace=open,openat,creat,mkdir,mkdirat,rename,renameat,renameat2,unlink,unlinkat,link,linkat,symlink,symlinkat,"
                           "execve,execveat,connect,chmod,truncate", "-o", log, *poisson.command(*words)], cwd=poisson.directory, capture_output=True, text=True, timeout=300)
    if "ptrace" in done.stderr.lower():
        pytest.skip("this machine does not let programs be traced: " + done.stderr.strip())
    assert done.returncode == 0, done.stderr
    return [re.sub(r"^\d+ +", "", line) for line in log.read_text().splitlines() if not re.search(r" = -1 |resumed>|^\d+ +[+-]", line)]


MEMORY = ("/dev/", "/proc/", "/sys/")


def written(lines, folder):
    """Paths that these calls have written to."""
    found = set()
    for line in lines:
        name, _, rest = line.partition("(")
        if name in ("open", "openat", "creat"):
            if not re.search(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC", rest) and name != "creat":
                continue
        elif name in ("execve", "execveat", "connect"):
            continue
        paths = re.findall(r'"([^"]*)"', rest)
        found |= {os.path.normpath(os.path.join(folder, path)) for path in paths}
    return found


@pytest.mark.parametrize("words", [["run", "case.yaml"], ["sweep", "case.yaml", "--jobs", "2", "--set", "sweep={parameters.k: [1, 2]}"]], ids=["run", "sweep"])
def test_it_writes_below_its_directory_and_starts_nothing(home, words):
    home.write(CUBE + "parameters: {k: 1}\nbackend: cpu\noutput: {lines: [{name: axis, from: [0, 0, 0], to: [k, 1, 1]}]}\nanalysis: {svd: [{of: field, points: 5}]}\n")
    lines = calls(home, *words, "--output", "out")
    folder = str(home.directory)
    # Tests may themselves have their folders in memory, below /dev.
    paths = {path for path in written(lines, folder) if path.startswith(str(home.directory.parent)) or not path.startswith(MEMORY)}
    # Names beside a folder are relative to it where a call has its descriptor, and then have no place.
    outside = {path for path in paths if not path.startswith(folder + "/out")}
    made = {os.path.basename(path) for path in paths}
    assert outside <= {os.path.join(folder, name) for name in made} and len(paths) > 5
    assert sorted(os.listdir(folder)) == ["case.yaml", "out"]
    started = [re.match(r'execve(?:at)?\((?:\d+, )?"([^"]*)"', line)[1] for line in lines if line.startswith("execve")]
    assert started[0] == EXECUTABLE and {os.path.realpath(program) for program in started} <= {os.path.realpath(EXECUTABLE), os.path.realpath("/proc/self/exe")}
    assert not [line for line in lines if line.startswith("connect") and "AF_INET" in line]
    world = files(home.directory.parent)
    assert not [name for name in world if name.startswith(("home/", "tmp/"))]


NAMED = ["output.lines=[{name: NAME, from: [0, 0, 0], to: [1, 1, 1]}]", "output.planes=[{name: NAME, origin: [0, 0, 0], first: [1, 0, 0], second: [0, 1, 0]}]",
         "output.slices=[{name: NAME, normal: [1, 0, 0], through: [0.5, 0.5, 0.5]}]", "output.contours=[{name: NAME, values: [0.5]}]", "output.pictures=[{name: NAME}]",
         "output.probes=[{name: NAME, at: [0, 0, 0]}]", "output.name=NAME", "output.quantities={NAME: max}", "parameters={NAME: 1}",
         "problem.mesh.boundaries=[{name: NAME, where: x < 1}]"]


@pytest.mark.parametrize("name", ["../victim", "/tmp/victim", "a/b", "..", "a\\0b", "a\nb", "-x", "~root"])
@pytest.mark.parametrize("setting", NAMED, ids=lambda text: text.partition("=")[0])
def test_names_lead_nowhere(home, setting, name):
    config = home.write(CUBE)
    before = files(home.directory.parent)
    quoted = '"' + name.replace("\\", "\\\\").replace("\n", "\\n") + '"'
    done = home("check", config, "--set", setting.replace("NAME", quoted), code=1)
    key = setting.partition("=")[0]
    assert key in done.stderr
    assert files(home.directory.parent) == before


def test_cases_of_a_sweep_have_plain_folders(home):
    (home.directory / "deep").mkdir()
    for path in (home.directory / "deep/a.msh", home.directory.parent / "b.msh"):
        shutil.copy(ROOT / "meshes/ball.msh", path)
    home.write("problem: {mesh: {file: deep/a.msh}, boundary: [{ids: all, type: dirichlet}]}\noutput: {picture: false}\nsweep: {problem.mesh.file: [deep/a.msh, ../b.msh, deep/../deep/a.msh]}\n")
    home("sweep", "case.yaml", "--output", "out", "--quiet")
    names = os.listdir(home.directory / "out/cases")
    assert len(names) == 3 and all((home.directory / "out/cases" / name / "result.json").is_file() for name in names)
    assert sorted(os.listdir(home.directory)) == ["case.yaml", "deep", "out"] and sorted(os.listdir(home.directory.parent)) == ["b.msh", "home", "tmp", "work"]


def test_links_are_not_followed(home):
    config = home.write(CUBE)
    home("run", config, "--output", "first", "--quiet")
    victim = home.directory.parent / "victim"
    for name in home.record("first")["files"]:
        victim.write_text("precious")
        shutil.copytree(home.directory / "first", home.directory / "out")
        (home.directory / "out" / name).unlink()
        (home.directory / "out" / name).symlink_to(victim)
        done = home("run", config, "--output", "out", "--quiet", "--overwrite", code=(0, 1))  # a record that is a link makes files those of others
        assert victim.read_text() == "precious", name
        assert done.returncode == 1 or not (home.directory / "out" / name).is_symlink(), name
        shutil.rmtree(home.directory / "out")
    # A folder that is a link is where its owner has put it.
    (home.directory.parent / "elsewhere").mkdir()
    (home.directory / "linked").symlink_to("../elsewhere")
    home("run", config, "--output", "linked", "--quiet")
    assert (home.directory.parent / "elsewhere/result.json").is_file()


@pytest.mark.parametrize("key", ["include", "problem.mesh.file", "problem.mesh.image"])
def test_of_files_that_are_something_else_nothing_is_shown(home, key):
    secret = home.write("root:x9secret9x:0:0\n", "secret.txt")
    for name in ("secret.txt", "secret.msh", "secret.nrrd", "secret.mha", "secret.yaml"):
        if name != secret.name:
            shutil.copy(secret, home.directory / name)
        text = f"include: {name}\n" + CUBE if key == "include" else CUBE
        home.write(text, "attack.yaml")
        words = [] if key == "include" else ["--set", f"{key}={name}"]
        done = subprocess.run(home.command("check", "attack.yaml", *words), cwd=home.directory, capture_output=True, text=True, timeout=100)
        assert done.returncode == 1 and done.stderr.startswith("poisson: error: ")
        assert "x9secret9x" not in done.stdout + done.stderr, (name, done.stderr)


# ------------------------------------------------------------------------------------------------------------------------------- pages


class Structure(html.parser.HTMLParser):
    """Tags with the names of their attributes; addresses that a page would load."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        # A number has data-v where its text is rounded, which of times differs from run to run.
        self.tags.append((tag, tuple(sorted(name for name, _ in attributes if name != "data-v"))))
        self.addresses += [value for name, value in attributes if name in ("src", "href", "action", "data", "srcset", "xlink:href", "formaction", "poster") and value]


def pages(poisson, text):
    """The pages of a run and of a sweep of a problem that has a text in all places that take any."""
    quoted = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    poisson.write(f"""
# {text}
problem:
  mesh: {{cells: [4, 4, 4]}}
  source: x
  boundary: [{{ids: all, type: dirichlet, value: "0"}}]
output: {{title: {quoted}, unit: {quoted}, quantities: {{odd: "if(max < 2, min, max)"}}}}
sweep: {{solver.tolerance: [1.0e-6, 1.0e-8]}}
""", "page.yaml")
    poisson("run", "page.yaml", "--output", "run", "--quiet", "--overwrite")
    poisson("sweep", "page.yaml", "--output", "sweep", "--quiet", "--overwrite")
    return {name: (poisson.directory / name / "report.html").read_text() for name in ("run", "sweep")}


def test_texts_do_nothing_to_pages(home):
    harmless, nasty = pages(home, "plain"), pages(home, NASTY)
    for name, page in nasty.items():
        assert "alert(1)" in page  # it is shown
        assert Structure(page).tags == Structure(harmless[name]).tags, name
        assert NASTY not in page and "<script>alert" not in page and "onerror=alert(2)>\"" not in page
        for address in Structure(page).addresses:
            assert not re.match(r"(?i)\s*(https?:|//|ftp:|javascript:|data:text)", address), address
        for call in ("fetch(", "XMLHttpRequest", "WebSocket(", "sendBeacon", "import("):
            assert call not in page, call


# ------------------------------------------------------------------------------------------------------------------------------- code


def test_few_places_start_programs():
    """And they are those of the page: gmsh and NVIDIA's service without a shell, copies of the program, and a script of the command line."""
    found = set()
    for layer in ("app", "assembly", "gpu", "output"):
        for path in (ROOT / layer).rglob("*"):
            if path.suffix in (".cpp", ".hpp", ".cu", ".cuh"):
                text = re.sub(r"//.*", "", path.read_text())
                if re.search(r"\b(?:std::system|popen|exec[lv]p?e?|posix_spawnp?|execveat|fexecve)\(", text):
                    found.add(path.relative_to(ROOT).as_posix())
    assert found <= {"app/bench/solve.cpp", "app/io/child_process.cpp", "app/sweep/multi_process_service.cpp",
                     "assembly/dealii/gmsh_program.cpp"} and "assembly/dealii/gmsh_program.cpp" in found
    assert "popen" not in (ROOT / "assembly/dealii/gmsh_program.cpp").read_text()


def test_python_starts_no_shell():
    for path in (ROOT / "python/poisson").glob("*.py"):
        assert not re.search(r"shell=True|os\.system|getoutput|\beval\(|\bexec\(|pickle", path.read_text()), path


def test_the_page_names_every_key_that_is_a_path():
    page = (ROOT / "docs/security.md").read_text()
    for key in ("problem.mesh.file", "problem.mesh.image", "problem.fields", "include", "output.directory", "problem.mesh.allow_commands"):
        assert f"`{key}`" in page
    declared = "".join(path.read_text() for path in (ROOT / "app/config").glob("*_keys.cpp"))
    assert len(re.findall(r'Text\{"path of ', declared)) == 5  # who adds one writes it on the page: file, image, fields (two forms), directory
