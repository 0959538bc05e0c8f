"""What was rejected, where the sequence broke, which frames lie nowhere."""

from __future__ import annotations

import math

from smalti.project.entries import Role
from smalti.records import Pair, Verdict
from tests.report.projects import Plan, make_project, reject, report_of


def told(tmp_path, plan, name):
    with make_project(tmp_path, plan) as project:
        return report_of(project).part(name)


def test_a_rejected_link_is_named_with_its_contradiction_and_the_reason(tmp_path):
    section = told(tmp_path, reject(Plan(), 1, 4, Role.LOOP), "rejected")
    # Believed links: residuals 0.5 to 1.1, χ² 5 to 11; (0, 1), (1, 2), (3, 4), (4, 5) touch frames 1 and 4.
    assert section.one("li").text == (
        "Frames 1 (shot1.jpg) and 4 (shot4.jpg), role loop. Contradicts the 4 accepted links of these two frames "
        "by 33.2 px (median of accepted links: 0.80 px); χ² 4777 with 8 degrees of freedom (median: 8). "
        "Not used. The matcher said: 32 of 99 matches agree."
    )


def test_the_worst_rejected_link_comes_first(tmp_path):
    plan = reject(reject(Plan(), 1, 4, Role.LOOP, chi2=900.0), 2, 5, Role.LOOP, chi2=1200.0)
    section = told(tmp_path, plan, "rejected")
    assert [item.text[:8] for item in section.all("li")] == ["Frames 2", "Frames 1"]


def test_a_rejected_link_between_mosaics_tells_where_its_frames_lie(tmp_path):
    plan = Plan(parts=[0, 0, 0, 0, 1, 1], yes=[(n, n + 1, Role.CHAIN) for n in (0, 1, 2, 4)])
    plan = reject(plan, 1, 4, Role.LOOP, chi2=math.inf, residual_px=math.inf)
    section = told(tmp_path, plan, "rejected")
    assert "Frame 1 lies on mosaic 1, frame 4 lies on mosaic 2. No other match joins" in section.text
    assert "inf" not in section.text


def test_where_all_was_accepted_the_page_says_so(tmp_path):
    with make_project(tmp_path) as project:
        page = report_of(project)
    assert "None: all matches agree." in page.part("rejected").text
    assert "rejected" not in page.root.one("header").text


def test_breaks_are_told_with_what_became_of_them(tmp_path):
    plan = Plan(parts=[0, 0, 0, 0, None, None], outcome={"breaks": (Pair(1, 2), Pair(3, 4)), "unjoined": (Pair(3, 4),)})
    first, second = told(tmp_path, plan, "breaks").all("li")
    assert first.text == "Frames 1 (shot1.jpg) and 2 (shot2.jpg): answers joined the two sides later."
    assert second.text == (
        "Frames 3 (shot3.jpg) and 4 (shot4.jpg): no answer joined the two sides. "
        "Frame 3 lies on mosaic 1, frame 4 lies on no mosaic."
    )


def test_accepted_links_of_less_weight_are_counted(tmp_path):
    with make_project(tmp_path) as project:
        assert "less than half of the full weight" not in report_of(project).part("asked").text
        links = project.links
        lighter = [type(link)(link.pair, link.state, link.chi2, 0.4, link.residual_px) for link in links[:2]]
        project.store.keep_result(project.placements, [*lighter, *links[2:]], project.outcome)
        assert "2 accepted links have less than half of the full weight" in report_of(project).part("asked").text


def test_frames_without_a_place_are_listed_by_reason(tmp_path):
    plan = Plan(parts=[0, None, None, None, 0, 0], reasons={1: "blurred", 2: "blurred", 5: "dark"})
    plan.yes = [(0, 4, Role.BRIDGE), (4, 5, Role.ASIDE)]
    section = told(tmp_path, plan, "frames")
    assert [head.text for head in section.all("h3")] == [
        "Not placed: 3 frames",
        "Set aside at first, placed next to a neighbour at the end: 1 frame",
        "Not confirmed: 2 frames",
    ]
    assert [item.text for item in section.all("li")] == [
        "blurred: frames 1, 2",
        "matches no other frame: frame 3",
        "dark: frame 5",
        "a single match joins them to the others, and no other match confirms it: frames 4, 5",
    ]


def test_a_yes_that_only_places_a_frame_is_not_called_accepted(tmp_path):
    plan = Plan(reasons={5: "dark"})
    plan.yes[4] = (4, 5, Role.ASIDE)
    with make_project(tmp_path, plan) as project:
        rows = report_of(project).rows("All answers, in the order in which they were given")
    assert (rows[4]["role"], rows[4]["state"], rows[4]["weight"]) == ("set aside", "not in the fit", "–")


def test_the_picture_of_pairs_has_every_answer_in_its_colour_on_both_sides(tmp_path):
    plan = reject(Plan(), 1, 4, Role.CHAIN)
    plan.other.append((2, 5, Role.LOOP, Verdict.UNSURE, ""))
    with make_project(tmp_path, plan) as project:
        figure = report_of(project).root.one("figure", class_="pairs")
    cells = {path.attributes["class"]: path.attributes["d"] for path in figure.one("svg").all("path")}
    assert cells["cell rejected"] == "M4 1h1v1h-1zM1 4h1v1h-1z"
    assert cells["cell no"] == "M3 0h1v1h-1zM0 3h1v1h-1z"
    assert cells["cell unsure"] == "M5 2h1v1h-1zM2 5h1v1h-1z"
    assert cells["cell yes"] == "M5 0h1v1h-1zM0 5h1v1h-1z"
    assert cells["cell chain"].count("z") == 2 * 6
    assert [item.text for item in figure.all("li")] == [
        "no overlap: 1",
        "cannot tell: 1",
        "accepted links of the chain, bridges and checks: 6",
        "other accepted links: 1",
        "rejected: 1",
    ]
