"""No two files define one type: where they do, the order of linking decides which constructors and destructors are taken.

Link-time optimisation sees this too (`.ci/full odr`), but needs a second build of everything. Here the text is read."""

import collections
import re

import pytest
from conftest import ROOT

TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|[A-Za-z_]\w*|::|[{}();<>=,:\[\]]')
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|(?<=\d)\'(?=\d)', re.DOTALL)
ATTRIBUTES = re.compile(r"\[\[.*?\]\]|\b(alignas|__attribute__|__align__)\s*\((?:[^()]|\([^()]*\))*\)|\bfinal\b", re.DOTALL)


def without_comments(text):
    text = re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", "", text, flags=re.MULTILINE)  # directives; all branches of #if are read
    # A comment in a string is none: strings are matched first.
    return re.sub(r'"(?:[^"\\\n]|\\.)*"|' + COMMENT.pattern, lambda m: '""' if m[0].startswith(('"', "R")) else " ", text, flags=re.DOTALL)


def types_defined(text):
    """The full names of the types that a text defines where other files could define them too: not in functions or other types,
    and not in namespaces without a name. Specialisations have their arguments in the name."""
    words = TOKEN.findall(ATTRIBUTES.sub(" ", without_comments(text)))
    scopes = []  # of each open brace: the name of a namespace, "" if it has none, or None for anything else
    head = []  # words since the last `;`, `{` or `}`
    for word in words:
        if word in "{}" and word:
            if word == "{":
                scopes.append(scope_of(head))
                outer = scopes[:-1]
                name = type_of(head) if all(outer) else None
                if name:
                    yield "::".join([*outer, name])
            elif scopes:
                scopes.pop()
            head = []
        elif word == ";":
            head = []
        else:
            head.append(word)


def scope_of(head):
    if "namespace" not in head:
        return None
    return "".join(head[head.index("namespace") + 1:])


def type_of(head):
    """The name that a head such as `template <class T> struct Name<T*> : Base` defines, or None if it defines no type."""
    rest = list(head)
    while rest[:1] == ["template"]:
        depth = 0
        for end, word in enumerate(rest[1:], 1):
            depth += (word == "<") - (word == ">")
            if depth == 0:
                break
        rest = rest[end + 1:]
    rest = [word for word in rest if word not in ("inline", "static", "constexpr", "typedef", "export")]
    if rest[:1] == ["enum"]:
        rest = rest[1:] if rest[1:2] not in (["class"], ["struct"]) else rest[2:]
    elif rest[:1] in (["struct"], ["class"], ["union"]):
        rest = rest[1:]
    else:
        return None
    name = []
    depth = 0
    for word in rest:
        if depth == 0 and word in (":", "=", "(", "["):
            if word != ":":
                return None  # a function or a variable of that type
            break
        depth += (word == "<") - (word == ">")
        name.append(word)
    if not name or (len(name) > 1 and re.match(r"\w", name[1])):
        return None  # without a name, or `struct Type variable {`
    return "".join(name)


def defined_twice(paths):
    """Names, each with the files that define it, that have more than one."""
    files = collections.defaultdict(set)
    for path in paths:
        for name in types_defined(path.read_text()):
            files[name].add(path)
    return {name: sorted(map(str, where)) for name, where in files.items() if len(where) > 1}


def sources(folder):
    return [path for path in folder.rglob("*") if path.suffix in (".hpp", ".cpp", ".cu", ".cuh")]


def test_no_type_of_the_program_is_defined_twice():
    # A build has either the stubs or CUDA.
    paths = [path for layer in ("app", "assembly", "output", "gpu") for path in sources(ROOT / layer) if "stub" not in path.parts]
    assert defined_twice(paths) == {}


@pytest.mark.parametrize("layer", ["app", "assembly", "output", "gpu", "convergence"])
def test_no_type_of_the_tests_of_a_layer_is_defined_twice(layer):
    """They are one executable, with the layers that they test."""
    paths = [path for folder in ("app", "assembly", "output", "gpu") for path in sources(ROOT / folder) if "stub" not in path.parts]
    assert defined_twice(paths + sources(ROOT / "tests" / layer)) == {}


def test_the_program_has_types():
    assert {"poisson::SolverOptions", "poisson::app::RunConfig", "poisson::assembly::ProblemSpec", "poisson::Backend"} <= {
        name for layer in ("app", "assembly", "output", "gpu") for path in sources(ROOT / layer) for name in types_defined(path.read_text())}


FIRST = """
#include <vector>
namespace poisson::app {
namespace {
struct Hidden { int a; };
}
struct Level;  // only declared: struct Level { };
struct Level { struct Inner { int x; }; std::vector<int> rows; };
template <class T> struct Names;
template <> struct Names<Level> { static constexpr char const* text = "struct Shown {"; };
inline int f(struct Level const& level) { struct Local { int i; }; return Local{1}.i; }
enum class Kind : int { a, b };
}
"""
SECOND = {  # what another file has beside it, and the names that are then defined twice
    "namespace poisson::app {\nstruct Level { double a; };\n}": ["poisson::app::Level"],
    "namespace poisson {\nnamespace app {\nclass Level final : public Base<int> {\n};\n}\n}": ["poisson::app::Level"],
    "namespace poisson::app {\nnamespace {\nint i;\n}\nclass [[nodiscard]] alignas(64) Level\n{\n};\n}": ["poisson::app::Level"],
    "namespace poisson::app {\nenum Kind { c };\n}": ["poisson::app::Kind"],
    "namespace poisson::app {\ntemplate <>\nstruct Names<Level> {};\n}": ["poisson::app::Names<Level>"],
    "namespace poisson::app {\ntemplate <class A, template <class> class B>\nunion Level { A a; };\n}": ["poisson::app::Level"],
    "namespace poisson::app {\nnamespace {\nstruct Level {}; struct Hidden {};\n}\n}": [],
    "namespace poisson::app {\nstruct Hidden {};\n}": [],
    "namespace poisson {\nstruct Level {}; enum class Kind { x };\n}": [],
    "namespace poisson::app {\ntemplate <> struct Names<Kind> {};\n}": [],
    "namespace poisson::app {\nvoid g() { struct Local {}; struct Inner {}; }\nstruct Level* p;\nstruct Level make() { return {}; }\n}": [],
    "namespace poisson::app {\n// struct Level {\n/* struct Level {} */\nauto t = \"struct Level {\"; auto r = R\"(struct Level {)\"; char c = '{'; int n = 1'000;\n}": [],
}


@pytest.mark.parametrize("second", SECOND)
def test_two_definitions_are_found(tmp_path, second):
    (tmp_path / "first.cpp").write_text(FIRST)
    (tmp_path / "second.cpp").write_text(second)
    assert list(defined_twice(sources(tmp_path))) == SECOND[second]
