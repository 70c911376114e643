"""The documents as a site: pages that the program prints are whole, every link and anchor leads somewhere, nothing comes from a network."""

import collections
import html.parser
import json
import pathlib
import re
import shutil
import subprocess
import urllib.parse

import pytest

from conftest import EXECUTABLE, ROOT

Page = collections.namedtuple("Page", "anchors links resources text code")


class Reader(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.page = Page(set(), [], [], [], [])
        self.inside = []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.page.anchors.update(attributes[name] for name in ("id", "name") if attributes.get(name))
        if tag == "a" and "href" in attributes:
            self.page.links.append(attributes["href"])
        self.page.resources.extend(attributes[name] for name in ("src", "href") if tag != "a" and attributes.get(name))
        if tag in ("code", "script", "span", "div"):
            self.inside.append((tag, attributes.get("class")))

    def handle_endtag(self, tag):
        if self.inside and self.inside[-1][0] == tag:
            self.inside.pop()

    def handle_data(self, data):
        marked = any(tag in ("code", "script") or name == "arithmatex" for tag, name in self.inside)
        (self.page.code if marked else self.page.text).append(data)


def read(path):
    reader = Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader.page


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "site"
    done = subprocess.run([ROOT / "tools/make_site", folder, "--program", EXECUTABLE], capture_output=True, text=True)
    if done.returncode == 3:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == f"{folder / 'index.html'}\n" and "WARNING" not in done.stderr, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site):
    return {path: read(path) for path in sorted(site.rglob("*.html"))}


def test_every_link_and_anchor_leads_somewhere(pages):
    seen, dead = 0, []
    for path, page in pages.items():
        for target in page.links + page.resources:
            address = urllib.parse.urlsplit(target)
            if address.scheme:
                continue
            there = (path.parent / urllib.parse.unquote(address.path)).resolve() if address.path else path
            if not there.is_file() or (address.fragment and there in pages and address.fragment not in pages[there].anchors):
                dead.append((path.name, target))
            seen += bool(address.fragment)
    assert dead == [] and seen > 100


def test_nothing_is_taken_from_a_network(site, pages):
    assert [(path.name, target) for path, page in pages.items() for target in page.resources if urllib.parse.urlsplit(target).scheme not in ("", "data")] == []
    for path in site.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"url\(['\"]?(?:\w+:)?//|@import", text), path
        for face in re.findall(r"@font-face *{([^}]*)}", text):  # one of the kinds of files that it names
            targets = re.findall(r"url\(['\"]?([^)'\"?#]+)", face)
            assert any((path.parent / target).is_file() for target in targets), (path.name, targets)


def test_every_page_is_in_the_menu(site, pages):
    """With the tutorial, how-to pages, reference, theory, performance and gallery each in a section."""
    text = (site / "index.html").read_text(encoding="utf-8")
    menu = text[text.index("wy-menu-vertical"):text.index("wy-nav-content-wrap")]
    linked = {(site / target).resolve() for target in re.findall(r'class="[^"]*reference internal[^"]*" href="([^"#]+)', menu)}
    assert linked | {site / "index.html"} == set(pages) - {site / "search.html"}  # the page itself has no link to itself in every version
    assert re.findall(r'caption-text">([^<]+)', menu) == ["Tutorial", "How to", "Gallery", "Reference", "Theory", "Performance", "Development"]
    for path in (ROOT / "docs").rglob("*.md"):
        assert site / path.relative_to(ROOT).with_suffix(".html") in linked, path


def test_markdown_is_understood(pages):
    """What is Markdown to GitHub is Markdown to the site: no list without an empty line before it, no mark that is left over."""
    for path, page in pages.items():
        text = "".join(page.text)
        assert not (found := re.search(r"^(?:\* |- |\d\. |```)|\]\(|\*\*\w|\$\$|\| ?---|\\[()]", text, re.MULTILINE)), f"{path}: {text[max(0, found.start() - 60):found.end() + 60]}"
    theory = [path for path in pages if path.name == "theory.html"]
    assert theory[0].read_text(encoding="utf-8").count('class="arithmatex"') > 300


def keys(name, node):
    items = node.get("items")
    yield name
    for suffix, child in (("", node), ("[]", items if isinstance(items, dict) else {})):
        for key, value in child.get("properties", {}).items():
            if "." not in key and "description" in value:
                yield from keys(f"{name}{suffix}.{key}", value)


def test_the_reference_has_every_key_and_option(site, pages):
    schema = json.loads(subprocess.run([EXECUTABLE, "schema", "--json"], capture_output=True, text=True, check=True).stdout)
    wanted = [key for name, node in schema["properties"].items() for key in keys(name, node)]
    headings = [heading for path in pages if path.parent.name == "reference" for heading in re.findall(r"<h2[^>]*>(?:<code>)?([^<]+)", path.read_text(encoding="utf-8"))]
    assert len(wanted) > 150 and set(wanted) <= set(headings)
    text = "".join(pages[site / "docs/reference/problem.html"].text)
    assert "Edge lengths of the box." in text and "unit: length" in text and re.search(r"^allowed: \[x, y, z\], each: integer from 1", text, re.MULTILINE)
    assert "[1, 1, 1]" in pages[site / "docs/reference/problem.html"].code
    commands = pages[site / "docs/reference/commands.html"]
    shown = "\n".join(commands.code)
    for command in (heading for heading in headings if heading.startswith("poisson ")):
        said = subprocess.run([EXECUTABLE, *command.split()[1:], "--help"], capture_output=True, text=True, check=True).stdout
        options = set(re.findall(r"^  (?:-h \[ )?(--[a-z-]+)", said, re.MULTILINE))
        assert options and all(option in shown for option in options), command
    assert "results directory" in "".join(commands.text)


def test_search_finds_keys_and_words(site):
    documents = json.loads((site / "search/search_index.js").read_text(encoding="utf-8").removeprefix("var search_documents = ").rstrip(";\n"))
    locations = [document["location"] for document in documents]
    assert len(locations) > 400 and "docs/reference/problem.html#problemmeshgrowth_to" in locations
    if not shutil.which("node"):
        return  # the script of the page, run without a browser, finds the section
    script = """
const fs = require('fs'), vm = require('vm');
globalThis.lunr = require('./search/lunr.js');
for (const name of ['search/search_index.js', 'assets/site.js']) vm.runInThisContext(fs.readFileSync(name, 'utf8'));
console.log(JSON.stringify(process.argv.slice(1).map(words => search(search_documents, words).slice(0, 5).map(found => found.location))));
"""
    words = {"growth_to": "problemmeshgrowth_to", "robin": "boundary", "exit code": "first_run", "max_iter": "solvermax_iterations"}
    done = subprocess.run(["node", "-e", script, *words], cwd=site, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for (word, wanted), found in zip(words.items(), json.loads(done.stdout)):
        assert any(wanted in location for location in found), (word, found)


def test_it_replaces_a_site_and_nothing_else(site, tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    done = subprocess.run([ROOT / "tools/make_site", tmp_path, "--program", EXECUTABLE], capture_output=True, text=True)
    assert done.returncode == 1 and "holds other files" in done.stderr and [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    copy = tmp_path / "copy"
    shutil.copytree(site, copy)
    (copy / "old.html").write_text("")
    subprocess.run([ROOT / "tools/make_site", copy, "--program", EXECUTABLE], capture_output=True, check=True)
    assert sorted(path.relative_to(copy) for path in copy.rglob("*")) == sorted(path.relative_to(site) for path in pathlib.Path(site).rglob("*"))
