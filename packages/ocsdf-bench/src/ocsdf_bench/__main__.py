"""``python -m ocsdf_bench`` is ``ocsdf-bench``."""

from ocsdf_bench.cli import main

main()
