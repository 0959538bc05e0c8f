from __future__ import annotations

import base64
import io
import os
import re
import time

import numpy as np
import pytest
from PIL import Image

from smalti import __version__
from smalti.errors import ProjectError, UsageError
from smalti.interchange.transforms_json import CONVENTION
from smalti.project.entries import AnswerEntry, Role
from smalti.records import Answer, Pair, Verdict
from smalti.report import report_page
from smalti.report.findings import name_source
from smalti.report.report_page import write_report
from smalti.report.report_pictures import THUMBNAIL_SIDE
from tests.project.entries import forget_outcome
from tests.report.projects import BINDING, Plan, make_project, mosaic_name, reject, report_of

NASTY = '<b>&"x".jpg'


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    plan = reject(Plan(), 1, 4, Role.LOOP)
    plan.other.append((2, 5, Role.LOOP, Verdict.UNSURE, "too dark"))
    with make_project(tmp_path_factory.mktemp("plain"), plan) as project:
        yield project


@pytest.fixture(scope="module")
def page(project):
    return report_of(project)


def test_the_header_tells_frames_placed_and_errors_of_the_project(page):
    header = page.root.one("header")
    assert header.one("h1").text == "source"
    assert header.one("p", class_="lead").text == "Placed 6 of 6 frames on one mosaic."
    assert header.one("p", class_="error").text == (
        "Error: 1.26 px measured on matches not used for the fit, 0.55 px predicted. "
        "With the chain alone: 26.8 px measured on the loops, 7.12 px predicted."
    )
    assert "1 match was rejected" in header.text


def test_the_header_tells_the_lens_where_there_is_one(page, tmp_path):
    assert "Lens" not in page.root.one("header").text
    with make_project(tmp_path, Plan(outcome={"lens": (0.025, 0.0)})) as bent:
        told = report_of(bent).root.one("header").text
    assert "Lens: radial distortion k₁ = 0.025 (3.6 % at the corners)" in told


def test_the_header_links_the_files_that_are_there_relative_to_the_page(page):
    links = [link.attributes["href"] for link in page.root.one("nav", aria_label="Files").all("a")]
    assert links == ["mosaic.png", "transforms.json"]


def test_links_lead_to_the_files_from_a_page_elsewhere(project, tmp_path):
    deep = tmp_path / "a b" / "page.html"
    deep.parent.mkdir()
    write_report(project, deep, mosaics=[project.folder / "mosaic.png"])
    found = re.search(r'href="([^"]+/mosaic\.png)"', deep.read_text())
    assert (deep.parent / found[1]).resolve() == (project.folder / "mosaic.png").resolve()


def test_the_time_is_that_of_the_mosaic(project, tmp_path):
    mosaic = tmp_path / "mosaic.png"
    mosaic.touch()
    os.utime(mosaic, (0, 86400 + 3720))
    write_report(project, tmp_path / "report.html", mosaics=[mosaic])
    assert "Rendered 1970-01-02 01:02 UTC." in (tmp_path / "report.html").read_text()


def test_the_chain_error_is_not_invented_where_there_was_no_loop(tmp_path):
    plan = Plan(outcome={"chain_error_px": None, "left_out_px": None})
    with make_project(tmp_path, plan) as project:
        error = report_of(project).root.one("p", class_="error").text
    assert error == (
        "Error: not measured, because there are too few matches, 0.55 px predicted. "
        "With the chain alone: 7.12 px predicted, not measured because no loop was found."
    )


def test_the_picture_is_the_projects_mosaic(project, page):
    picture = page.part("mosaic").one("a").one("img")
    shown = np.asarray(_decode(picture.attributes["src"]).convert("RGB"), dtype=float)
    truth = project.mosaic().image(2000)
    assert shown.shape[:2] == truth.shape[:2] == (40, 165)
    assert np.sqrt(np.mean((shown - truth[:, :, :3]) ** 2)) < 12
    assert picture.attributes["alt"] == "Mosaic 1, made of 6 frames"


def test_what_was_asked_is_counted_by_role(page):
    summary = {row["role"]: row for row in page.rows("Questions by role")}
    told = {
        role: [row[key] for key in ("asked", "yes", "no", "cannot tell", "rejected")] for role, row in summary.items()
    }
    assert told == {
        "chain": ["5", "5", "0", "0", "0"],
        "check": ["1", "1", "0", "0", "0"],
        "loop": ["4", "2", "1", "1", "1"],
        "all": ["10", "8", "1", "1", "1"],
    }
    assert "the budget was spent" in page.part("asked").text
    assert "links of the chain 1.25 times and other links of the matcher 0.88 times as much." in page.part("asked").text


def test_every_answer_has_its_row_with_its_numbers(project, page):
    rows = page.rows("All answers, in the order in which they were given")
    assert len(rows) == len(project.answers) == 10
    assert list(rows[6].values()) == (
        [
            "7",
            "0",
            "5",
            "loop",
            "matcher",
            "yes",
            "28 of 99 matches agree",
            "28",
            "1.10",
            "11.0",
            "1.000",
            "accepted",
            "0.25",
        ]
    )
    assert list(rows[7].values())[7:12] == ["32", "33.25", "4776.6", "0.000", "rejected"]
    assert list(rows[8].values()) == (
        ["9", "0", "3", "loop", "matcher", "no", "4 of 14 matches agree, 11 needed", *["–"] * 5, "0.50"]
    )
    assert rows[9]["verdict"] == "cannot tell"


def test_every_frame_has_its_row_with_its_place(page):
    rows = page.rows("Where each frame lies")
    assert [row["frame"] for row in rows] == list("012345")
    # The centre of a 60 × 40 frame is (29.5, 19.5), and each lies 21 px right of the one before.
    assert list(rows[2].values()) == ["2", "shot2.jpg", "1", "71.50", "19.50", "0.000", "1.00000", "0.75", "yes"]


def test_time_settings_version_and_convention_are_told(page):
    assert [(row["stage"], row["time"]) for row in page.rows("Time spent in each stage, over all sessions")] == [
        ("reading the frames, finding keypoints", "3.9 s"),
        ("asking questions", "2 min"),
        ("all", "2 min"),
    ]
    settings = {row["setting"]: row["value"] for row in page.rows("Settings of the build")}
    assert settings["frame size"] == "60 × 40 px"
    assert settings["source max size"] == "not set"
    assert settings["seed"] == str(BINDING.seed)
    assert settings["maps"] == "projective"
    made = page.part("made").text
    assert CONVENTION in made
    assert f"Made by Smalti {__version__}." in made


def test_nothing_outside_the_page_is_referenced(page):
    assert not re.search(r"https?://|url\(|@import", page.source)
    for tag in page.root.inner:
        for key in ("src", "href"):
            value = tag.attributes.get(key) or "#"
            assert tag.name == "a" or value.startswith(("data:", "#")), f"<{tag.name} {key}={value[:40]}>"


def test_links_within_the_page_lead_somewhere_and_names_are_unique(page):
    names = [tag.attributes["id"] for tag in page.root.inner if "id" in tag.attributes]
    assert len(names) == len(set(names))
    inside = {tag.attributes["href"][1:] for tag in page.root.all("a") if tag.attributes["href"].startswith("#")}
    assert inside <= set(names)
    assert {"mosaic", "drift", "asked", "frames", "made", "rejected"} <= inside


def test_the_same_project_gives_the_same_page(project, page):
    time.sleep(0.01)
    assert report_of(project).source == page.source


def test_what_users_named_is_escaped_everywhere(tmp_path):
    plan = Plan(names=[NASTY, *[f"z{n}.jpg" for n in range(5)]], parts=[0, None, 0, 0, 0, 0], reasons={1: "<i>blurred"})
    plan = reject(plan, 0, 4, Role.LOOP)
    plan.other[0] = (0, 3, Role.LOOP, Verdict.NO, "<script>alert(1)</script>")
    folder = tmp_path / '<u>"&'
    with make_project(folder, plan) as project:
        page = report_of(project)
    assert page.rows("Where each frame lies")[0]["label"] == NASTY
    assert NASTY in page.part("rejected").text
    assert "<i>blurred: frame 1" in page.part("frames").text
    assert any(
        row["reason"] == "<script>alert(1)</script>"
        for row in page.rows("All answers, in the order in which they were given")
    )
    assert '<u>"&' in page.part("made").text
    assert not any(tag.name in ("b", "i", "u") for tag in page.root.inner)
    assert len(page.root.all("script")) == 2


def test_a_file_that_must_be_quoted_in_an_address_is(tmp_path):
    with make_project(tmp_path) as project:
        odd = project.folder / 'mo#s "1"?.png'
        odd.touch()
        write_report(project, project.folder / "report.html", mosaics=[odd])
    assert 'href="mo%23s%20%221%22%3F.png"' in (project.folder / "report.html").read_text()


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("/films/over the bay.mp4", "over the bay.mp4"),
        ("shots/*.tif", "shots/*.tif"),
        (["a/1.png", "a/2.png"], "2 images"),
        (".", "."),
    ],
)
def test_a_source_is_called_by_its_name(location, name):
    assert name_source(location) == name


def test_several_parts_have_a_picture_and_a_drift_each(tmp_path):
    plan = Plan(parts=[0, 0, 0, 0, 1, 1], yes=[(0, 1, Role.CHAIN), (1, 2, Role.CHAIN), (2, 3, Role.CHAIN)])
    plan.yes.append((4, 5, Role.CHAIN))
    plan.outcome = {"breaks": (Pair(3, 4),), "unjoined": (Pair(3, 4),)}
    with make_project(tmp_path, plan) as project:
        page = report_of(project)
    assert "Placed 6 of 6 frames on 2 separate mosaics: 4 and 2 frames." in page.root.one("header").text
    assert "Error of the largest mosaic: 1.26 px" in page.root.one("header").text
    assert [link.one("img").attributes["alt"] for link in page.part("mosaic").all("a")] == [
        "Mosaic 1, made of 4 frames",
        "Mosaic 2, made of 2 frames",
    ]
    assert [link.attributes["href"] for link in page.part("mosaic").all("a")] == [mosaic_name(0), mosaic_name(1)]
    assert "placed by homographies" in page.part("mosaic").text
    assert len(page.part("drift").all("svg")) == 4
    assert [row["mosaic"] for row in page.rows("Where each frame lies")] == list("111122")


def test_a_project_of_which_nothing_could_be_placed_still_has_a_page(tmp_path):
    plan = Plan(parts=[None] * 6, yes=[], outcome={"breaks": (Pair(0, 1),), "unjoined": (Pair(0, 1),)})
    with make_project(tmp_path, plan) as project:
        page = report_of(project)
    assert "Placed none of 6 frames" in page.root.one("header").text
    assert len(page.root.all("img")) == len(page.part("frames").all("img")) == 6
    assert "Not placed: 6 frames" in page.part("frames").text


def test_frames_that_lie_on_no_mosaic_are_pictured_with_the_reason_and_what_to_try(tmp_path, monkeypatch):
    monkeypatch.setattr(report_page, "MOST_THUMBNAILS", 2)
    reasons = {1: "too blurred (sharpness 3 % of its neighbours')", 3: "black", 4: "black"}
    parts = [None if n in reasons else 0 for n in range(6)]
    yes = [(0, 2, Role.CHAIN), (2, 5, Role.CHAIN)]
    with make_project(tmp_path, Plan(parts=parts, reasons=reasons, yes=yes)) as project:
        page = report_of(project)
    first, second = page.part("frames").one("div", class_="thumbnails").all("figure")
    assert first.text == (
        "1 (shot1.jpg): too blurred (sharpness 3 % of its neighbours'). Record this stretch again, slower or in focus."
    )
    assert second.text.startswith("3 (shot3.jpg): black. Nothing stands out")
    for figure in (first, second):
        picture = figure.one("img").attributes["src"]
        image = Image.open(io.BytesIO(base64.b64decode(picture.partition(",")[2])))
        assert max(image.size) == THUMBNAIL_SIDE
    assert "1 more frame is not pictured" in page.part("frames").text


def test_a_project_that_is_not_finished_is_refused(tmp_path):
    with make_project(tmp_path) as project:
        forget_outcome(project.store)
        with pytest.raises(ProjectError, match="not finished"):
            write_report(project, tmp_path / "report.html", mosaics=[])
    assert not (tmp_path / "report.html").exists()


def test_what_was_answered_since_then_is_not_part_of_it(tmp_path):
    with make_project(tmp_path) as project:
        before = len(project.answers)
        project.store.keep_answer(AnswerEntry(Answer.no(Pair(1, 5)), Role.LOOP, 0.1))
        assert len(report_of(project).rows("All answers, in the order in which they were given")) == before


def test_files_that_do_not_belong_to_the_parts_are_refused(project, tmp_path):
    with pytest.raises(UsageError, match="2 files of mosaics for 1 parts"):
        write_report(project, tmp_path / "report.html", mosaics=[tmp_path / "a.png", tmp_path / "b.png"])
    with pytest.raises(ProjectError, match=r"a\.png: the mosaic cannot be read"):
        write_report(project, tmp_path / "report.html", mosaics=[tmp_path / "a.png"])


def _decode(address: str) -> Image.Image:
    return Image.open(io.BytesIO(base64.b64decode(address.removeprefix("data:image/webp;base64,"))))
