"""Trees: how they are made, refused, walked and summed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import congenial as cg
from congenial.errors import ArgumentError, StructureError
from support.conditioning_cases import forests
from support.notebook import HOSTILE, texts

PATHS = ["city/north/a", "city/north/b", "city/south/a", "city/south"]


def naive_sums(parents, leaves, counts):
    """Walk up from every leaf, one by one."""
    out = [0] * len(parents)
    for leaf, count in zip(leaves, counts, strict=True):
        node = leaf
        while node >= 0:
            out[node] += int(count)
            node = parents[node]
    return out


@given(forests(30), st.data())
@settings(max_examples=100, derandomize=True, deadline=None)
def test_roll_up_is_the_sum_of_the_leaves_below(parents, data):
    tree = cg.Tree.from_parents(parents)
    children = set(parents)
    assert tree.leaves.tolist() == [v for v in range(len(parents)) if v not in children]
    assert tree.roots.tolist() == [v for v in range(len(parents)) if parents[v] < 0]
    number = st.integers(-(2**50), 2**50)
    counts = np.array([data.draw(number) for _ in tree.leaves], dtype=np.int64)
    want = naive_sums(parents, tree.leaves, counts)
    got = tree.roll_up(counts)
    assert got.dtype == np.int64
    assert got.tolist() == want
    assert tree.is_consistent(got)
    rows = tree.roll_up(np.array([counts, -counts, 0 * counts]))
    assert (rows == np.array([got, -got, 0 * got])).all()
    if children - {-1}:
        node = data.draw(st.integers(0, len(parents) - 1))
        wrong = got.copy()
        wrong[node] += 1
        assert not tree.is_consistent(wrong) or (parents[node] < 0 and tree.is_leaf[node])


@given(forests(30))
@settings(max_examples=100, derandomize=True, deadline=None)
def test_levels_children_and_paths_agree_with_the_parents(parents):
    tree = cg.Tree.from_parents(parents)
    starts, order = tree.children
    for v, parent in enumerate(parents):
        depth, node = 0, v
        while parents[node] >= 0:
            depth, node = depth + 1, parents[node]
        assert tree.level[v] == depth
        assert len(tree.path(v)) == depth + 1
        assert tree.path(v)[-1] == str(v)
        assert tree.above(v).tolist() == [*map(int, tree.path(v))]
        assert order[starts[v] : starts[v + 1]].tolist() == [
            u for u in range(len(parents)) if parents[u] == v
        ]
        assert parent < 0 or tree.path(v)[:-1] == tree.path(parent)
    assert tree.depth == tree.level.max() + 1
    again = cg.Tree.from_paths([tree.path(v) for v in tree.leaves])
    assert {again.path(v) for v in range(len(again))} == {tree.path(v) for v in range(len(tree))}


def test_roll_up_keeps_fractions_and_refuses_other_lengths():
    tree = cg.Tree.from_parents([-1, 0, 0])
    assert tree.roll_up([0.5, 0.25]).tolist() == [0.75, 0.5, 0.25]
    assert tree.roll_up([True, True]).tolist() == [2, 1, 1]
    assert tree.roll_up(np.zeros((4, 5, 2), dtype=int)).shape == (4, 5, 3)
    for wrong in ([1], [1, 2, 3], 1, [[1], [2]]):
        with pytest.raises(ArgumentError, match="give 2 values"):
            tree.roll_up(wrong)


def test_large_counts_add_up_exactly():
    tree = cg.Tree.from_parents([-1, 0, 0])
    assert tree.roll_up([2**60 + 1, 2**60 + 2]).tolist() == [2**61 + 3, 2**60 + 1, 2**60 + 2]


@pytest.mark.parametrize(
    ("parents", "told"),
    [
        ([], "non-empty"),
        ([[-1, 0]], "one-dimensional"),
        ([-1.0, 0.0], "integer"),
        ([-1, 2], "parents[1] is 2"),
        ([-2, 0], "parents[0] is -2"),
        ([0], "cycle"),
        ([1, 0], "cycle"),
        ([-1, 2, 3, 1], "node 1 lies on a cycle"),
        ([-1, 0, 3, 2, 2], "cycle"),
        (["a", "b"], "integer"),
        (None, "integer"),
        ([True, False], "integer"),
    ],
)
def test_parents_that_do_not_form_a_tree_are_refused(parents, told):
    with pytest.raises(StructureError) as caught:
        cg.Tree.from_parents(parents)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("n", [1, 2, 126, 127, 128, 129, 255, 256, 32_767, 32_768, 32_769])
def test_levels_are_right_at_the_largest_value_of_their_type(n):
    chain = np.arange(-1, n - 1)
    tree = cg.Tree.from_parents(chain)
    assert tree.level.dtype == np.int64
    assert (tree.level == np.arange(n)).all()
    assert (tree.short_level == tree.level).all()
    assert tree.depth == n
    upwards = cg.Tree.from_parents([*range(1, n), -1])
    assert (upwards.level == np.arange(n)[::-1]).all()
    ring = np.append(chain, -1)
    ring[0] = n - 1
    with pytest.raises(StructureError, match="node 0 lies on a cycle"):
        cg.Tree.from_parents(ring)


def test_parents_of_uneven_rows_are_refused():
    with pytest.raises(StructureError):
        cg.Tree.from_parents([[0], [1, 2]])


def test_names_are_counted():
    assert cg.Tree.from_parents([-1, 0], ["top", "below"]).names == ("top", "below")
    with pytest.raises(StructureError, match="names has 1 entries; give 2"):
        cg.Tree.from_parents([-1, 0], ["top"])


def test_a_tree_keeps_its_own_parents():
    mine = np.array([-1, 0, 0])
    tree = cg.Tree.from_parents(mine)
    mine[2] = 1
    assert tree.parents.tolist() == [-1, 0, 0]
    for array in (tree.parents, tree.level):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5


def test_paths_make_inner_nodes_where_they_first_appear():
    tree = cg.Tree.from_paths([("city", "north", "a"), ("city", "north", "b"), ("city", "south")])
    assert tree.names == ("city", "north", "a", "b", "south")
    assert tree.parents.tolist() == [-1, 0, 1, 1, 0]
    assert tree.leaves.tolist() == [2, 3, 4]
    same = cg.Tree.from_paths(["city/north/a", "city/north/b", "city/south"])
    assert same.parents.tolist() == tree.parents.tolist()
    two = cg.Tree.from_paths(["a/x", "b/x"])
    assert two.roots.tolist() == [0, 2]


@pytest.mark.parametrize(
    ("paths", "told"),
    [
        ([], "no path"),
        ([()], "empty"),
        (["a/b", "a/b"], "a/b is given twice"),
        (["a/b", ("a", "b")], "a/b is given twice"),
        (["a/b", "a"], "a"),
        (["a", "a/b"], "a"),
        ([""], "empty"),
        (None, "paths is None"),
        ("a/b", "paths is 'a/b'"),
        ([1, 2], "the path 1 has 1 for a name"),
        ([b"a"], "the path b'a' has 97 for a name"),
        ([("a", "b"), ("a", float("nan"))], "the path ('a', nan) has nan for a name"),
        ([("a", None)], "has None for a name; give each name as text"),
    ],
)
def test_paths_that_do_not_form_a_tree_are_refused(paths, told):
    with pytest.raises(StructureError) as caught:
        cg.Tree.from_paths(paths)
    assert told in str(caught.value)


@pytest.mark.parametrize("names", [3, ["a", None], ["a", float("nan")], ["a", 2]])
def test_names_that_are_no_text_are_refused(names):
    with pytest.raises(StructureError, match=r"for a name; give each name as text\.$"):
        cg.Tree.from_parents([-1, 0], names)
    assert cg.Tree.from_parents([-1, 0], np.array(["a", "b"])).names == ("a", "b")


def test_nodes_are_found_by_index_name_and_path():
    tree = cg.Tree.from_paths(["city/north/a", "city/north/b", "city/south/a", "city/south/c"])
    assert tree.find(3) == 3
    assert tree.find(np.int64(3)) == 3
    assert tree.find("north") == 1
    assert tree.find("b") == 3
    assert tree.find("city/south/a") == 5
    assert tree.find(("city", "north", "a")) == 2
    assert tree.find(["city", "south"]) == 4
    for wrong, told in (
        ("a", "ambiguous"),
        ("nowhere", "unknown"),
        ("east/a", "unknown"),
        (("a",), "ambiguous"),
        (7, "out of range"),
        (-1, "out of range"),
    ):
        with pytest.raises(ArgumentError, match=told):
            tree.find(wrong)


def test_a_name_with_a_slash_is_not_mistaken_for_another_path():
    tree = cg.Tree.from_paths([("city", "a/b"), ("city", "a", "b")])
    assert tree.find(("city", "a", "b")) == 3
    assert tree.find("a/b") == 1


@pytest.mark.parametrize("node", [True, 2.0, None, [], ["A1", None], b"A1"])
def test_a_node_that_is_neither_index_nor_name_is_refused(node):
    tree = cg.Tree.from_parents([-1, 0, 0, 0])
    with pytest.raises(ArgumentError) as caught:
        tree.find(node)
    assert str(caught.value).startswith(f"node is {node!r}; give an index, a name, or a path")


def test_a_long_chain_of_nodes_is_fast():
    n = 2000
    tree = cg.Tree.from_parents(np.arange(-1, n - 1))
    assert tree.depth == n
    assert (tree.roll_up([7]) == 7).all()


@pytest.mark.parametrize("seed", range(20))
def test_sums_are_checked_in_any_order_of_the_nodes(seed):
    draw = np.random.default_rng(seed)
    n = int(draw.integers(1, 30))
    above = np.array([draw.integers(-1, v) for v in range(n)])
    place = draw.permutation(n)
    parents = np.full(n, -1)
    parents[place] = np.where(above >= 0, place[above], -1)
    tree = cg.Tree.from_parents(parents)
    x = tree.roll_up(draw.integers(-4, 9, tree.leaves.size))
    assert tree.is_consistent(x)
    assert tree.is_consistent(x / 4.0)
    for v in np.flatnonzero((parents >= 0) | ~tree.is_leaf):
        assert not tree.is_consistent(x + (np.arange(n) == v))
    assert not (parents >= 0).any() or not tree.is_consistent(np.full(n, np.nan))


def test_a_node_is_found_by_the_end_of_its_path():
    tree = cg.Tree.from_paths(["East/Ash", "West/Ash", "West/Elm"])
    ash = tree.find("East/Ash")
    assert tree.names[ash] == "Ash" and tree.path(ash)[-2:] == ("East", "Ash")
    assert tree.find("Elm") == tree.find("West/Elm")
    with pytest.raises(cg.CongenialError, match="ambiguous"):
        tree.find("Ash")


def test_a_tree_is_shown_by_its_levels():
    paths = [("north", HOSTILE), *(("south", name) for name in "abcd")]
    tree = cg.Tree.from_paths(paths)
    assert repr(tree) == "Tree(7 nodes, 2 levels)"
    assert texts(tree._repr_html_()) == [
        "Tree of 7 nodes",
        *("level", "nodes", "first names"),
        *("0", "2", "north, south"),
        *("1", "5", f"{HOSTILE}, a, b, …"),
    ]


def random_tree(source):
    """Return a forest in any order of its nodes, with names or without."""
    n = int(source.integers(2, 40))
    parents = [
        -1,
        *(int(source.integers(-1 if source.random() < 0.1 else 0, v)) for v in range(1, n)),
    ]
    order = source.permutation(n)  # node v becomes order[v]
    moved = np.full(n, -1)
    for v, parent in enumerate(parents):
        moved[order[v]] = order[parent] if parent >= 0 else -1
    names = [f"n{v}" for v in range(n)] if source.random() < 0.5 else None
    return cg.Tree.from_parents(moved, names)


def test_a_split_has_every_node_once_with_its_parent_and_name():
    cut = 0
    for seed in range(2000):
        source = np.random.default_rng([7, seed])
        tree = random_tree(source)
        if tree.depth == 1:
            with pytest.raises(ArgumentError, match="one level has no parts"):
                tree.split(0)
            continue
        level = int(source.integers(0, tree.depth - 1))
        split = tree.split(level)
        seen = list(split.nodes)
        assert list(split.nodes) == [v for v in range(len(tree)) if tree.level[v] <= level]
        for at, v in enumerate(split.nodes):
            parent = split.top.parents[at]
            assert (split.nodes[parent] if parent >= 0 else -1) == tree.parents[v]
        values = tree.roll_up(source.integers(0, 9, tree.leaves.size))
        assert split.roots.size
        for part in split.parts():
            cut += 1
            assert part.nodes[0] == split.nodes[part.root]
            assert tree.level[part.nodes[0]] == level
            assert (part.tree.parents[0], list(part.nodes[1:])) == (-1, sorted(part.nodes[1:]))
            assert (tree.level[part.nodes[1:]] > level).all()
            seen += part.nodes[1:].tolist()
            above = part.nodes[part.tree.parents[1:]]
            np.testing.assert_array_equal(above, tree.parents[part.nodes[1:]])
            assert part.tree.is_consistent(part.of(values))
            if tree.labels is not None:
                assert list(part.tree.names) == [tree.names[v] for v in part.nodes]
        assert sorted(seen) == list(range(len(tree)))
    assert cut > 3000


def test_a_part_of_one_number_for_all_nodes_is_one_number():
    part = cg.Tree.from_parents([-1, 0, 0, 1]).split(1).part(0)
    same = part.of(np.broadcast_to(3.0, 4))
    assert (same.strides, same.tolist()) == ((0,), [3.0, 3.0])


@pytest.mark.parametrize("level", [-1, 2, 3, True, "block", 1.0])
def test_a_level_with_nothing_below_is_refused(level):
    tree = cg.Tree.from_parents([-1, 0, 1])
    with pytest.raises(ArgumentError, match="level is"):
        tree.split(level)
