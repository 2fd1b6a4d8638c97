"""`ranktop export`: a recording as csv, JSON lines or parquet."""

from __future__ import annotations

import csv
import sys
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import IO, TYPE_CHECKING, Any

import click

from ranktop.cli.errors import OK, UsageProblem
from ranktop.cli.output import OVERWRITE, new_file, new_text
from ranktop.cli.record_options import FILE, FROM, SALVAGE, TO, opened, said_damage, seq_range
from ranktop.printable import printable

if TYPE_CHECKING:
    from ranktop.recording.export import Row, Selection

_HEADER_ROWS = 2000
"""Rows that are looked at for the columns of a table: what appears later only is left out, and said."""

_PARQUET_ROWS = 5000


@click.command()
@FILE
@click.option("--format", "form", type=click.Choice(["csv", "jsonl", "parquet"]), default="csv", show_default=True)
@FROM
@TO
@click.option("--ranks", metavar="TP0,TP1", help="Only these ranks, by their tag.")
@click.option("--fields", metavar="NAMES", help="Only these columns; names or patterns like 'host.*,ttft*'.")
@click.option("-o", "--output", metavar="FILE", type=click.Path(dir_okay=False), help="Instead of standard output.")
@OVERWRITE
@SALVAGE
def export(
    file: str,
    form: str,
    since: str | None,
    until: str | None,
    ranks: str | None,
    fields: str | None,
    output: str | None,
    overwrite: bool,
    salvage: bool,
) -> int:
    """One row per sample and rank, judged again by this version; units in the header."""
    from ranktop.recording.export import Selection, rows
    from ranktop.recording.facts import reconciler_of
    from ranktop.recording.judge import verdicts

    if form == "parquet" and output is None:
        raise UsageProblem("export: parquet is no text (give -o FILE)")
    selection = Selection(_names(ranks), _names(fields))
    with opened(file, salvage) as recording:
        first, last = seq_range(recording, since, until)
        # From the beginning: what was open before the range decides what is open in it.
        judged = verdicts(recording, reconciler_of(recording.meta), None, last)
        found = rows(((seq, verdict) for seq, verdict in judged if seq >= first), selection)
        if form == "parquet":
            assert output is not None
            _parquet(found, selection, output, overwrite)
        else:
            with _output(output, overwrite) as file_out:
                (_csv if form == "csv" else _jsonl)(found, selection, file_out)
        said_damage(recording)
    return OK


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


@contextmanager
def _output(path: str | None, overwrite: bool) -> Generator[IO[str]]:
    if path is None:
        yield sys.stdout
        return
    with new_text("export", path, overwrite) as file:
        yield file


def _with_columns(found: Iterator[Row], selection: Selection) -> tuple[list[str], Iterator[Row]]:
    from ranktop.recording.export import columns

    head = list(islice(found, _HEADER_ROWS))
    return selection.fields_of(columns(head)), chain(head, found)


def _csv(found: Iterator[Row], selection: Selection, file: IO[str]) -> None:
    from ranktop.recording.export import selected

    fields, found = _with_columns(found, selection)
    table = csv.writer(file)
    table.writerow(fields)
    for row in found:
        table.writerow([_cell(value) for value in selected(row, fields)])


def _cell(value: Any) -> Any:
    """A spreadsheet would run text that begins like a formula, also behind blanks."""
    if not isinstance(value, str):
        return value
    text = printable(value).replace("\n", " ")
    return f"'{text}" if text.lstrip()[:1] in ("=", "+", "-", "@", "|", "%") else text


def _jsonl(found: Iterator[Row], selection: Selection, file: IO[str]) -> None:
    import msgspec

    for row in found:
        wanted = {name: row[name] for name in selection.fields_of(row) if name in row}
        file.write(printable(msgspec.json.encode(wanted).decode()) + "\n")


def _parquet(found: Iterator[Row], selection: Selection, path: str, overwrite: bool) -> None:
    try:
        import pyarrow  # pyright: ignore[reportMissingImports]
        import pyarrow.parquet  # pyright: ignore[reportMissingImports]
    except ImportError as problem:
        raise UsageProblem("export: parquet needs the extra [parquet] (pip install 'ranktop[parquet]')") from problem
    fields, found = _with_columns(found, selection)
    writer: Any = None
    with new_file("export", path, overwrite) as file:
        for batch in _batches(found, _PARQUET_ROWS):
            table = pyarrow.Table.from_pylist([{name: row.get(name) for name in fields} for row in batch])
            if writer is None:
                writer = pyarrow.parquet.ParquetWriter(file, table.schema)
            writer.write_table(table.cast(writer.schema))
        if writer is not None:
            writer.close()


def _batches(found: Iterable[Row], size: int) -> Iterator[list[Row]]:
    left = iter(found)
    while batch := list(islice(left, size)):
        yield batch
