"""The tables of a forest that remains given a cut set, from the leaves up, with their windows."""

from __future__ import annotations

from congenial.kernels.network import cutset
from congenial.sum_network.cutset.boxes import NOTHING, Box, Signed, Span, sum_of, turned


class Compiler:
    """Grows the list of tables."""

    def __init__(self, box: Box) -> None:
        self.box = box
        names = "op left right sign row lo hi tally_lo tally_hi variable flip"
        self.columns: dict[str, list[int]] = {name: [] for name in names.split()}
        self.moving: list[bool] = []
        self.spans: list[Span] = []
        self.tally_spans: list[Span] = []
        self._reached: dict[tuple[tuple[int, int], ...], tuple[int, int]] = {}

    @property
    def sums(self) -> tuple[Signed, ...]:
        """The signed sums whose ranges are excluded."""
        return tuple(dict(key) for key in self._reached if key)

    def add(
        self,
        op: int,
        lo: int,
        hi: int,
        span: Span,
        moving: bool,
        tallied: tuple[int, int, Span] = (0, 0, NOTHING),
        **more: int,
    ) -> int:
        """Append a table; return its number."""
        default = {"left": 0, "right": 0, "sign": 1, "row": 0, "variable": -1, "flip": 1}
        given = default | {"op": op, "lo": lo, "hi": hi, **more}
        given["tally_lo"], given["tally_hi"], tally_span = tallied
        for name, column in self.columns.items():
            column.append(given[name])
        self.moving.append(moving)
        self.spans.append(span)
        self.tally_spans.append(tally_span)
        return len(self.moving) - 1

    def unary(self, v: int, flip: int) -> int:
        """Append the weight of a variable at ``flip * value``."""
        lo, hi = int(self.box.lo[v]), int(self.box.hi[v])
        if flip < 0:
            lo, hi = -hi, -lo
        span = turned(self.box.spans[v], flip)
        return self.add(cutset.UNARY, lo, hi, span, moving=False, variable=v, flip=flip)

    def merge(self, a: int, b: int) -> int:
        """Append the law of the sum of two tables."""
        col = self.columns
        lo, hi = col["lo"][a] + col["lo"][b], col["hi"][a] + col["hi"][b]
        span = sum_of(self.spans[a], self.spans[b])
        lo, hi = self._within(lo, hi, span)
        moving = self.moving[a] or self.moving[b]
        return self.add(cutset.MERGE, lo, hi, span, moving, self._joined(a, b), left=a, right=b)

    def read(self, t: int, below: int, sign: int, row: int, *, shifted: bool) -> int:
        """Multiply a variable's table by the law of a sum below it."""
        lo, hi, span = self.columns["lo"][t], self.columns["hi"][t], self.spans[t]
        moving = self.moving[t] or self.moving[below] or shifted
        links = {"left": t, "right": below, "sign": sign, "row": row}
        return self.add(cutset.READ, lo, hi, span, moving, self._joined(t, below), **links)

    def enter(self, t: int, sign: int) -> int:
        """Add a variable's value, times `sign`, to the tally."""
        lo, hi = self.columns["lo"][t], self.columns["hi"][t]
        ends = sorted((sign * lo, sign * hi))
        low, high, span = self._tally(t)
        span = sum_of(span, turned(self.spans[t], sign))
        tallied = (*self._within(low + ends[0], high + ends[1], span), span)
        links = {"left": t, "right": t, "sign": sign}
        return self.add(cutset.ENTER, lo, hi, self.spans[t], self.moving[t], tallied, **links)

    def close(self, parts: list[int], row: int, *, shifted: bool) -> int:
        """Close the tallies of all parts at their total; the table has the first part's value."""
        first, *others = parts
        sums = [
            self.add(cutset.SUM, 0, 0, NOTHING, self.moving[t], self._tally(t), left=t, right=t)
            for t in others
        ]
        rest = self.merge_all(sums)
        moving = self.moving[first] or self.moving[rest] or shifted
        window = self.columns["lo"][first], self.columns["hi"][first], self.spans[first]
        return self.add(cutset.CLOSE, *window, moving, left=first, right=rest, row=row)

    def _tally(self, t: int) -> tuple[int, int, Span]:
        return self.columns["tally_lo"][t], self.columns["tally_hi"][t], self.tally_spans[t]

    def _joined(self, a: int, b: int) -> tuple[int, int, Span]:
        one, two = self._tally(a), self._tally(b)
        if one == two == (0, 0, NOTHING):
            return one
        span = sum_of(one[2], two[2])
        return *self._within(one[0] + two[0], one[1] + two[1], span), span

    def _within(self, lo: int, hi: int, span: Span) -> tuple[int, int]:
        """Intersect a window with the range of a signed sum."""
        key = tuple(sorted(span[0].items()))
        if key not in self._reached:
            self._reached[key] = self.box.reach(span[0])
        reach = self._reached[key]
        return max(lo, reach[0] + span[1]), min(hi, reach[1] + span[2])

    def merge_all(self, parts: list[int]) -> int:
        """Merge in rounds of pairs, tables that never change first."""
        still = self._rounds([t for t in parts if not self.moving[t]])
        joined = still + self._rounds([t for t in parts if self.moving[t]])
        if not joined:
            return self.add(cutset.POINT, 0, 0, NOTHING, moving=False)
        return self.merge(joined[0], joined[1]) if len(joined) == 2 else joined[0]

    def _rounds(self, group: list[int]) -> list[int]:
        while len(group) > 1:
            pairs = [self.merge(a, b) for a, b in zip(group[::2], group[1::2], strict=False)]
            group = pairs + (group[-1:] if len(group) % 2 else [])
        return group
