"""See that the built site loads nothing from other hosts.

`python docs/_hooks/local_assets.py site` checks and exits with 1 if something is found. The build calls the same check.
Ordinary links that a reader may click are allowed.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

_UNUSED_SCRIPT = re.compile(r"https?://[^\"'`\s]*/(mermaid@[^\"'`\s]*|resize-observer-polyfill)(?=[\"'`])")
"""Scripts that Material would fetch for diagrams, which these pages do not have, and for browsers of before 2020."""

_REMOTE = re.compile(r"^\s*(https?:)?//", re.IGNORECASE)
_CSS_ADDRESS = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s;]+)""", re.IGNORECASE)
_JS_ADDRESS = re.compile(r"""["'`](https?://[^"'`\s]+)["'`]""")
_JS_ALLOWED = (
    "http://www.w3.org/",  # names of XML vocabularies, never fetched
    # The number of stars, asked for only if repo_url names a repository on a known host: it is not set.
    "https://api.github.com/",
    "https://${e}/api/v4/projects/",
)


def on_post_build(config: Any) -> None:
    """Blank the addresses of unused scripts, then refuse a site that would load from elsewhere."""
    site = Path(config["site_dir"])
    for script in site.rglob("*.js"):
        text = script.read_text(encoding="utf-8")
        blanked = _UNUSED_SCRIPT.sub("data:text/javascript,", text)
        if blanked != text:
            script.write_text(blanked, encoding="utf-8")
    found = remote_assets(site)
    if found:
        from mkdocs.exceptions import PluginError  # noqa: PLC0415

        raise PluginError("the site would load from other hosts:\n  " + "\n  ".join(found))


def remote_assets(site: Path) -> list[str]:
    """Return what pages, styles and scripts would load from other hosts, a line each."""
    found: list[str] = []
    for path in sorted(site.rglob("*")):
        if path.suffix in (".html", ".svg"):
            addresses = _assets_of_page(path.read_text(encoding="utf-8"))
        elif path.suffix == ".css":
            addresses = _CSS_ADDRESS.findall(path.read_text(encoding="utf-8"))
        elif path.suffix == ".js":
            addresses = [
                address
                for address in _JS_ADDRESS.findall(path.read_text(encoding="utf-8"))
                if not address.startswith(_JS_ALLOWED)
            ]
        else:
            continue
        found += [f"{path.relative_to(site)}: {address}" for address in addresses]
    for needed in ("search/search_index.json", "assets/javascripts/workers", "assets/stylesheets"):
        if not (site / needed).exists():
            found.append(f"{needed}: is missing, search or style would not work from this folder")
    return found


def _assets_of_page(text: str) -> list[str]:
    page = _Page()
    page.feed(text)
    return page.addresses


class _Page(HTMLParser):
    """Collects addresses on other hosts that a browser loads by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Look at every attribute that makes a browser load something."""
        self._in_style = tag == "style"
        for name, value in attributes:
            loads = name in ("src", "srcset", "poster", "data") or (name in ("href", "xlink:href") and tag != "a")
            if value and loads and _REMOTE.match(value) and not self._is_relation(tag, attributes):
                self.addresses.append(value)
            if value and name == "style":
                self.addresses += _CSS_ADDRESS.findall(value)

    def handle_data(self, text: str) -> None:
        """Look into styles that stand in the page."""
        if self._in_style:
            self.addresses += _CSS_ADDRESS.findall(text)

    @staticmethod
    def _is_relation(tag: str, attributes: list[tuple[str, str | None]]) -> bool:
        """Tell whether a link names another page only: browsers do not load it."""
        return tag == "link" and dict(attributes).get("rel") in ("canonical", "next", "prev")


if __name__ == "__main__":
    problems = remote_assets(Path(sys.argv[1] if len(sys.argv) > 1 else "site"))
    print("\n".join(problems) or "the site loads nothing from other hosts")
    sys.exit(bool(problems))
