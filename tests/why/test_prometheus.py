"""One question to a Prometheus server, without retries."""

from __future__ import annotations

import json
import time

import pytest

from ranktop.why.prometheus import QUERIES, ask
from support.http_answers import answering


def test_series_are_told_with_their_labels() -> None:
    labels = {"__name__": "x", "namespace": "prod", "pod": "glm-0", "container": "server", "image": "secret"}
    answer = {"status": "success", "data": {"resultType": "vector", "result": [{"metric": labels, "value": [1, "2"]}]}}
    with answering(200, json.dumps(answer).encode()) as url:
        series, reading = ask(url, 7200)
    assert reading.state == "read"
    assert [(one.query, one.labels, one.value) for one in series] == [
        (query, "namespace=prod, pod=glm-0, container=server", 2.0) for query in QUERIES
    ]


@pytest.mark.parametrize(("status", "body"), [(500, b"broken"), (200, b"<html>"), (404, b"")])
def test_a_bad_answer_is_one_failed_source(status: int, body: bytes) -> None:
    with answering(status, body) as url:
        series, reading = ask(url, 7200)
    assert (series, reading.state) == ([], "failed")


def test_nobody_there_is_told_at_once() -> None:
    began = time.monotonic()
    _, reading = ask("http://127.0.0.1:9", 7200)
    assert (reading.state, time.monotonic() - began < 2) == ("failed", True)
