"""Small finished projects, put together by hand, and a look into the pages that tell of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path

import cv2
import numpy as np

from smalti.frames.source import open_source
from smalti.frames.source_settings import SourceSettings
from smalti.project.entries import AnswerEntry, FrameEntry, LinkEntry, LinkState, Placement, Role
from smalti.project.facts import Binding, Noise
from smalti.project.project import Project
from smalti.records import Answer, Landmarks, Pair, Verdict
from smalti.report.report_page import write_report
from tests.project.entries import outcome

WIDTH, HEIGHT = 60, 40
STEP, DRIFT = 21.0, 4.0
BINDING = Binding(SourceSettings(), mask="none", seed=0, matcher="keypoints")


@dataclass
class Plan:
    """What a project is to hold; frames lie in a row, those of a part beside each other."""

    names: list[str] = field(default_factory=lambda: [f"shot{n}.jpg" for n in range(6)])
    parts: list[int | None] = field(default_factory=lambda: [0] * 6)  # of each frame
    reasons: dict[int, str] = field(default_factory=dict)
    yes: list[tuple[int, int, Role]] = field(
        default_factory=lambda: [*((n, n + 1, Role.CHAIN) for n in range(5)), (0, 2, Role.CHECK), (0, 5, Role.LOOP)]
    )
    rejected: dict[tuple[int, int], LinkEntry] = field(default_factory=dict)
    other: list[tuple[int, int, Role, Verdict, str]] = field(
        default_factory=lambda: [(0, 3, Role.LOOP, Verdict.NO, "4 of 14 matches agree, 11 needed")]
    )
    outcome: dict[str, object] = field(default_factory=dict)  # numbers other than the usual ones


def reject(plan: Plan, i: int, j: int, role: Role, *, chi2: float = 4776.6, residual_px: float = 33.25) -> Plan:
    plan.yes.append((i, j, role))
    plan.rejected[i, j] = LinkEntry(Pair(i, j), LinkState.REJECTED, chi2, 0.0, residual_px)
    return plan


def make_project(folder: Path, plan: Plan | None = None) -> Project:
    plan = Plan() if plan is None else plan
    frames = folder / "source"
    frames.mkdir(parents=True)
    rng = np.random.default_rng(5)
    for name in plan.names:
        picture = cv2.resize(rng.integers(0, 256, (8, 12, 3), dtype=np.uint8), (WIDTH, HEIGHT))
        done, packed = cv2.imencode(".jpg", picture)
        assert done
        (frames / name).write_bytes(packed.tobytes())
    with open_source(frames) as source:
        project = Project.begin(folder / "out", source, str(frames), BINDING)
        labels = source.labels
    project.store.keep_frames(FrameEntry(n, label, plan.reasons.get(n, "")) for n, label in enumerate(labels))
    _answer(project, plan)
    placements = [_place(plan, n) for n, part in enumerate(plan.parts) if part is not None]
    count = len({placement.part for placement in placements})
    usual = outcome(
        finished_after=len(project.answers),
        noise=Noise(chain=1.25, matcher=0.875, person=1.0),
        chain_predicted_px=7.125,
        predicted_error_px=0.554,
        chain_error_px=26.845,
        left_out_px=1.257,
        references=tuple(plan.parts.index(part) for part in range(count)),
    )
    project.store.keep_result(placements, _links(plan), replace(usual, **plan.outcome))
    for stage, seconds in (("reading", 3.94), ("loop", 125.0)):
        project.store.add_seconds(stage, seconds)
    for part in range(count):
        (project.folder / mosaic_name(part)).write_bytes(b"rendered elsewhere")
    (project.folder / "transforms.json").write_text("{}")
    return project


def report_of(project: Project) -> Page:
    path = project.folder / "report.html"
    write_report(project, path, mosaics=[project.folder / mosaic_name(part) for part in range(project.parts)])
    return Page.of(path.read_text(encoding="utf-8"))


def mosaic_name(part: int) -> str:
    return "mosaic.png" if part == 0 else f"mosaic-{part + 1}.png"


def _answer(project: Project, plan: Plan) -> None:
    corners = np.array([[0.0, 0.0], [59.0, 0.0], [59.0, 39.0], [0.0, 39.0]])
    for n, (i, j, role) in enumerate(plan.yes):
        points = np.concatenate([corners] * (n % 9 + 1))
        answer = Answer.yes(Landmarks(Pair(i, j), points, points), f"{len(points)} of 99 matches agree")
        project.store.keep_answer(AnswerEntry(answer, role, 0.25))
    for i, j, role, verdict, reason in plan.other:
        project.store.keep_answer(AnswerEntry(Answer(Pair(i, j), verdict, None, reason), role, 0.5))


def _place(plan: Plan, number: int) -> Placement:
    part = plan.parts[number]
    place = number - plan.parts.index(part)
    chain = np.array([[1.0, 0.0, STEP * place], [0.0, 1.0, DRIFT * place], [0.0, 0.0, 1.0]])
    final = np.array([[1.0, 0.0, STEP * place], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    return Placement(number, part, chain, final, 0.375 * place)


def _links(plan: Plan) -> list[LinkEntry]:
    accepted = [
        LinkEntry(Pair(i, j), LinkState.ACCEPTED, 5.0 + n, 1.0, 0.5 + n / 10)
        for n, (i, j, role) in enumerate(plan.yes)
        if (i, j) not in plan.rejected and role is not Role.ASIDE
    ]
    return [*accepted, *plan.rejected.values()]


@dataclass
class Tag:
    name: str
    attributes: dict[str, str | None]
    children: list[Tag | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def inner(self) -> list[Tag]:
        tags = []
        for child in self.children:
            if isinstance(child, Tag):
                tags += [child, *child.inner]
        return tags

    def all(self, name: str, **attributes: str) -> list[Tag]:
        wanted = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
        return [tag for tag in self.inner if tag.name == name and wanted.items() <= tag.attributes.items()]

    def one(self, name: str, **attributes: str) -> Tag:
        (tag,) = self.all(name, **attributes)
        return tag


@dataclass
class Page:
    source: str
    root: Tag

    @classmethod
    def of(cls, source: str) -> Page:
        reader = _Reader()
        reader.feed(source)
        reader.close()
        assert reader.open == [reader.root], "an element is not closed"
        return cls(source, reader.root)

    def part(self, name: str) -> Tag:
        (tag,) = [tag for tag in self.root.inner if tag.attributes.get("id") == name]
        return tag

    def rows(self, caption: str) -> list[dict[str, str]]:
        (table,) = [table for table in self.root.all("table") if table.one("caption").text == caption]
        titles = [head.text for head in table.all("th")]
        lines = [[cell.text for cell in row.all("td")] for row in table.one("tbody").all("tr")]
        return [dict(zip(titles, line, strict=True)) for line in lines]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.root = Tag("", {})
        self.open = [self.root]

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), f"<{tag}> has an attribute twice"
        new = Tag(tag, dict(attrs))
        self.open[-1].children.append(new)
        if tag not in ("img", "input", "link", "meta"):
            self.open.append(new)

    def handle_endtag(self, tag):
        assert self.open.pop().name == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        self.open[-1].children.append(data)
