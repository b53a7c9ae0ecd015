"""The machine of a run, in general terms, and the process pinned to one core of it."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[1]
LIBRARIES = ("numpy", "numba", "blackjax", "jax", "hopsy", "arviz", "matplotlib")
# What keeps every library to one thread; read when they are loaded.
ONE_THREAD = {
    "NUMBA_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def pin() -> None:
    """Keep this process to one core, the last of those it may use."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def peak_bytes() -> int:
    """Return the most memory that this process has held so far."""
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"^VmHWM:\s+(\d+) kB", status.read_text(encoding="ascii"), re.MULTILINE)
        if found:
            return int(found[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if platform.system() == "Darwin" else 1024)


def spare_memory(share: float) -> None:
    """Refuse memory beyond a share of the machine's, so that a case fails and nothing else."""
    if hasattr(os, "sysconf") and platform.system() == "Linux":
        import resource

        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        resource.setrlimit(resource.RLIMIT_DATA, (int(share * whole),) * 2)


def used_seconds(pid: int) -> float:
    """Return the processor time of another process so far; 0 where the system does not tell.

    A limit set by the system instead would make the process's own clock coarse.
    """
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2]
    except OSError:
        return 0.0
    user, system = after_name.split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def described() -> dict[str, str]:
    """Return the machine, the versions and the commit, without any name of the machine."""
    told = {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "memory": _memory(),
        "system": f"{platform.system()} on {platform.machine()}",
        "Python": platform.python_version(),
        "congenial": _commit(),
    }
    for name in LIBRARIES:
        try:
            told[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            told[name] = "not installed"
    return told


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8") if info.exists() else ""
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    name = found[1] if found else platform.processor() or platform.machine()
    wide = " with AVX-512" if re.search(r"\bavx512f\b", text) else ""
    return re.sub(r"\((R|TM)\)|@.*$", "", name).strip() + wide


def _memory() -> str:
    if not hasattr(os, "sysconf") or "SC_PHYS_PAGES" not in os.sysconf_names:
        return "unknown"
    return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"


def _commit() -> str:
    """Return the version and commit, and whether the source differs from it."""
    from congenial import __version__

    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=30
        )
        return done.stdout.strip() if done.returncode == 0 else ""

    commit = git("rev-parse", "--short=10", "HEAD")
    if not commit:
        return __version__
    changed = git("status", "--porcelain", "--", "src", "benchmarks")
    return f"{__version__}, commit {commit}" + (", with changes since" if changed else "")
