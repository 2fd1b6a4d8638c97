"""What a bundle must not carry: secrets, addresses, names of hosts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ranktop.inspect.bundle import samples_item
from ranktop.inspect.redact import Redactor
from ranktop.inspect.stream import read_stream
from ranktop.sample import Event, SeriesKey
from support.samples import SERVER, healthy

SECRET = "S3cr3tS3cr3tS3cr3t"


@pytest.mark.parametrize(
    "text",
    [
        f"api_key='{SECRET}'",
        f"server_args=ServerArgs(model_path='x', api_key='{SECRET}', tp_size=8)",
        f"{{'admin_api_key': '{SECRET}'}}",
        f'{{"api_key": "{SECRET}"}}',
        f"--api-key {SECRET} --tp 8",
        f"--api-key={SECRET}",
        f"Authorization: Bearer {SECRET}",
        f"AWS_SECRET_ACCESS_KEY={SECRET}",
        f"HF_TOKEN={SECRET}",
        f"ValueError: bad key --enable-metrics --api-key {SECRET}",
        f"ValueError: api_key={SECRET}",
        f"KeyError: 'x': {{'admin_api_key': '{SECRET}'}}",
        f"ssl_keyfile_password={SECRET}",
        f"hf_{SECRET}",
        f"sk-{SECRET}",
        f"https://user:{SECRET}@example.com/x",
        f"s3://{SECRET}@bucket/key",
    ],
)
def test_secrets_go(text: str) -> None:
    assert SECRET not in Redactor().text(text)


@pytest.mark.parametrize(
    "text",
    [
        "api_key=None",
        "tokenizer_path='x', max_total_num_tokens=540928",
        "#token: 266624, token usage: 0.43",
        "the password policy of this host",
        "http://127.0.0.1:30000/metrics",
        "0000:dc:00.0 and 12:30:45 and sglang::scheduler_TP3",
        "sglang 0.5.18, driver 580.105.08, nccl 2.27.3",
        "[2026-11-29 09:00:00 TP0] Allocating 96.00 GB host memory for hierarchical KV cache.",
        "7f1f00000000-7f1f3b9ad000 rw-s 00000000 00:01 34 /dev/zero (deleted)",
    ],
)
def test_what_a_reader_needs_stays(text: str) -> None:
    assert Redactor(("node-a.example.com",)).text(text) == text


def test_addresses_have_one_stand_in_each() -> None:
    redactor = Redactor(("gpu-node-17",))
    assert redactor.text("10.0.0.1 to 10.0.0.2, again 10.0.0.1") == "host-1 to host-2, again host-1"
    assert redactor.text("tcp://10.0.0.2:2379 fe80::1ff:fe23:4567:890a") == "tcp://host-2:2379 host-3"
    assert redactor.text("http://store.internal.example:8998/route") == "http://host-4:8998/route"
    assert redactor.text("[gpu-node-17] write to admin@example.com") == "[node] write to (address)"


def test_a_short_plain_host_name_is_no_word_to_replace() -> None:
    assert Redactor(("rank", "sglang")).text("sglang::scheduler rank=2") == "sglang::scheduler rank=2"


@given(st.text(max_size=200))
def test_no_text_raises_and_once_is_enough(text: str) -> None:
    redactor = Redactor(("gpu-node-17",))
    once = redactor.text(text)
    assert redactor.text(once) == once


def test_samples_keep_their_numbers_and_lose_their_addresses() -> None:
    sample = healthy()
    key = SeriesKey("sglang:num_running_reqs", (("worker_addr", "grpc://10.1.2.3:8001"), ("tp_rank", "0")))
    page = sample.metrics[SERVER]
    sent = replace(
        sample,
        host_name="gpu-node-17",
        metrics={
            "10.1.2.3:30000": replace(page, server="10.1.2.3:30000", keys=(*page.keys, key), values=(*page.values, 3.0))
        },
        infos={SERVER: replace(sample.infos[SERVER], args={"api_key": SECRET, "host": "10.1.2.3", "tp_size": 8})},
        events=(Event(1.0, "pd_failed", f"to 10.1.2.3: api_key={SECRET}"),),
    )
    item = samples_item([sent, sample], Redactor(("gpu-node-17",)))
    for word in (SECRET, "10.1.2.3", "gpu-node-17"):
        assert word.encode() not in item.data
    first, second = read_stream(item.data)
    assert list(first.metrics) == ["host-1:30000"]
    assert first.infos[SERVER].args == {"host": "host-1", "tp_size": 8}
    assert replace(second, host_name="node-a") == sample
