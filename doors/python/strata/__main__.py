"""python -m strata runs the command `strata`."""

from .command import main

main()
