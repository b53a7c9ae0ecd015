"""The papers' examples and tables, run anew; `python -m papers NAME` writes one."""

# Each is a module of this package, with "_" for "-".
NAMES = (
    "taxi",
    "p12",
    "two-bin",
    "simplex",
    "belief",
    "coverage",
    "inversion",
    "best-table",
    "bureau",
)
# Those that share their replicates out among threads, and tell how far they are.
SHARED = ("coverage", "inversion", "best-table", "bureau")
