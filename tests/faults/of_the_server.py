"""A server that refuses, hangs, dies, restarts, or answers with anything but its page."""

from __future__ import annotations

import json
from collections.abc import Callable

from collectors import metrics, poller, server_info
from collectors.loads import LoadsCollector
from collectors.metrics import MetricsCollector
from collectors.server_info import ServerInfoCollector
from faults.fault import Fault, Stage, Watched
from faults.unruly import PAGE, Answer, Unruly, by_path, dripping, endless, http, raw, reset, silent
from ranktop.sample import Collector

_INFO = json.dumps({"version": "0.5.18", "tp_size": 8, "status": "ready"}).encode()
_LOADS = json.dumps({"loads": [{"dp_rank": 0, "num_running_reqs": 3}]}).encode()
_WELL = by_path(
    {
        "/metrics": http(body=PAGE),
        "/server_info": http(body=_INFO),
        "/model_info": http(body=b'{"model_path": "a/b"}'),
        "/v1/loads?include=all": http(body=_LOADS),
    },
    http(body=_LOADS),
)


def _hurry(stage: Stage) -> None:
    """Deadlines and pauses after them in tenths of a second."""
    stage.patch.setattr(metrics, "_DEADLINE_SECONDS", 0.5)
    stage.patch.setattr(metrics, "AFTER_TIMEOUT_SECONDS", 0.1)
    stage.patch.setattr(server_info, "_DEADLINE_SECONDS", 0.5)


def _of(source: str, url: str) -> Collector:
    made: dict[str, Callable[[], Collector]] = {
        "metrics": lambda: MetricsCollector("a:1", url, 0.1),
        "server": lambda: ServerInfoCollector("a:1", url),
        "loads": lambda: LoadsCollector("a:1", url),
    }
    return made[source]()


def _answers(answer: Answer, source: str = "metrics") -> Callable[[Stage, str], None]:
    def trial(stage: Stage, shows: str) -> None:
        _hurry(stage)
        with Unruly(_WELL) as server, Watched(_of(source, server.url), source=source) as watched:
            before = watched.well()
            server.answer = answer
            after = watched.broken(shows)
            for part in ("metrics", "infos", "loads"):
                assert getattr(after, part).keys() == getattr(before, part).keys(), "the last values stay, and age"
            server.mend()
            watched.well()

    return trial


def _refuses(stage: Stage, shows: str) -> None:
    with Unruly(_WELL) as server, Watched(_of("metrics", server.url), source="metrics") as watched:
        before = watched.well()
        server.refuse()
        assert watched.broken(shows).metrics.keys() == before.metrics.keys()
        server.listen()
        watched.well()


def _hangs_long(stage: Stage, shows: str) -> None:
    _hurry(stage)
    stage.patch.setattr(metrics, "_DEADLINE_SECONDS", 3.0)
    stage.patch.setattr(poller, "HANG_SECONDS", 0.3)
    with Unruly(_WELL) as server, Watched(_of("metrics", server.url), source="metrics") as watched:
        watched.well()
        server.answer = silent
        watched.broken(shows)
        server.mend()
        watched.well()


_ALONE = by_path({"/model_info": http(body=b'{"model_path": "a/b"}')}, http(404))
_DEEP = b"[" * 200_000
_GARBAGE = b"\x00\xff\x1b[2J" * 999 + b"\n"
_OTHER_PAGE = b"# TYPE go_goroutines gauge\ngo_goroutines 7\n"
_LONG_HEAD = b"HTTP/1.1 200 " + b"a" * 99_999

FAULTS = (
    Fault("server", "refuses connections, then listens again", "connection refused", _refuses),
    Fault("server", "hangs: accepts and never answers", "no complete answer within", _answers(silent)),
    Fault("server", "hangs for longer than a read may take", "its last values are kept and age", _hangs_long),
    Fault("server", "drips a byte at a time", "no complete answer within", _answers(dripping)),
    Fault("server", "dies within an answer", "before the answer was complete", _answers(reset)),
    Fault("server", "closes without an answer", "closed without an answer", _answers(raw(b""))),
    Fault("server", "ends within the body", "the answer broke off", _answers(http(200, PAGE[:20], 4000))),
    Fault("server", "ends within a line", "breaks off within a line", _answers(http(200, PAGE[:20]))),
    Fault("server", "answers 204", "204 the server refused", _answers(http(204))),
    Fault("server", "answers 400", "400 the server refused", _answers(http(400))),
    Fault("server", "answers 401", "RANKTOP_API_KEY", _answers(http(401))),
    Fault("server", "answers 403", "the key in RANKTOP_API_KEY is not accepted", _answers(http(403))),
    Fault("server", "answers 404, metrics are off", "metrics are off", _answers(_ALONE)),
    Fault("server", "answers 404, it is another program", "wrong port?", _answers(http(404))),
    Fault("server", "answers 429", "429 the server refused", _answers(http(429))),
    Fault("server", "answers 500", "500 the server refused", _answers(http(500))),
    Fault("server", "answers 502", "502 the server refused", _answers(http(502))),
    Fault("server", "answers 503", "503 not ready", _answers(http(503))),
    Fault(
        "server",
        "redirects",
        "redirect to http://127.0.0.1:1/x, not followed",
        _answers(http(307, headers="Location: http://127.0.0.1:1/x\r\n")),
    ),
    Fault("server", "answers an empty page", "200 with an empty page", _answers(http(200, b"\n"))),
    Fault(
        "server",
        "sends binary garbage",
        "no metrics on the page",
        _answers(http(200, _GARBAGE)),
    ),
    Fault("server", "sends HTML", "no metrics on the page", _answers(http(200, b"<html><body>hello</body></html>\n"))),
    Fault(
        "server",
        "sends another program's page",
        "none of SGLang's",
        _answers(http(200, _OTHER_PAGE)),
    ),
    Fault("server", "sends 100 MB", "not read further", _answers(endless)),
    Fault("server", "speaks no HTTP", "not an HTTP answer", _answers(raw(b"SSH-2.0-OpenSSH_9.6\r\n"))),
    Fault("server", "sends a header without end", "not an HTTP answer", _answers(raw(_LONG_HEAD))),
    Fault("/server_info", "is no JSON", "not a JSON object", _answers(http(200, b"{'a'"), "server")),
    Fault("/server_info", "nests 200,000 deep", "not a JSON object", _answers(http(200, _DEEP), "server")),
    Fault("/server_info", "hangs", "no complete answer within", _answers(silent, "server")),
    Fault("/v1/loads", "answers 500", "500", _answers(http(500), "loads")),
    Fault("/v1/loads", "is no JSON", "/v1/loads", _answers(http(200, b"nonsense"), "loads")),
)
