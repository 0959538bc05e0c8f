from __future__ import annotations

from smalti.report.markup import Markup, element, join


def test_text_is_escaped_in_content_and_in_attributes():
    assert element("p", '<b>&"', title='"<&') == '<p title="&quot;&lt;&amp;">&lt;b&gt;&amp;&quot;</p>'


def test_markup_is_kept_and_loses_its_privilege_when_formatted_into_text():
    inner = element("b", "x")
    assert element("p", inner, " and ", inner) == "<p><b>x</b> and <b>x</b></p>"
    assert join(f"{inner}!") == "&lt;b&gt;x&lt;/b&gt;!"


def test_attributes_are_named_as_html_does():
    assert element("input", class_="a", data_x=1, checked=True, open=False, id=None) == (
        '<input class="a" data-x="1" checked>'
    )
    assert isinstance(element("input"), Markup)
