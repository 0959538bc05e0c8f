"""Turn equations into MathML when the site is built: browsers show it without a script.

pymdownx.arithmatex finds `$…$` and `$$…$$` outside of code; this hook translates what it found.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_INLINE = re.compile(r'<span class="arithmatex">\\\((.*?)\\\)</span>', re.DOTALL)
_BLOCK = re.compile(r'<div class="arithmatex">\s*\\\[(.*?)\\\]\s*</div>', re.DOTALL)

# A prime as a superscript would be raised twice: the sign itself is high already.
_PRIME = re.compile(r"<msup>(<mi>[^<]*</mi>)<mi>&#x02032;</mi></msup>")


def on_page_content(content: str, page: Any, **_: Any) -> str:
    """Return the page with every equation as MathML."""
    content = _BLOCK.sub(lambda found: _equation(found[1], "block"), content)
    content = _INLINE.sub(lambda found: _equation(found[1], "inline"), content)
    if 'class="arithmatex"' in content:
        # Arithmatex writes equations in another form than this hook knows: readers would see raw LaTeX.
        from mkdocs.exceptions import PluginError  # noqa: PLC0415

        raise PluginError(f"{page.file.src_uri}: an equation was not translated, see docs/_hooks/equations.py")
    return content


def _equation(latex: str, display: str) -> str:
    mathml = _PRIME.sub(
        r"<mrow>\1<mo lspace='0' rspace='0'>&#x02032;</mo></mrow>",
        convert(html.unescape(latex.strip()), display=display),
    )
    return f'<div class="equation">{mathml}</div>' if display == "block" else mathml
