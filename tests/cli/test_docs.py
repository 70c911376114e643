"""The documents: examples that the program takes, links that lead somewhere, pages that are short."""

import functools
import re
import shutil
import subprocess

import numpy
import pytest

from conftest import EXECUTABLE, ROOT
from test_surfaces import sphere, text_form
from test_images import planes, tiff, write_nrrd, write_vti

USAGE = sorted((ROOT / "docs/usage").glob("*.md"))
DOCUMENTS = sorted({*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"),
                    *(path for room in ("app", "assembly", "configs", "gpu", "meshes", "output") for path in ROOT.glob(f"{room}/**/*.md"))})
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def name_of(path):
    return path.relative_to(ROOT).as_posix()


def blocks(path, language):
    return [text for kind, text in FENCED.findall(path.read_text(encoding="utf-8")) if kind == language]


def prose(path):
    return FENCED.sub("", path.read_text(encoding="utf-8"))


def is_prose(line):
    return not line.startswith(("|", "#"))


# ------------------------------------------------------------------------------------------------------------------------------- links


def anchors(path):
    headings = re.findall(r"^#+ (.*)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
        if re.match(r"https?:", target):
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), target
        assert not anchor or anchor in anchors(there), target


def test_documents_that_sources_name_are_there():
    named = set()
    for folder in ("app", "assembly", "gpu", "output", "tests", "tools", "configs", "docs", "."):
        files = (ROOT / folder).rglob("*") if folder != "." else ROOT.glob("*")
        for path in files:
            if path.is_file() and path.suffix in (".cpp", ".hpp", ".cu", ".cuh", ".py", ".yaml", ".md", ".txt", ""):
                named |= {(name_of(path), name) for name in re.findall(r"\b(?:docs|gpu|assembly|output|app)/[\w/]*\w\.md\b",
                                                                       path.read_text(encoding="utf-8", errors="replace"))}
    assert len(named) > 20
    assert [(path, name) for path, name in sorted(named) if not (ROOT / name).exists()] == []


CODE_PAGES = [ROOT / "docs/architecture.md", *(path for path in DOCUMENTS if name_of(path).split("/")[0] in ("app", "assembly", "gpu", "output"))]


@functools.cache
def sources():
    return {name_of(path): path.read_text(encoding="utf-8") for layer in ("app", "assembly", "gpu", "output", "tests") for path in (ROOT / layer).rglob("*")
            if path.suffix in (".hpp", ".cpp", ".cu", ".cuh", ".py", ".txt")}


@functools.cache
def words_of_sources():
    return set(re.findall(r"\w+", " ".join(sources().values())))


@pytest.mark.parametrize("path", CODE_PAGES, ids=name_of)
def test_names_in_pages_on_the_code_exist(path):
    """Types, functions and files in backticks: who renames one finds the sentences that speak of it."""
    missing = []
    for code in re.findall(r"`([^`\n]+)`", prose(path)):
        if re.search(r"NAME|Name[A-Z]|\(context\)", code):  # of what a reader adds
            continue
        if re.fullmatch(r"[\w/]+\.(?:hpp|cpp|py|cu|md|csv)", code):
            if not any(other.exists() for other in (ROOT / code, path.parent / code, ROOT / "gpu" / code, ROOT / "assembly" / code, ROOT / "app/run" / code)):
                missing.append(code)
        elif re.fullmatch(r"[a-z]+(?:/[a-z]+)+", code):
            if not any(list((ROOT / start).glob(code + "*")) for start in (".", "gpu", "assembly")):
                missing.append(code)
        elif re.fullmatch(r"[A-Za-z_]\w*(?:(?:::|\.)\w+)*(?:<\w+>)?(?:\(\w*\))?", code) and "." not in code:
            missing += [code for word in re.findall(r"\w+", code) if word not in words_of_sources()]
    assert missing == []


# ------------------------------------------------------------------------------------------------------------------------------- pages


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_lines_fit_a_window(path):
    if path.name != "CHANGELOG.md":
        lines = re.sub(r"<!-- table: .*?<!-- end -->", "", prose(path), flags=re.DOTALL).splitlines()
        assert [line for line in lines if is_prose(line) and not line.startswith(("<!--", "![", "$$")) and len(line) > 140] == []


def test_the_index_names_every_page():
    index = (ROOT / "docs/usage.md").read_text(encoding="utf-8")
    linked = re.findall(r"\]\(usage/(\w+\.md)\)", index)
    assert sorted(linked) == [path.name for path in USAGE] and len(linked) >= 9


@pytest.mark.parametrize("path", USAGE, ids=name_of)
def test_a_page_is_read_in_five_minutes_and_begins_with_an_example(path):
    words = " ".join(line for line in prose(path).splitlines() if is_prose(line)).split()
    assert len(words) <= 1000
    before = path.read_text(encoding="utf-8").split("```")[0]
    assert len(before.split()) <= 40


def test_the_page_on_architecture_stays_short():
    assert len((ROOT / "docs/architecture.md").read_text(encoding="utf-8").split()) <= 2000


# ---------------------------------------------------------------------------------------------------------------------------- examples

# A box of eight cells, whose materials have the ids 7 (copper) and 8, and its lower side the name inlet.
CHIP = """$MeshFormat
2.2 0 8
$EndMeshFormat
$PhysicalNames
3
2 3 "inlet"
3 7 "copper"
3 8 "rest"
$EndPhysicalNames
$Nodes
12
1 0 0 0
2 1 0 0
3 1 1 0
4 0 1 0
5 0 0 1
6 1 0 1
7 1 1 1
8 0 1 1
9 0 0 2
10 1 0 2
11 1 1 2
12 0 1 2
$EndNodes
$Elements
3
1 3 2 3 1 1 2 3 4
2 5 2 7 1 1 2 3 4 5 6 7 8
3 5 2 8 2 5 6 7 8 9 10 11 12
$EndElements
"""
BOUNDARY = 'problem: {boundary: [{ids: all, type: dirichlet, value: "0"}]}\n'
NAMED = re.compile(r"^`(\w+\.yaml)`:\n\n```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)  # files that another example includes
EXAMPLES = [(path, text) for path in [ROOT / "README.md", *USAGE] for text in blocks(path, "yaml")
            if not text.startswith("#") and text not in dict(NAMED.findall(path.read_text(encoding="utf-8"))).values()]


@pytest.fixture(scope="module")
def files_of_examples(tmp_path_factory):
    """The files that examples read."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "boundary.yaml").write_text(BOUNDARY)
    (folder / "chip.msh").write_text(CHIP)
    shutil.copy(ROOT / "meshes/plate_with_hole.geo", folder)
    (folder / "ball.stl").write_text(text_form(sphere(0.5)))
    table = [text for text in blocks(ROOT / "docs/usage/fields.md", "") if text.startswith("id;")]
    assert len(table) == 1
    (folder / "boreholes.csv").write_text(table[0])
    small = ["--set", "problem.mesh.cells=[2,2,2]", "--set", "output.picture=false", "--quiet"]
    for name, setting in {"coarse": "output.vtk.format=vtu", "scan": "output.name=phi", "heat": "output.name=u"}.items():
        subprocess.run([EXECUTABLE, "run", "boundary.yaml", "--output", f"results/{name}", *small, "--set", setting], cwd=folder, check=True)
    for name in ("scan", "heat"):
        shutil.copy(folder / f"results/{name}/solution.vti", folder / f"{name}.vti")
    rock = numpy.arange(16 * 16 * 12).reshape(16, 16, 12) % 2 + 1
    write_vti(folder / "rock.vti", rock)
    write_nrrd(folder / "grey.nrrd", 100 * rock)
    (folder / "rock.raw").write_bytes(bytes(2 * 100 * 100 * 80))
    (folder / "slices").mkdir()
    (folder / "slices/s1.tif").write_bytes(tiff(planes(rock)))
    return folder


@pytest.mark.parametrize("number", range(len(EXAMPLES)), ids=[f"{path.stem}-{text.split(':')[0].strip()}" for path, text in EXAMPLES])
def test_the_program_takes_every_example(files_of_examples, number):
    """An example without boundary conditions gets some; everything else is as the page has it."""
    path, text = EXAMPLES[number]
    if ".geo" in text and not shutil.which("gmsh"):
        pytest.skip("there is no gmsh (Debian's package gmsh)")
    for name, content in NAMED.findall(path.read_text(encoding="utf-8")):
        (files_of_examples / name).write_text(content)
    if not re.search(r"^ +boundary:", text, re.MULTILINE) and "effective: {conditions:" not in text:  # which brings its own
        included = re.search(r"^include: (\S+).*\n", text, re.MULTILINE)
        others = f", {included[1]}" if included else ""
        text = f"include: [boundary.yaml{others}]\n" + (text.replace(included[0], "") if included else text)
    done = subprocess.run([EXECUTABLE, "check", "-", "--quiet"], input=text, cwd=files_of_examples, text=True, capture_output=True)
    assert done.returncode == 0 and done.stderr == "", done.stderr


@functools.cache
def options_of(command):
    return set(re.findall(r"--[\w-]+", subprocess.run([EXECUTABLE, *command, "--help"], capture_output=True, text=True, check=True).stdout))


def test_options_in_command_lines_exist():
    seen = set()
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        lines = [line for block in FENCED.findall(text) for line in block[1].splitlines()]
        lines += re.findall(r"`([^`]+)`", FENCED.sub("", text))
        for line in lines:
            for command, bench, words in re.findall(r"(?:^|[ |])poisson (init|run|sweep|check|solve|svd|bench|schema|info)( (?:spmv|convert|solve|svd)\b)?([^|#]*)", line.replace("\n", " ")):
                known = options_of((command, bench.strip()) if command == "bench" and bench else (command,))
                used = {option for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", words)}
                assert used <= known, f"{name_of(path)}: {line}"
                seen |= used
    assert len(seen) > 15
