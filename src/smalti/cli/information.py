"""A project in words: what `info` prints, and what a build says at its end."""

from __future__ import annotations

from typing import Any

from smalti.project.project import Project


def closing_words(project: Project) -> str:
    """Say where things are, and how good."""
    info = project.info()
    frames = info["frames"]
    mosaics = "one mosaic" if info["parts"] == 1 else f"{info['parts']} mosaics"
    lines = [f"{frames['placed']} of {frames['read']} frames on {mosaics}: {project.folder / 'mosaic.png'}"]
    if not frames["placed"]:
        lines = [f"no two of the {frames['read']} frames could be matched: there is no mosaic"]
    lines += [f"  frame {number} is not placed: {reason}" for number, reason in list(project.not_placed.items())[:10]]
    if len(project.not_placed) > 10:
        lines.append(f"  … and {len(project.not_placed) - 10} more, see the report")
    lines += _errors(info)
    if info["rejected"]:
        lines.append(f"{info['rejected']} matches were rejected because they contradict the others, see the report")
    if info["unconfirmed"]:
        lines.append(f"{info['unconfirmed']} frames rest on a single match that nothing confirms, see the report")
    lines.append(f"report: {project.folder / 'report.html'}")
    return "\n".join(lines)


def described(info: dict[str, Any]) -> str:
    """Say everything that `info` knows, a line each."""
    frames, chain = info["frames"], info["chain"]
    lines = [
        f"source      {info['source']}",
        f"frames      {frames['read']} read, {frames['placed']} placed, {frames['set_aside']} set aside, "
        f"{frames['not_placed']} not placed",
        f"parts       {info['parts']}",
        f"registered  by {info['registered_by'] or 'keypoints'}",
        f"chain       {chain['links']} links, {chain['bridges']} bridges, {chain['checks']} checks",
        f"asked       {info['asked']}: {info['yes']} yes, {info['no']} no, {info['unsure']} unsure; "
        f"{info['rejected']} rejected; {info['attempts']} attempts in all",
        f"confirmed   {frames['placed'] - info['unconfirmed']} of {frames['placed']} placed frames, the others rest on "
        "a single match",
    ]
    if info["family"] is not None:
        lines.append(f"maps        {info['family']}")
    if info["lens"] is not None:
        lines.append(f"lens        {_say_lens(info['lens'])}")
    lines += _errors(info)
    lines.append("seconds     " + ", ".join(f"{name} {seconds:.1f}" for name, seconds in info["seconds"].items()))
    return "\n".join(lines)


def _errors(info: dict[str, Any]) -> list[str]:
    lines = []
    if info["chain_error_px"] is not None:
        lines.append(f"chain       {info['chain_error_px']:.2f} px off where loops were found")
    if info["left_out_px"] is not None:
        lines.append(f"now         {info['left_out_px']:.2f} px error on matches not used for a trial fit")
    if info["predicted_error_px"] is not None:
        lines.append(f"predicted   {info['predicted_error_px']:.2f} px{_say_outlook(info)}")
    return lines


def _say_lens(lens: dict[str, float]) -> str:
    second = f", k2 = {lens['k2']:.4g}" if lens["k2"] else ""
    return f"radial distortion k1 = {lens['k1']:.4g}{second} ({abs(lens['corner_percent']):.2g} % at the corners)"


def _say_outlook(info: dict[str, Any]) -> str:
    """Return the bound on the error, and what further answers would bring; nothing of projects that do not know."""
    if info["error_bound_px"] is None:
        return ""
    ahead = " / ".join(f"{px:.2f}" for px in info["ahead_px"].values())
    answers = " / ".join(info["ahead_px"])
    advice = "worth going on" if info["worth_going_on"] else "not worth going on"
    return (
        f", below {info['error_bound_px']:.2f} px nine times of ten\n"
        f"ahead       {ahead} px after {answers} answers more: {advice}"
    )
