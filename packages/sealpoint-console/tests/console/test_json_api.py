# SPDX-License-Identifier: Apache-2.0
"""The console for programs: the same rights, bindings and errors as for people."""

from http import HTTPStatus
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode

from sealpoint.signing import Verdict
from sealpoint_console._json_api import operations
from sealpoint_console._openapi import openapi
from tests.console.scene import WIDER, Served, until
from tests.effort import SOAKING

_API = "/api/v1"
_JSON = "application/json"


def test_a_program_sees_what_people_see(served: Served) -> None:
    """Threads, entries, requests and all the rest, as the command line's documents have them."""
    request = served.scene.ask()
    served.seen()
    with served.client("vera") as client:
        (thread,) = client.get(f"{_API}/threads").json()["threads"]
        for path in ("rollouts", "people", "health", "audit", "openapi.json"):
            assert client.get(f"{_API}/{path}").status_code == 200, path
        entries = client.get(f"{_API}/threads/{thread['id']}/entries?limit=2").json()
        (listed,) = client.get(f"{_API}/requests").json()["requests"]
        shown = client.get(f"{_API}/requests/{request}").json()

    assert (thread["thread"], thread["state"]) == ("invoice-17", "waits for approval")
    assert [each["record"]["kind"] for each in entries["entries"]] == ["request", "checkpoint"]
    assert listed["id"] == shown["id"] == request
    assert shown["release"] is not None


def test_a_program_acts_on_what_it_was_shown(served: Served) -> None:
    """A pause names where the thread stood; a second one with the same is told what moved."""
    served.scene.ask()
    served.seen()
    with served.client("olga") as client:
        (thread,) = client.get(f"{_API}/threads").json()["threads"]
        path = f"{_API}/threads/{thread['id']}"
        expect = client.get(path).json()["expect"]
        done = client.post(f"{path}/pause", json={"reason": "odd", "expect": expect})
        again = client.post(f"{path}/unpause", json={"reason": "well", "expect": expect})
        other = client.post(f"{path}/pause", json={"reason": "odd", "expect": "{}"})

    assert done.status_code == 200
    assert (again.status_code, again.json()["error"]["code"]) == (409, "moved")
    assert (other.status_code, other.json()["error"]["code"]) == (400, "usage")


def test_a_program_relays_the_word_that_a_person_signed(served: Served) -> None:
    """What `approve --offline` wrote is recorded; one on another request is refused."""
    scene = served.scene
    request = scene.ask()
    served.seen()
    with scene.open("ann") as store:
        word = store.attest(request, Verdict.APPROVE, reason="as agreed")
    body = {
        "attestation": {
            name: getattr(word, name)
            for name in ("scheme", "credential", "statement", "verdict", "reason", "proof")
        }
    }
    with served.client("vera") as client:
        wrong = client.post(f"{_API}/requests/{'0' * 64}/attestations", json=body)
        done = client.post(f"{_API}/requests/{request}/attestations", json=body)
        forged = {"attestation": body["attestation"] | {"reason": "another"}}
        refused = client.post(f"{_API}/requests/{request}/attestations", json=forged)

    assert wrong.status_code == 400
    assert done.status_code == 200
    assert refused.json()["error"]["code"] == "forged"
    with scene.open() as store:
        assert store.request(request).approved_by == ("ann",)


def test_nobody_is_told_anything(served: Served) -> None:
    """Every operation without a session is the one error, and none of them is forgotten."""
    names = {"thread": "0" * 32, "request": "0" * 64}
    with served.client() as client:
        for each in operations():
            path = _API + each.path.format(**names)
            answer = client.request(each.method, path, json={} if each.body else None)
            assert answer.status_code == 401, path
            assert answer.json()["error"]["code"] == "no-right"


def test_every_operation_has_a_name_of_its_own() -> None:
    """Generators make functions of these."""
    names = [
        each["operationId"]
        for path in openapi(operations())["paths"].values()
        for each in path.values()
    ]

    assert len(set(names)) == len(names) == len(operations())
    assert {"get_threads", "get_threads_thread", "post_threads_pause"} < set(names)


def test_every_answer_is_as_the_description_says(served: Served) -> None:
    """Field by field, with a request, a rollout, a pause and a verification to tell of."""
    scene = served.scene
    request = scene.ask(world=WIDER)
    with scene.open("operator") as store:
        store.rollouts.propose_for([store.request(request)], reason="all of them")
    health = served.console.desk.health
    health.begin()
    until(lambda: health.last is not None and not health.last.runs)
    served.seen()
    names = {"thread": served.console.desk.watch.thread("invoice-17").id, "request": request}
    with served.client("owner") as client:
        standing = client.get(f"{_API}/threads/{names['thread']}").json()
        body = {"reason": "odd", "expect": standing["expect"], "to": "worker"}
        answers = {
            each.path: client.request(
                each.method, _API + each.path.format(**names), json=body if each.body else None
            )
            for each in operations()
            if each.path.rpartition("/")[2] not in ("unpause", "rollout", "revoke", "attestations")
        }
    description = openapi(operations())
    components = {"components": description["components"]}
    described = {
        each.path: description["paths"][_API + each.path][each.method]["responses"]["200"]
        for each in operations()
    }

    for path, answer in answers.items():
        is_fault = answer.status_code != HTTPStatus.OK
        success = described[path]["content"][_JSON]["schema"]
        schema = {"$ref": "#/components/schemas/Error"} if is_fault else success
        jsonschema_rs.validator_for({**schema, **components}).validate(answer.json())
        assert not is_fault or path.endswith("/handoff"), (path, answer.text)


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (f"threads?text={'x' * 513}", "text: expected 0 to 512 characters, found 513"),
        ("requests?all=yes", "all: expected true or false"),
        ("audit?kind=" + "x" * 600, "kind: expected 0 to 512"),
        ("audit?threads=invoice-17", "query: expected thread, actor, kind, since, until, after"),
        ("people?person=ann", "query: expected nothing, found 'person'"),
        ("threads?limit=5000", "limit: expected a number up to 1000, found '5000'"),
    ],
)
def test_what_the_description_bounds_is_refused_beyond(
    served: Served, query: str, words: str
) -> None:
    """A program that follows it is never surprised, and one that does not is told."""
    with served.client("vera") as client:
        answer = client.get(f"{_API}/{query}")

    assert answer.status_code == 400
    assert words in answer.json()["error"]["message"]


def test_a_program_proposes_a_rollout_once(served: Served) -> None:
    """For the request that it names whole; the next one is told which there is."""
    request = served.scene.ask(world=WIDER)
    served.seen()
    path = f"{_API}/requests/{request[:12]}/rollout"
    with served.client("olga") as olga:
        short = olga.post(path, json={"reason": "x", "expect": request[:12]})
        done = olga.post(path, json={"reason": "release 42", "expect": request})
        again = olga.post(path, json={"reason": "release 42", "expect": request})
        (told,) = olga.get(f"{_API}/rollouts").json()["rollouts"]
    with served.client("ann") as ann:
        refused = ann.post(path, json={"reason": "x", "expect": request})

    assert (short.status_code, refused.status_code) == (400, 403)
    assert done.json() == {"rollout": told["id"], "status": "open"}
    assert (told["statement"]["actor"], told["statement"]["reason"]) == ("olga", "release 42")
    assert again.status_code == 409
    assert again.json()["error"]["code"] == "moved"
    assert told["id"][:12] in again.json()["error"]["message"]


def test_requests_say_how_fresh_they_are(served: Served) -> None:
    """None, before everything was read, is no word that nobody waits."""
    with served.client("vera") as client:
        state = client.get(f"{_API}/requests").json()["state"]

    assert state["complete"]
    assert state["refreshed"]


def test_what_does_not_come_from_a_thread_is_no_standing(served: Served) -> None:
    """The hint is for programs: where to take it from."""
    served.scene.ask()
    served.seen()
    thread = served.console.desk.watch.thread("invoice-17").id
    with served.client("olga") as olga:
        answer = olga.post(f"{_API}/threads/{thread}/pause", json={"reason": "x", "expect": "{}"})

    assert answer.status_code == 400
    assert "GET /api/v1/threads/ID" in answer.json()["error"]["hint"]


@pytest.mark.parametrize("mode", list(GenerationMode), ids=str)
def test_whatever_a_program_sends_the_console_does_not_fail(
    served: Served, mode: GenerationMode
) -> None:
    """Requests that are drawn from the description, or against it, never end in a 5xx."""
    served.scene.ask()
    served.seen()
    with served.client("owner") as client:
        headers = {**client.headers}
        description = client.get(f"{_API}/openapi.json").json()
    schema: Any = schemathesis.openapi.from_dict(description)
    schema.config.update(base_url=served.origin)
    for found in schema.get_all_operations():
        _draw(found.ok(), mode, headers)


def _draw(operation: Any, mode: GenerationMode, headers: dict[str, str]) -> None:
    @settings(
        max_examples=200 if SOAKING else 8,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(mode))
    def check(case: Any) -> None:
        answer = case.call(headers={**(case.headers or {}), **headers})

        assert answer.status_code < HTTPStatus.INTERNAL_SERVER_ERROR, (case.path, answer.text)
        if answer.status_code != HTTPStatus.OK and answer.headers["content-type"] == _JSON:
            assert set(answer.json()) == {"error"}

    check()
