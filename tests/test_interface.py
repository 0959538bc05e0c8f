"""The public interface: what the reference lists, and that every name is documented and typed."""

from __future__ import annotations

import enum
import inspect
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType

import pytest

import smalti
import smalti_lab
from smalti.annotation.session import QueueName
from smalti.building.build_settings import BuildSettings
from smalti.frames.source_settings import SourceSettings
from smalti.geometry.homographies import FAMILIES, FamilyName
from tests.docs.hooks import hook

pages = hook("pages")
NAMES = [(package, name) for package in (smalti, smalti_lab) for name in package.__all__]


@pytest.mark.parametrize(("package", "groups"), [(smalti, pages.API_GROUPS), (smalti_lab, pages.LAB_GROUPS)])
def test_the_reference_lists_every_public_name_once(package, groups):
    listed = [name for names in groups.values() for name in names]
    assert sorted(listed) == sorted(package.__all__)
    written = pages.write_api()
    for name in listed:
        assert written.count(f"::: {package.__name__}.{name}\n") == 1


@pytest.mark.parametrize(("package", "name"), NAMES, ids=lambda part: getattr(part, "__name__", part))
def test_every_public_name_has_a_docstring(package, name):
    public = getattr(package, name)
    if inspect.isclass(public) or inspect.isfunction(public):
        assert (public.__doc__ or "").strip()
        # What Python writes itself into a dataclass or an enumeration is no documentation.
        assert not public.__doc__.startswith(f"{name}(")
    else:
        assert name == "Matcher"


def callables_of(package, name):
    """Yield every function and public method of a name that a user may call."""
    public = getattr(package, name)
    if inspect.isfunction(public):
        yield name, public
    elif inspect.isclass(public) and not issubclass(public, enum.Enum):
        shown = pages.MEMBERS.get(name)
        for base in public.__mro__:
            if not base.__module__.startswith("smalti"):
                continue
            for member, value in vars(base).items():
                is_shown = not member.startswith("_") if shown is None else member in shown
                function = value.fget if isinstance(value, property) else getattr(value, "func", value)
                function = getattr(function, "__func__", function)
                if is_shown and inspect.isfunction(function):
                    yield f"{name}.{member}", function


@pytest.mark.parametrize(("package", "name"), NAMES, ids=lambda part: getattr(part, "__name__", part))
def test_every_public_function_and_method_is_documented_and_typed(package, name):
    for label, function in callables_of(package, name):
        assert (function.__doc__ or "").strip(), label
        signature = inspect.signature(function)
        assert signature.return_annotation is not inspect.Signature.empty, label
        untyped = [
            parameter.name
            for parameter in list(signature.parameters.values())
            if parameter.annotation is inspect.Parameter.empty and parameter.name not in ("self", "cls")
        ]
        assert not untyped, f"{label}: {untyped}"
        assert all(p.kind is not p.VAR_KEYWORD for p in signature.parameters.values()), label


def test_the_members_of_the_reference_exist():
    for name, members in pages.MEMBERS.items():
        public = getattr(smalti, name)
        # A field without a default is no attribute of the class.
        known = {*dir(public), *getattr(public, "__dataclass_fields__", ())}
        assert set(members) <= known, name


DEFAULTS = MappingProxyType(
    {
        field.name: getattr(settings, field.name)
        for settings in (BuildSettings(), SourceSettings())
        for field in fields(settings)
        if field.name != "source"
    }
)


@pytest.mark.parametrize("function", [smalti.build, smalti.annotate, smalti.Session.open])
def test_keywords_have_the_names_and_defaults_of_the_settings(function):
    keywords = inspect.signature(function).parameters
    # A session asks as long as the person likes.
    expected = set(DEFAULTS) - (set() if function is smalti.build else {"budget"})
    assert {name for name in keywords if name in DEFAULTS} == expected
    assert {name: keywords[name].default for name in expected} == {name: DEFAULTS[name] for name in expected}
    assert all(keywords[name].kind is inspect.Parameter.KEYWORD_ONLY for name in expected)


def test_a_mistyped_keyword_is_refused_at_once(tmp_path):
    with pytest.raises(TypeError, match="buget"):
        smalti.build(tmp_path / "none.mp4", buget=3)


def test_names_for_editors_are_those_of_the_program():
    assert FamilyName.__args__ == tuple(FAMILIES)
    assert QueueName.__args__ == ("all", "doubtful")


def test_a_reference_and_a_mask_may_be_a_number_and_a_path(tmp_path):
    # The input is missed only after the settings were accepted.
    with pytest.raises(smalti.SmaltiError, match=r"none\.mp4"):
        smalti.build(tmp_path / "none.mp4", tmp_path / "out", reference=3, mask=Path("mask.png"))
