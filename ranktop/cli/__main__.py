"""`python -m ranktop.cli`: the console script, where it is not on the PATH."""

from ranktop.cli.main import main

main()
