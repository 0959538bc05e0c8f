"""The page's types, made from the messages: `python -m smalti.server.typescript --check` or `--write`."""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
import tokenize
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from smalti.annotation import messages
from smalti.annotation.messages import (
    AlignFrames,
    CheckLandmarks,
    GiveAnswer,
    Message,
    RemoveAnswer,
    SnapPoint,
    Step,
    TraceVessel,
)
from smalti.errors import OutputError, SmaltiError

PLACE = Path(__file__).parents[3] / "web" / "src" / "model" / "messages.ts"

REQUESTS: tuple[type[Message], ...] = (
    GiveAnswer,
    RemoveAnswer,
    Step,
    CheckLandmarks,
    SnapPoint,
    AlignFrames,
    TraceVessel,
)
"""Messages that the page sends. It may leave out fields with a default. Messages that it receives are complete."""

HEADER = "// Made from src/smalti/annotation/messages.py by python -m smalti.server.typescript --write: do not edit.\n"

PLAIN = {int: "number", float: "number", str: "string", bool: "boolean", NoneType: "null"}


def write_types() -> str:
    """Return the text of the page's file of types."""
    return "\n".join([HEADER, *map(_declare, _declared())])


def main(arguments: list[str] | None = None) -> int:
    """Write the file, or say whether it is stale."""
    parser = argparse.ArgumentParser(prog="python -m smalti.server.typescript", description=__doc__)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--check", action="store_true", help="fail where the file is not what the messages say")
    action.add_argument("--write", action="store_true", help="write the file")
    options = parser.parse_args(arguments)
    try:
        if options.write:
            _write()
        else:
            _check()
    except SmaltiError as error:
        print(f"smalti: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def _write() -> None:
    try:
        PLACE.parent.mkdir(parents=True, exist_ok=True)
        PLACE.write_text(write_types(), encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{PLACE}: cannot be written ({error.strerror}); run this in Smalti's repository") from None


def _check() -> None:
    try:
        there = PLACE.read_text(encoding="utf-8")
    except OSError:
        raise OutputError(f"{PLACE}: is not there; run python -m smalti.server.typescript --write") from None
    if there != write_types():
        raise OutputError(
            f"{PLACE}: is not what the messages say; run python -m smalti.server.typescript --write, mend the page"
        )


def _declared() -> Iterator[type[Message] | type[StrEnum]]:
    """Yield the messages and their parts, in the order of the file."""
    for found in vars(messages).values():
        if isinstance(found, type) and issubclass(found, Message | StrEnum) and found not in (Message, StrEnum):
            yield found


def _declare(found: type[Message] | type[StrEnum]) -> str:
    head = f"/** {inspect.cleandoc(found.__doc__ or '')} */\n"
    comments = _comments(found)
    if issubclass(found, StrEnum):
        if not comments:
            return f"{head}export type {found.__name__} = " + " | ".join(f'"{member}"' for member in found) + ";\n"
        members = [f'{_remark(comments.get(member.name))}  | "{member}"' for member in found]
        return f"{head}export type {found.__name__} =\n" + "\n".join(members) + ";\n"
    lines = []
    for name, field in found.model_fields.items():
        mark = "?" if found in REQUESTS and not field.is_required() else ""
        lines.append(f"{_remark(comments.get(name))}  {name}{mark}: {_type(field.annotation)};")
    return f"{head}export interface {found.__name__} {{\n" + "\n".join(lines) + "\n}\n"


def _remark(comment: str | None) -> str:
    return "" if comment is None else f"  /** {comment} */\n"


def _type(annotation: Any) -> str:
    """Return a Python type in TypeScript."""
    if get_origin(annotation) is Annotated:
        return _type(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return " | ".join(map(_type, get_args(annotation)))
    if get_origin(annotation) is list:
        element = _type(get_args(annotation)[0])
        return f"({element})[]" if " | " in element else f"{element}[]"
    if annotation in PLAIN:
        return PLAIN[annotation]
    assert isinstance(annotation, type), annotation
    assert issubclass(annotation, Message | StrEnum), annotation
    return annotation.__name__


def _comments(found: type[Any]) -> dict[str, str]:
    """Return the comments behind the fields of a class, by field name."""
    lines = inspect.getsource(found).splitlines(keepends=True)
    behind = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(iter(lines).__next__)
        if token.type == tokenize.COMMENT
    }
    (tree,) = ast.parse("".join(lines)).body
    assert isinstance(tree, ast.ClassDef)
    remarks = {}
    for statement in tree.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        comment = behind.get(statement.end_lineno or 0, "noqa")
        if isinstance(target, ast.Name) and not comment.startswith("noqa"):
            remarks[target.id] = comment
    return remarks


if __name__ == "__main__":
    sys.exit(main())
