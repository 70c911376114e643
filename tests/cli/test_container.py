"""The container files: they install what the set-up and the packages name, copy what is there, and end without root."""

import re

import pytest
from conftest import ROOT

FILES = sorted((ROOT / "tools/container").glob("Dockerfile.*"))
NVIDIA = re.compile(r"cuda-(?:compiler|libraries-dev)-13-0")  # which Debian does not have


def stages(path):
    """The instructions of each stage: a list of lists of (word, rest)."""
    text = re.sub(r"^#.*\n", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        word, rest = line.split(maxsplit=1)
        if word == "FROM":
            found.append([])
        found[-1].append((word, rest))
    return found


def installed_by(instructions):
    """Names and paths after `apt-get install`."""
    commands = [command.split() for word, rest in instructions if word == "RUN" for command in rest.split("&&")]
    return [name for command in commands if command[:2] == ["apt-get", "install"] for name in command[2:] if not name.startswith("-")]


def known_packages():
    setup = re.search(r"packages=\(([^)]*)\)", (ROOT / "tools/setup").read_text())[1].split()
    tests = re.search(r"packages\+=\(([^)]*)\)", (ROOT / "tools/setup").read_text())[1].split()
    named = re.findall(r"set\(CPACK_DEBIAN_PROGRAM_PACKAGE_(?:DEPENDS|RECOMMENDS) \"([^\"]*)\"", (ROOT / "tools/install.cmake").read_text())
    return {*setup, *tests}, {name.strip() for names in named for name in names.split(",")}


def test_there_is_one_for_processors_and_one_for_devices():
    assert [path.name for path in FILES] == ["Dockerfile.cpu", "Dockerfile.cuda"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_packages_are_those_of_the_set_up(path):
    setup, recommended = known_packages()
    build, final = stages(path)
    assert ("RUN", "tools/setup") in build
    for name in installed_by(build):
        assert name in setup or name == "ca-certificates" or NVIDIA.fullmatch(name) or name.startswith("/tmp/cuda-keyring"), name
    in_final = installed_by(final)
    assert in_final[0] == "/packages/poisson_*.deb" and set(in_final[1:]) <= setup & recommended and len(in_final) == 3
    assert not any("-dev" in name for name in in_final)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_what_is_copied_is_there(path):
    build, final = stages(path)
    for word, rest in build:
        if word == "COPY":
            assert (ROOT / rest.split()[0]).exists(), rest
        if word == "RUN" and "tools/" in rest:
            assert (ROOT / re.search(r"tools/\w+", rest)[0]).exists(), rest
    assert [rest for word, rest in build if word == "RUN"][-1].endswith("tools/make_packages /packages")  # which it takes as its folder
    assert 'folder=$(realpath -m "${1:-build/packages}")' in (ROOT / "tools/make_packages").read_text()
    assert any("from=build,source=/packages,target=/packages" in rest for word, rest in final if word == "RUN")
    # The package of the component `program` is called poisson, and has the program.
    rules = (ROOT / "tools/install.cmake").read_text()
    assert "set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME poisson)" in rules and "install(TARGETS poisson RUNTIME COMPONENT program)" in rules


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_it_runs_the_program_without_root(path):
    build, final = stages(path)
    words = [word for word, _ in final]
    said = dict(final)
    assert said["ENTRYPOINT"] == '["poisson"]' and said["USER"] == "poisson" and words.index("USER") < words.index("ENTRYPOINT")
    assert "useradd" in [rest for word, rest in final if word == "RUN"][-1] and words[words.index("USER"):].count("RUN") == 0
    base = dict(build)["FROM"].split()[0]
    assert said["FROM"] == f"{base}-slim"


def test_both_end_alike():
    cpu, cuda = ([(word, rest) for word, rest in stages(path)[-1] if word != "ENV"] for path in FILES)
    assert cpu == cuda
