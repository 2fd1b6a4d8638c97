"""Cases of the case log on LayerSplit and PD (kind 3), with inputs of the project's own."""

from __future__ import annotations

import json

from support.cases_memory import GLM
from support.inspect_case import Case, Code, Seen
from support.node_text import log

ROOM = 1655955501905217457


def transfer_failed(tp: int, reason: str) -> str:
    return log(
        f"Decode transfer failed for request rank={tp} decode_req.req.rid='3ce8' "
        f"decode_req.req.bootstrap_room={ROOM} with exception KVTransferError(bootstrap_room={ROOM}): {reason}",
        tag=f"TP{tp}",
    )


def draft_loaded() -> str:
    free = {0: 41.92, 1: 44.51, 2: 44.16, 3: 44.51, 4: 44.16}
    return "".join(
        log(
            "Load weight end. elapsed=10.26 s, type=DeepseekV3ForCausalLMNextN, quant=fp8, fmt=e4m3, "
            f"avail mem={gib} GB, mem usage=1.00 GB.",
            tag=f"TP{tp} EP{tp}",
        )
        for tp, gib in free.items()
    )


CASES = (
    Case(
        47,
        "LayerSplit over four: 20, 20, 19 and 19 layers",
        {
            "run.sh": f"{GLM} --tp-size 4 --enable-prefill-cp --disaggregation-mode prefill --cp-strategy interleave "
            "--enable-dsa-cache-layer-split\n"
        },
        holds=lambda found: found.verdict.servers[0].plan.layer_split.ranges == ((0, 20), (20, 40), (40, 59), (59, 78)),
    ),
    Case(
        48,
        "TP0 has 2.4 GiB less free than its peers",
        {"server.log": draft_loaded()},
        lines=(
            Seen("TP0 EP0", "hbm.free", round(41.92 * 2**30)),
            Seen("TP3 EP3", "hbm.free", round(44.51 * 2**30)),
        ),
    ),
    Case(
        50,
        "one room, and the rank that knows the reason",
        {
            "server.log": transfer_failed(1, "Failed due to an unknown reason from another rank")
            + transfer_failed(2, "Failed due to an unknown reason from another rank")
            + transfer_failed(3, "local protection error")
        },
        codes=(Code("PD-FAILURES", "breach", ("TP3",)),),
        holds=lambda found: any("local protection error" in finding.message for finding in found.verdict.findings),
    ),
    Case(
        52,
        "300 s in bootstrapping",
        {
            "server.log": log(
                f"Prefill bootstrap failed for request rank=2 req.rid='d3fd' req.bootstrap_room={ROOM} with exception "
                f"KVTransferError(bootstrap_room={ROOM}): Request {ROOM} timed out after 300.0s in "
                "KVPoll.Bootstrapping",
                tag="TP2",
            )
        },
        codes=(Code("PD-FAILURES", "breach", ("TP2",)),),
        holds=lambda found: any("bootstrapping" in finding.message for finding in found.verdict.findings),
    ),
    Case(
        53,
        "no RDMA device: TCP",
        {
            "server.log": "W20250516 09:00:52.240088 45697 topology.cpp:55] No RDMA devices found, check your device "
            "installation\nI20250516 09:00:52.240196 45697 transfer_engine.cpp:127] Topology discovery complete. "
            "Found 0 HCAs.\nI20250516 09:00:52.240238 45697 tcp_transport.cpp:241] TcpTransport: listen on port 1\n"
        },
        codes=(Code("PD-TRANSPORT", "warn", evidence={"transport": "tcp"}),),
    ),
    Case(
        56,
        "the reason inside an answer that a client got",
        {
            "answer.json": json.dumps(
                {
                    "text": "",
                    "meta_info": {
                        "finish_reason": {
                            "type": "abort",
                            "message": "Decode transfer failed for request rank=0 decode_req.req.rid='c564' "
                            f"decode_req.req.bootstrap_room={ROOM} with exception "
                            f"KVTransferError(bootstrap_room={ROOM}): Failed to get kvcache from prefill instance, it "
                            "might be dead",
                        }
                    },
                }
            )
        },
        codes=(Code("PD-FAILURES", "breach"),),
    ),
)
