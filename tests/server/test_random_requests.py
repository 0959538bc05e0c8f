"""Random requests, well-formed and not, made from the description of the interface."""

from __future__ import annotations

from collections import Counter

import hypothesis
import pytest
import schemathesis
from hypothesis import HealthCheck
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from smalti.server.app import make_app
from smalti.server.security import Guard
from tests.server.dispatchers import ADDRESS, PAGE
from tests.server.projects import prepared_tiny, real_desk

MALFORMED, WELL_FORMED = 300, 100
FRAMES = 12
FIXED = hypothesis.settings(
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[hypothesis.Phase.generate],
)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    base = tmp_path_factory.mktemp("tiny")
    with real_desk(prepared_tiny(base), base / "asked" / "tiny.smalti") as (dispatcher, session):
        app = make_app(dispatcher, Guard.of_address("127.0.0.1", "127.0.0.1", 8000, None), PAGE)
        schema = schemathesis.openapi.from_asgi("/api/openapi.json", app, headers={"host": "127.0.0.1:8000"})
        # The stream of events takes no input and has no end.
        yield schema.exclude(path="/api/events"), session


def ask_at_random(schema, mode, count, look, prepare=lambda case: None):
    """Send so many requests, each prepared, and let `look` judge each; return how many had which status."""
    seen = Counter()

    @hypothesis.settings(FIXED, max_examples=count)
    @hypothesis.given(case=schema.as_strategy(generation_mode=mode))
    def ask(case):
        prepare(case)
        response = case.call(base_url=ADDRESS)
        seen[response.status_code] += 1
        assert response.status_code < 500, response.text
        look(case, response)

    ask()
    return seen


def test_malformed_requests_are_refused_and_change_nothing(world):
    schema, session = world
    before = session.revision

    def look(case, response):
        assert session.revision == before, case.as_curl_command()
        if case.method == "POST":
            assert 400 <= response.status_code < 500, case.as_curl_command()

    seen = ask_at_random(schema, GenerationMode.NEGATIVE, MALFORMED, look)
    assert seen.total() >= MALFORMED
    assert seen[422] >= MALFORMED // 3


def set_in_the_project(case, session):
    """Bring frame numbers into the project, the earlier one first, and name the revision that is there."""
    for values in (case.path_parameters, case.body):
        if not isinstance(values, dict):
            continue
        values.update({name: int(values[name]) % FRAMES for name in "ijn" if name in values})
        if values.keys() >= {"i", "j"}:
            values["i"], values["j"] = sorted((values["i"], values["j"]))
        if "seen_revision" in values:
            values["seen_revision"] = session.revision


def test_well_formed_requests_are_answered_as_described(world):
    schema, session = world

    def look(case, response):
        # A schema cannot say that the earlier frame comes first.
        case.validate_response(response, excluded_checks=[positive_data_acceptance])

    seen = ask_at_random(
        schema, GenerationMode.POSITIVE, WELL_FORMED, look, lambda case: set_in_the_project(case, session)
    )
    assert seen.total() >= WELL_FORMED
    assert seen[200] >= WELL_FORMED // 3
