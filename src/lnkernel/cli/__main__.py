"""`python -m lnkernel.cli`, where the script `lnkernel` is not on the path."""

from lnkernel.cli import main

raise SystemExit(main())
