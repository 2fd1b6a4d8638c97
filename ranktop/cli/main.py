"""The `ranktop` command: finds the subcommand's file, turns every failure into one line and an exit code."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

import ranktop
from ranktop.cli.errors import INTERRUPTED, NOTHING, USAGE, NothingToLookAt, UsageProblem
from ranktop.cli.importing import uncollected
from ranktop.plan.plan import PlanError
from ranktop.printable import one_line

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "watch": "live screen of this node (what plain `ranktop` does)",
    "demo": "start a stand-in node and watch it",
    "plan": "what a launch will take, per rank and per node",
    "preflight": "the plan held against this host, before launching",
    "check": "one look without a screen, for people and scripts",
    "why": "what died and of what, with nothing installed beforehand",
    "inspect": "the same verdicts from files that somebody sent",
    "bundle": "collect such files from this node, secrets removed",
    "record": "keep every sample in one file, without a screen",
    "mark": "put a mark into a recording, also from another shell",
    "replay": "the same screens on a recording",
    "export": "samples of a recording as csv, jsonl or parquet",
    "report": "one self-contained page for the post-mortem",
    "cut": "a range of a recording as a small recording",
    "serve": "the screen in a browser, on this machine only unless told otherwise",
    "explain": "a finding's rule, thresholds and sources",
    "compare": "gates between recordings: pass, fail, or not shown",
    "packet": "the promotion packet from recordings and a manifest",
    "exporter": "lines and findings as Prometheus metrics",
    "fleet": "many nodes through a Prometheus server",
    "stack": "the Python stack of a rank, by an operator's decision",
    "doctor": "what ranktop can and cannot see here",
    "config": "the configuration in force and where it comes from",
}
"""Subcommands and their one-line help, so that `--help` imports none of them."""


class LazyGroup(click.Group):
    """Imports `ranktop.cli.<command>` only when that command runs: `ranktop plan` must not pay for the screen."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        with uncollected():
            return getattr(importlib.import_module(f"ranktop.cli.{cmd_name}"), cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not ctx.resilient_parsing:
            import difflib

            # Click suggests from commands that it holds, and here it holds none.
            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"No such command {args[0]!r}." + (f" Did you mean {near[0]!r}?" if near else ""))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        found = super().shell_complete(ctx, incomplete)
        watch = self.get_command(ctx, "watch") if incomplete.startswith("-") else None
        return found if watch is None else [*found, *watch.shell_complete(click.Context(watch), incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from ranktop.plan.profiles import PROFILES

        click.echo(f"ranktop, version {ranktop.__version__} (plans exactly: SGLang {', '.join(PROFILES)})")
        context.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_version,
    help="Also the SGLang versions planned exactly.",
)
def cli() -> None:
    """Watch an SGLang node: does what is allocated, pinned and moved match what this launch was to do?"""


def main() -> None:
    """Console script."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run a command line, print errors as one line on stderr, return the exit code."""
    arguments = _with_default_command(arguments)
    try:
        code = cli.main(arguments, prog_name="ranktop", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as usage:
        usage.show()
        return USAGE
    except click.UsageError as problem:
        return _fail(_usage(problem), USAGE)
    except click.ClickException as problem:
        return _fail(problem.format_message(), USAGE)
    except (UsageProblem, PlanError) as problem:
        return _fail(str(problem), USAGE)
    except NothingToLookAt as problem:
        return _fail(str(problem), NOTHING)
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader went away (`ranktop plan | head`): nobody is left to tell.
        sys.stderr.close()
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _with_default_command(arguments: Sequence[str]) -> list[str]:
    """`ranktop --url ...` is `ranktop watch --url ...`."""
    first = arguments[0] if arguments else ""
    if first in ("-h", "--help", "--version") or first in COMMANDS:
        return list(arguments)
    if not first or first.startswith("-"):
        return ["watch", *arguments]
    return list(arguments)


def _usage(problem: click.UsageError) -> str:
    """Of which command, and where its options are."""
    command = problem.ctx.command_path if problem.ctx is not None else "ranktop"
    what = command.partition(" ")[2]
    message = problem.format_message().rstrip(".")
    return f"{what}: {message} (see `{command} --help`)" if what else f"{message} (see `ranktop --help`)"


def _fail(message: str, code: int) -> int:
    print("ranktop: " + one_line(message), file=sys.stderr)
    return code
