"""What the documentation says can be followed, run and found."""

from __future__ import annotations

import ast
import re
import shlex
import unicodedata
from pathlib import Path

import cv2
import numpy as np
import pytest

import smalti
from tests.docs.hooks import ROOT, hook

PAGES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")),
]
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUNNABLE = re.compile(r"^<!-- run -->\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
MOST_WORDS = 40


pages = hook("pages")
local_assets = hook("local_assets")
notebooks = hook("notebooks")


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def text_of(path: Path) -> str | None:
    """Return a page, written by a person or by the hook; None if there is none."""
    if path.is_file():
        return path.read_text(encoding="utf-8")
    place = path.relative_to(ROOT / "docs").as_posix() if path.is_relative_to(ROOT / "docs") else ""
    generated = {**pages.GENERATED, **notebooks.GENERATED}
    return generated[place]() if place in generated else None


def prose_of(text: str) -> str:
    return re.sub(r"`[^`\n]*`", "", FENCED.sub("", text))


def anchors_of(text: str) -> set[str]:
    """Return the anchors of headings as MkDocs and code hosts make them."""
    found = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *$", FENCED.sub("", text), flags=re.MULTILINE):
        kept = re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower()
        plain = unicodedata.normalize("NFKD", kept).encode("ascii", "ignore").decode()
        found |= {re.sub(r"\s", "-", kept), re.sub(r"[-\s]+", "-", plain)}
    return found


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_inside_the_repository_lead_somewhere(page):
    broken = []
    for link in LINK.findall(prose_of(page.read_text(encoding="utf-8"))):
        target, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        place = (page.parent / target).resolve() if target else page
        if place.is_dir() or (place.is_file() and place.suffix != ".md"):
            continue
        text = text_of(place)
        if text is None or (anchor and anchor not in anchors_of(text)):
            broken.append(link)
    assert not broken, f"{named(page)}: {broken}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_python_in_the_documentation_compiles(page):
    for language, code in FENCED.findall(page.read_text(encoding="utf-8")):
        if language == "python":
            compile(code, named(page), "exec")


def command_lines(text: str) -> list[str]:
    """Return the lines of code blocks, fenced or indented, that call smalti."""
    fenced = [code for language, code in FENCED.findall(text) if language in ("", "sh", "bash", "console")]
    indented = re.findall(r"^ {4}(.*)$", FENCED.sub("", text), flags=re.MULTILINE)
    lines = "\n".join([*fenced, *indented]).replace("\\\n", " ").splitlines()
    return [line.removeprefix("$ ").strip() for line in lines if re.match(r"(\$ )?smalti ", line)]


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_command_lines_are_understood_by_the_parser(page, capsys):
    for line in command_lines(page.read_text(encoding="utf-8")):
        # Options in brackets may be left out; all of them at once must be right, too.
        words = shlex.split(line.replace("[", " ").replace("]", " "), comments=True)[1:]
        try:
            pages.command_parser().parse_args(words)
        except SystemExit:  # --help and --version; errors are raised, see below
            pass
        except smalti.SmaltiError as error:
            pytest.fail(f"{named(page)}: {line}: {error}")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder that holds `photos/`: eight small views of one picture, there and back."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "photos").mkdir()
    noise = np.random.default_rng(1).integers(0, 256, (300, 460, 3)).astype(np.uint8)
    picture = cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 2), None, 0, 255, cv2.NORM_MINMAX)
    for n in range(8):
        x, y = 60 * min(n, 7 - n), 0 if n < 4 else 70
        assert cv2.imwrite(str(folder / "photos" / f"{n}.png"), picture[y : y + 150, x : x + 200])
    return folder


@pytest.mark.parametrize("page", [page for page in PAGES if RUNNABLE.search(page.read_text("utf-8"))], ids=named)
def test_marked_python_runs(page, photos, monkeypatch, capsys):
    monkeypatch.chdir(photos)
    names: dict[str, object] = {"__name__": "docs"}
    for code in RUNNABLE.findall(page.read_text(encoding="utf-8")):
        exec(compile(code, named(page), "exec"), names)


def test_the_glossary_stays_short_and_sorted():
    rows = re.findall(r"^\| (.+?) \| .+ \|$", (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)
    words = [row for row in rows if row not in ("word", "---")]
    assert 0 < len(words) <= MOST_WORDS
    assert words == sorted(set(words))


def test_the_command_reference_has_every_command_and_option():
    written = pages.write_commands()
    commands = dict(pages.subcommands(pages.command_parser()))
    assert {"build", "annotate", "render"} <= set(commands)
    for name, (_, parser) in commands.items():
        assert f"## smalti {name}\n" in written
        section = written.split(f"## smalti {name}\n")[1].split("\n## ")[0]
        missing = [option for action in parser._actions for option in action.option_strings if option not in section]
        assert not missing, f"smalti {name}: {missing}"


def test_every_page_of_the_navigation_exists():
    listed = re.findall(r"^\s+- [^:]+: (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(listed) > 20
    assert [place for place in listed if text_of(ROOT / "docs" / place) is None] == []


def source_texts() -> list[str]:
    """Return every text of the source, with … for what is filled in."""
    found = []
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = [str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values]
                found.append("".join(parts))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return found


def test_messages_of_the_troubleshooting_page_are_those_of_the_source():
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    messages = re.findall(r"^smalti: (.+)$", page, re.MULTILINE)
    assert len(messages) > 20
    texts = source_texts()
    unknown = []
    for message in messages:
        fragments = [part for part in message.split("…") if len(part) >= 10] or [max(message.split("…"), key=len)]
        if not any(all(part in text for part in fragments) for text in texts):
            unknown.append(message)
    assert not unknown, "\n".join(unknown)


def test_the_citation_has_the_version_of_the_package():
    assert f"\nversion: {smalti.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "loaded",
    [
        '<script src="https://example.org/a.js"></script>',
        '<link rel="stylesheet" href="//example.org/a.css">',
        '<img src="http://example.org/a.png">',
        "<style>body { background: url(https://example.org/a.png) }</style>",
    ],
)
def test_a_page_that_loads_from_another_host_is_noticed(loaded):
    assert len(local_assets._assets_of_page(f"<html>{loaded}</html>")) == 1


def test_links_that_people_click_are_allowed():
    page = '<a href="https://example.org/paper">paper</a><link rel="canonical" href="https://example.org/">'
    assert local_assets._assets_of_page(page) == []


@pytest.mark.parametrize(
    ("page", "before", "after"),
    [
        ("engine.md", "[a](../ARCHITECTURE.md#x)", "[a](project/ARCHITECTURE.md#x)"),
        ("how-to/x.md", "[a](../strategy.md)", "[a](../strategy.md)"),
        ("how-to/x.md", "[a](../../README.md)", "[a](../index.md)"),
        ("engine.md", "[a](../benchmarks/engine.py)", "a"),
        ("project/CONTRIBUTING.md", "[a](ARCHITECTURE.md)", "[a](../project/ARCHITECTURE.md)"),
        ("project/CONTRIBUTING.md", "[a](docs/release.md)", "[a](../release.md)"),
        ("engine.md", "[a](https://example.org)", "[a](https://example.org)"),
    ],
)
def test_links_that_leave_the_docs_are_led_to_pages_of_the_site(page, before, after):
    assert pages.redirect_links(before, page) == after


FILES = {path.relative_to(ROOT).as_posix() for folder in ("src", "tests", "benchmarks", "examples", "docs", "web/src")
         for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".ts")} | {"hatch_build.py"}  # fmt: skip


def exists(name: str) -> bool:
    return any(path == name or path.endswith(f"/{name}") for path in FILES)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_every_module_that_a_page_names_exists(page):
    assert not [
        name for name in re.findall(r"[\w/]+\.(?:py|ts)\b", page.read_text(encoding="utf-8")) if not exists(name)
    ]


def test_every_module_that_a_docstring_names_exists():
    sources = [path for folder in ("src", "benchmarks") for path in (ROOT / folder).rglob("*.py")]
    named_files = {name for path in sources for name in re.findall(r"`([\w/]+\.py)`", path.read_text(encoding="utf-8"))}
    assert not [name for name in named_files if not exists(name)]


def test_the_architecture_fits_on_a_few_screens():
    assert len((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines()) <= 150
