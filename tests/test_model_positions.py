"""positions_from_transformers against positions written by hand."""

import pytest
import torch

from posenc import positions_from_transformers


def shown(at):
    """Coordinates of real tokens row by row, None for padding."""
    return [
        [c if d >= 0 else None for c, d in zip(row, documents, strict=True)]
        for row, documents in zip(at.coords.tolist(), at.document.tolist(), strict=True)
    ]


def test_a_plain_prompt_and_one_more_token():
    queries, keys = positions_from_transformers(4, batch=2)
    assert queries is keys
    assert queries.consecutive_in == "row"
    assert shown(queries) == [[0, 1, 2, 3]] * 2
    queries, keys = positions_from_transformers(1, batch=2, past=4)
    assert (shown(queries), shown(keys)) == ([[4]] * 2, [[0, 1, 2, 3, 4]] * 2)
    assert queries.consecutive_in == "row"
    assert keys.consecutive_in == "row"
    assert keys.order.tolist() == [[0, 1, 2, 3, 4]] * 2


def test_a_window_holds_the_last_keys():
    queries, keys = positions_from_transformers(2, 3, past=5)
    assert (shown(queries), shown(keys)) == ([[5, 6]], [[4, 5, 6]])
    assert keys.order.tolist() == [[4, 5, 6]]


def test_a_static_cache_has_keys_that_are_not_written_yet():
    for past in (3, torch.tensor(3)):
        queries, keys = positions_from_transformers(1, 6, past=past)
        assert (shown(queries), shown(keys)) == ([[3]], [[0, 1, 2, 3, None, None]])


def test_padding_on_the_left_and_on_the_right():
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 0, 1]])
    queries, keys = positions_from_transformers(1, past=4, batch=2, attention_mask=mask)
    assert shown(queries) == [[2], [3]]
    assert shown(keys) == [[None, None, 0, 1, 2], [0, 1, 2, None, 3]]
    queries, keys = positions_from_transformers(4, batch=2, attention_mask=mask[:, :4])
    assert queries is keys
    assert shown(queries) == [[None, None, 0, 1], [0, 1, 2, None]]


def test_position_ids_stand_for_counting():
    ids = torch.tensor([[7, 8, 9]])
    queries, keys = positions_from_transformers(3, batch=2, position_ids=ids)
    assert shown(queries) == [[7, 8, 9]] * 2
    queries, keys = positions_from_transformers(1, past=4, position_ids=torch.tensor([[2]]))  # two tokens of padding
    assert shown(queries) == [[2]]
    assert keys.coords.tolist() == [[0, 0, 0, 1, 2]]


def test_packed_rows_are_documents():
    ids = torch.tensor([[0, 1, 2, 0, 1, 0]])
    queries, _ = positions_from_transformers(6, position_ids=ids)
    assert queries.document.tolist() == [[0, 0, 0, 1, 1, 2]]
    assert queries.coords.tolist() == ids.tolist()


WRONG = [
    ({"length": 0}, ValueError, "length"),
    ({"length": 2, "past": -1}, ValueError, "past: expected a whole number from 0"),
    ({"length": 2, "keys": 0}, ValueError, "keys: "),
    ({"length": 2, "past": torch.tensor([1.0])}, ValueError, "past: |keys: "),
    ({"length": 2, "past": torch.tensor(1)}, ValueError, "keys: expected a number beside a past that is a tensor"),
    ({"length": 2, "batch": 3, "attention_mask": torch.ones(2, 2)}, ValueError, "attention_mask: expected 3 rows"),
    ({"length": 2, "attention_mask": torch.ones(1, 1, 2, 2)}, ValueError, r"attention_mask: expected a tensor \[b, s\]"),
    (
        {"length": 2, "position_ids": torch.ones(1, 3, dtype=torch.long)},
        ValueError,
        r"position_ids: expected \[1 or 1, 2\]",
    ),
    ({"length": 2, "position_ids": torch.ones(1, 2)}, ValueError, "position_ids: expected .* whole numbers"),
]


@pytest.mark.parametrize(("given", "error", "said"), WRONG, ids=lambda value: str(value)[:30])
def test_what_does_not_fit_is_refused_by_name(given, error, said):
    with pytest.raises(error, match=said):
        positions_from_transformers(**given)
