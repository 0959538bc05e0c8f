"""The page's types are those of the messages."""

from __future__ import annotations

import pytest

from smalti.server import typescript


def test_the_pages_types_are_fresh():
    assert typescript.main(["--check"]) == 0, "run python -m smalti.server.typescript --write"


def test_a_stale_file_is_said_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(typescript, "PLACE", tmp_path / "messages.ts")
    assert typescript.main(["--check"]) == 1
    assert "is not there" in capsys.readouterr().err
    assert typescript.main(["--write"]) == 0
    assert typescript.main(["--check"]) == 0
    typescript.PLACE.write_text(typescript.PLACE.read_text() + "\n")
    assert typescript.main(["--check"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    "line",
    [
        'export type Verdict = "yes" | "no" | "unsure";',
        '  /** moved to where the frames correlate best */\n  | "snapped"',
        "  landmarks?: Landmark[];",
        "  seen_revision: number;",
        "  progress: Progress | null;",
        "  more_is_bound: boolean;",
        "  /** px of the moving frame that are searched */\n  radius?: number;",
        "/** Why a request cannot be done, and what to do. */\nexport interface Refusal {\n  explanation: string;\n}",
    ],
)
def test_a_field_is_written_as_typescript_says_it(line):
    assert f"\n{line}\n" in typescript.write_types()
