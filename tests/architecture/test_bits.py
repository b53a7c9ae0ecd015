"""Random draws depend on no function whose last bits differ between processors.

A checker reads the modules whose numbers decide draws. It is run on the package, where it must find
nothing, and on a module with a planted fault.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from support.sources import SOURCE, modules

DECISIVE = (
    "kernels.network.",
    "kernels.numerics.",
    "sum_network.",
    "conditioning.laws.closing_sampler",
    "conditioning.laws.cutset_sampler",
    "conditioning.laws.cycles",
    "conditioning.laws.draw_routes",
    "conditioning.laws.forest_sampler",
    "conditioning.mixtures",
    "conditioning.unions",
    "conditioning.weighed_parts",
)
# Functions of the C library, and of numpy in versions for several processors.
_NAMES = """
acos acosh arccos arccosh arcsin arcsinh arctan arctan2 arctanh asin asinh atan atan2 atanh cbrt
convolve cos cosh dot einsum erf erfc exp exp2 expm1 fft float_power gamma geomspace hypot inner
lgamma linalg log log10 log1p log2 logaddexp logaddexp2 logspace matmul pow power sin sinh tan tanh
tensordot vdot
"""
SYSTEMS = set(_NAMES.split())
# Modules with powers or products of matrices that are exact, and why.
EXACT = {
    "conditioning.laws.forest_sampler": "integers",
    "sum_network.closing.closing_draws": "integers, and multipliers in exact steps",
    "sum_network.cutset.outside": "fractions, and integers",
    "sum_network.exact.masses": "decimals, and integers",
    "sum_network.exact.rare_draws": "decimals",
    "sum_network.families.exact_arithmetic": "decimals",
    "sum_network.families.family_messages": "decimals",
}
# Why a module may name one of them.
ALLOWED = {
    "sum_network.ceiling": "multipliers from linear equations, an exception of the proof",
    "sum_network.closing.closers": "the rank of a small matrix of integers, which is far from tied",
    "sum_network.families.family_sums": "Fourier transforms, an exception of the proof",
    "sum_network.fourier": "Fourier transforms, an exception of the proof",
    "sum_network.marginals": "intervals and probabilities, not draws",
}


def _exact_power(node: ast.BinOp) -> bool:
    """Whether a power is a square of an array, or a power of an integer or of a power of two."""
    match node:
        case ast.BinOp(right=ast.Constant(value=2)):
            return True  # numpy multiplies
        case ast.BinOp(left=ast.Constant(value=base)):
            return isinstance(base, int) or base in (2.0, 4.0)
        case _:
            return False


def bit_faults(source: Path) -> list[str]:
    """List the system's functions, and sorting without a fixed order, that decide draws."""
    faults = []
    for name, module in modules(source).items():
        if not name.startswith(DECISIVE):
            continue
        for node in ast.walk(module):
            match node:
                case ast.Attribute(value=ast.Name(id="np" | "math" as of), attr=function):
                    if function in SYSTEMS and name not in ALLOWED:
                        faults.append(f"{name} takes {of}.{function}; take it from `elementary`.")
                case ast.Call(func=ast.Attribute(attr="argsort"), keywords=given):
                    if not any(k.arg == "kind" for k in given):
                        faults.append(f"{name} sorts without a fixed order of equal numbers.")
                case ast.BinOp(op=ast.MatMult()) if name not in ALLOWED and name not in EXACT:
                    faults.append(f"{name} has a product of matrices; take `elementwise.dot`.")
                case ast.BinOp(op=ast.Pow()) if not _exact_power(node) and name not in EXACT:
                    faults.append(f"{name} has a power; take it from `elementary`.")
                case ast.keyword(arg="fastmath"):
                    if name != "kernels.numerics.compiling":
                        faults.append(f"{name} sets fastmath; only `njit` does.")
                case _:
                    pass
    return faults


def test_what_draws_depend_on_has_the_same_bits_on_every_processor():
    assert bit_faults(SOURCE) == []


def test_every_exception_is_still_needed():
    named = modules(SOURCE)
    for name in ALLOWED:
        taken = {n.attr for n in ast.walk(named[name]) if isinstance(n, ast.Attribute)}
        assert taken & SYSTEMS, name
    for name in EXACT:
        operations = [n for n in ast.walk(named[name]) if isinstance(n, ast.BinOp)]
        powers = [n for n in operations if isinstance(n.op, ast.Pow) and not _exact_power(n)]
        assert powers or any(isinstance(n.op, ast.MatMult) for n in operations), name


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("sum_network/a.py", "y = np.exp(x)", "np.exp"),
        ("kernels/network/a.py", "y = math.lgamma(x)", "math.lgamma"),
        ("sum_network/cutset/a.py", "y = np.linalg.norm(x)", "np.linalg"),
        ("conditioning/unions.py", "i = np.argsort(x)", "equal numbers"),
        ("kernels/network/a.py", "f = numba.njit(fastmath=True)(g)", "fastmath"),
        ("sum_network/a.py", "y = x @ z", "matrices"),
        ("kernels/network/a.py", "y = x ** 0.5", "power"),
        ("sum_network/exact/a.py", "y = 1.2 ** n", "power"),
    ],
)
def test_a_planted_fault_is_found(tmp_path, file, text, words):
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(text)
    faults = bit_faults(tmp_path)
    assert len(faults) == 1
    assert words in faults[0]
