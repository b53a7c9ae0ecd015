"""Independent proposals turned into chains: accept or stay, over log weights."""

from __future__ import annotations

from congenial.kernels.numerics.compiling import njit


@njit()
def scan(log_weights, log_uniforms, current, at):
    """Run one chain per row over its proposals.

    `log_weights` and `log_uniforms` are float64 (r, t), `current` float64 (r,) holds the log weight
    of each chain's state and is updated. `at`, int64 (r, t), is filled with the proposal that is
    the state after each step; -1 stands for the state before the first step.
    """
    rows, steps = log_weights.shape
    for r in range(rows):
        here = current[r]
        last = -1
        for t in range(steps):
            if log_uniforms[r, t] <= log_weights[r, t] - here:
                here = log_weights[r, t]
                last = t
            at[r, t] = last
        current[r] = here


@njit()
def couple(log_weights, log_uniforms, chosen):
    """Coupling from the past along one stream of proposals, the latest first.

    When the state of largest log weight, 0, moves, all other states move too; from there the chain
    runs forward to the present. `chosen` is filled with the last proposal of each finished draw.
    Returns (number of draws, start of the unfinished draw).
    """
    draws = 0
    begin = 0
    for i in range(log_weights.size):
        if draws == chosen.size:
            break
        if log_uniforms[i] > log_weights[i]:
            continue
        here = i
        for j in range(i - 1, begin - 1, -1):
            if log_uniforms[j] <= log_weights[j] - log_weights[here]:
                here = j
        chosen[draws] = here
        draws += 1
        begin = i + 1
    return draws, begin
