"""HTML and SVG as text: whatever enters is escaped, unless it is markup already."""

from __future__ import annotations

from html import escape

_WITHOUT_END = frozenset({"img", "input", "link", "meta"})


class Markup(str):
    """Text that is HTML already. Formatting it into other text gives plain text, which is escaped again."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | float | bool | None) -> Markup:
    """Return an element with its children.

    Of an attribute's name a `_` at the end is dropped, others become `-`; True stands alone, False and None are left
    out.
    """
    written = "".join(
        _attribute(key.rstrip("_").replace("_", "-"), value)
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _WITHOUT_END:
        assert not children, f"<{name}> has no content"
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str) -> Markup:
    """Return the children one after the other."""
    return Markup("".join(child if isinstance(child, Markup) else escape(child) for child in children))


def _attribute(name: str, value: str | float | bool) -> str:
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
