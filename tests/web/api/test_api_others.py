"""What is another's does not exist: every endpoint that the document names, asked with the other's numbers."""

from __future__ import annotations

import itertools
import re

MARK = "anna_wrote_this_9f3c"


def test_no_endpoint_gives_what_is_anothers(app, program, judge_all):
    anna, otto = program("anna"), program("otto")
    numbers = [anna.submit(f"{MARK} = {n}") for n in range(2)]
    judge_all()
    waiting = anna.submit(f"{MARK} = 'waits'")
    own = otto.submit("x = 1")
    with app.test_client() as client:
        paths = client.get("/api/v1/openapi.json", base_url="http://127.0.0.1").json["paths"]
    asked = 0
    for path, method in [(p, m) for p, methods in paths.items() for m in methods]:
        names = re.findall(r"{(\w+)}", path)
        for values in itertools.product([*numbers, waiting, 200], repeat=len(names)):
            if values == (200,) and "submission" in names:
                continue
            filled = path.removeprefix("/api/v1")
            for name, value in zip(names, values, strict=True):
                filled = filled.replace(f"{{{name}}}", str(value))
            answer = otto.ask(
                method.upper(), filled, query_string={"before": waiting + 9} if not names else None
            )
            asked += 1
            if "submission" in names:
                assert answer.status_code == 404, filled
                assert answer.data == otto.ask(method.upper(), filled.replace(str(values[0]), "987654")).data
            assert MARK not in answer.text
            for listed in (answer.json or {}).get("submissions", []):
                assert listed["id"] == own
    assert asked > 10
    assert anna.get(f"/submissions/{waiting}").json["status"] == "queued"


def test_each_address_under_the_api_asks_for_a_token(app):
    """The guard lets these addresses through: each must belong to the blueprint that asks, or tell nobody's data."""
    found = {rule.endpoint for rule in app.url_map.iter_rules() if rule.rule.startswith("/api/v1/")}
    assert found
    assert {name for name in found if not name.startswith("api.")} == {"api_page.openapi"}
