"""What make test leaves to make acceptance."""

import itertools

from sampling import every_second


def test_of_every_second_combination_all_pairs_of_values_remain():
    axes = ("abc", (1, 2, 3), "xyz")
    cases = every_second(*axes, slow="c")
    assert [case.values for case in cases] == list(itertools.product(*axes))
    kept = [case.values for case in cases if not case.marks]
    assert not any("c" in values for values in kept)
    for one, other in itertools.combinations(range(3), 2):
        left = [tuple(value for value in axis if value != "c") for axis in axes]
        pairs = set(itertools.product(left[one], left[other]))
        assert {(values[one], values[other]) for values in kept} == pairs
    assert len(kept) == 9
