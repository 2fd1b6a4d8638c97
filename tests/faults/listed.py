"""The list of faults. `python -m faults.listed` (from `tests`) writes it into docs/reliability.md."""

from __future__ import annotations

from pathlib import Path

from faults import of_files, of_limits, of_processes, of_the_driver, of_the_machine, of_the_server
from faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *of_the_server.FAULTS,
    *of_processes.FAULTS,
    *of_the_driver.FAULTS,
    *of_files.FAULTS,
    *of_the_machine.FAULTS,
    *of_limits.FAULTS,
)

BEGIN = "<!-- faults -->\n"
END = "<!-- end -->\n"


def table() -> str:
    """The list as Markdown."""
    rows = [f"| {fault.subject} | {fault.what} | {fault.shows} |\n" for fault in FAULTS]
    return f"\n{len(FAULTS)} faults.\n\n| what | fault | words of what is shown |\n|---|---|---|\n{''.join(rows)}\n"


def main() -> None:
    """Write the document anew."""
    path = Path(__file__).parents[2] / "docs" / "reliability.md"
    page = path.read_text(encoding="utf-8")
    head, tail = page.partition(BEGIN)[0], page.partition(END)[2]
    path.write_text(f"{head}{BEGIN}{table()}{END}{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
