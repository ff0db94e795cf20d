"""python -m strata: the command `strata`."""

from .command import main

main()
