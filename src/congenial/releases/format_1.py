"""Certificates of format 1, read as those of format 2.

Format 1 has some facts as phrases only. The tables below give their meaning; other sentences are
not read. Format 1 is no longer written, so the phrases will not change.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

FORMAT_1 = 1

_GAMMA = MappingProxyType(
    {
        "equality: none": "equalities",
        "proved bound: proofs/inequalities.md": "proved-bound",
        "bounds on Gaussian noise, none at whole orders: proofs/gaussian-bounds.md": "whole-orders",
        "trivial: gamma = 1": "trivial",
        "imaging: post-processing, none": "post-processing",
    }
)
# Texts of the reasons for having no intervals.
_OBSTACLES = MappingProxyType(
    {
        "its inversion would take more memory or time": "inversion-takes-too-much",
        "its inversion needs wider tables": "inversion-needs-wider-tables",
        "its leaves are so many": "posterior-takes-too-much-work",
        "its tables would take more memory or time": "posterior-takes-too-much-memory-or-time",
        "its numerical error could not be held": "posterior-error-not-bounded",
        "no prior can be fitted to it": "posterior-has-no-prior",
        "where bounds bind, the error depends": "bounds-bind",
        "too many to simulate releases of": "too-many-counts",
    }
)


def upgraded(old: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plain data of a certificate of format 1 in the form of format 2.

    Raises ValueError if a part is missing, is stated twice differently, or is not a phrase of
    format 1.
    """
    try:
        return _upgraded(old)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"a part of format 1 is missing or has no such form: {error}") from None


def _upgraded(old: Mapping[str, Any]) -> dict[str, Any]:
    claim, full, drawn = old["guarantee"], old["specification"], old["drawn"]
    budget, measure, distance = full["budget"], full["measure"], full["distance"]
    levels, simulated = old["levels"], old["simulation"] is not None
    twice = {
        "numerical_error": (drawn["numerical_error"], claim["sampler_error"]),
        "sampler_error": (measure["sampler_error"], claim["sampler_error"]),
        "delta": (measure["delta"], claim["delta"]),
        **{key: (budget[key], claim[key]) for key in ("epsilon", "base_epsilon", "gamma")},
        "scale": ([v["scale"] for v in levels], [v["scale"] for v in budget["levels"]]),
        "nodes": ([v["nodes"] for v in levels], full["domain"]["nodes"]),
        "neighbours": (distance["relation"], claim["neighbours"]),
        "rule": (old["left_out"]["rule"], full["domain"]["rule"]),
        "randomness": (drawn["randomness"] == "seeded", simulated),
        "stamp": (old["stamp"] is not None, simulated),
    }
    for key, (one, other) in twice.items():
        if one != other:
            raise ValueError(f"{key} is stated twice, with different values")
    return {
        **_some(old, "made simulation plan plan_sha256 files versions ledger"),
        "format": FORMAT_1,
        "prior": None,
        "keyed": None,
        "domain": _some(full["domain"], "source public")
        | {"row_filter": full["domain"]["rule"], "weight": None, "tables": []}
        | {"levels": [_some(v, "name nodes published_exactly") for v in levels]},
        "invariants": [_invariant(one) for one in full["invariants"]],
        "noise": {
            "kind": levels[0]["noise"],
            "levels": [
                _some(spent, "level scale rho")
                | {"epsilon": spent["base_epsilon"], "share_of_budget": spent["share"]}
                for spent in budget["levels"]
            ],
        },
        "method": _method(drawn, old["plan"]["method"]),
        "published": old["published"]["products"],
        "guarantee": {
            **_some(claim, "epsilon delta base_epsilon gamma"),
            "neighbours": _some(distance, "relation records")
            | {"row_filter_may_change": distance["rule_may_be_crossed"]},
            "datasets": {
                "agree_on_exact_counts": "agree on everything" in claim["covered"],
                "satisfy_bounds": "satisfy the bounds" in claim["covered"],
            },
            "measure": _measure(measure),
            "gamma_source": _GAMMA[claim["gamma_source"]],
            "numerical_error": claim["sampler_error"],
            "unprotected": [{"kind": "quoted", "text": text} for text in claim["unprotected"]],
            "worst_neighbours": _pair(full["worst_neighbours"]),
            "proofs": full["proofs"],
        },
        "accuracy": _accuracy(old["accuracy"]),
    }


def _some(old: Mapping[str, Any], keys: str) -> dict[str, Any]:
    """Return the parts that keep their name and their form."""
    return {key: old[key] for key in keys.split()}


def _invariant(old: Mapping[str, Any]) -> dict[str, Any]:
    if old["kind"] == "exact":
        return {"kind": "published-exactly", **_some(old, "nodes listed")}
    return _some(old, "kind nodes" if old["kind"] == "sums" else "kind")


def _method(drawn: Mapping[str, Any], asked: Mapping[str, Any]) -> dict[str, Any]:
    more = {"conditioning": {"sampler": "exact"}, "imaging": {"norm": asked["norm"]}}
    return {"kind": drawn["method"], **more.get(drawn["method"], {})}


def _measure(old: Mapping[str, Any]) -> dict[str, Any]:
    if old["noise"] == "pure":
        return {"kind": "pure"}
    whole = "by whole" in old["told"]
    return {"kind": "zcdp", "rho": old["rho"], "at_delta": old["told_at"], "whole_orders": whole}


def _pair(old: Mapping[str, Any]) -> dict[str, Any]:
    losses = _some(old, "changed_counts loss") | {"noise_loss": old["base_loss"]}
    if old["change"] == "moves":
        return {"kind": "moves", **_some(old, "origin destination"), **losses}
    return {"kind": "enters-or-leaves", "node": old["origin"], **losses}


def _accuracy(old: Mapping[str, Any]) -> dict[str, Any]:
    text, basis = old["told"], {"kind": old["source"]}
    why = [obstacle for phrase, obstacle in _OBSTACLES.items() if phrase in text]
    if old["source"] == "simulation":
        # "whose quantiles 9,999 simulated releases tell", "with a probability of 3e-05 at most"
        number = text.partition("whose quantiles ")[2].partition(" simulated")[0]
        risk = text.rpartition("with a probability of ")[2].partition(" at most")[0]
        basis |= {"releases": int(number.replace(",", "")), "risk": float(risk)}
    elif old["source"] == "posterior":
        basis["not_by_inversion"] = why[0]
    elif old["source"] == "none":
        basis["obstacles"] = why
    return {**_some(old, "confidence levels sums"), "basis": basis}
