"""`ranktop doctor`: what can and cannot be seen here, what each lack costs, and what would mend it."""

from __future__ import annotations

import click
import msgspec

from ranktop.cli.documents import encode

_FOLDER = click.Path(exists=True, file_okay=False)


@click.command()
@click.option("--proc-root", default="/proc", type=_FOLDER, show_default=True, help="Where /proc is mounted.")
@click.option("--sys-root", default="/sys", type=_FOLDER, show_default=True, help="Where /sys is mounted.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on standard output.")
def doctor(proc_root: str, sys_root: str, as_json: bool) -> int:
    """Try every source once and say what is missing, what that costs, and how to mend it."""
    from ranktop.cli.doctor_checks import all_checks

    if as_json:
        click.echo(encode({"schema": 1, "checks": msgspec.to_builtins(list(all_checks(proc_root, sys_root)))}))
        return 0
    for check in all_checks(proc_root, sys_root):
        click.echo(f"{check.answer:9} {check.subject:28} {check.detail}")
        if check.costs:
            click.echo(f"{'':9} {'':28} costs: {check.costs}")
        if check.remedy:
            click.echo(f"{'':9} {'':28} mend:  {check.remedy}")
    return 0
