"""The table of laws: each has one name and one sentence, whatever it is tried on.

`rows` says on what: encodings (`posenc.laws`), callables by their seam (`posenc.check`), and models, once
`posenc.transformers` is imported. How a law is measured stands where it is measured, under the same name.
"""

from __future__ import annotations

from typing import get_args

from posenc.checking.engine import LAWS
from posenc.checking.say import say
from posenc.checking.subject import Seam
from posenc.support.languages import Words

KINDS = (*get_args(Seam), "encoding", "model")
SENTENCES: dict[str, Words] = {
    # parts of a sequence
    "decode_equals_prefill": say("Tokens decoded one by one give what one call gives."),
    "chunked_equals_whole": say("A sequence in chunks gives what the whole gives."),
    "decode_equals_prefill_past_the_trained_length": say(
        "Tokens decoded across the trained length give what one call gives."
    ),
    "blocks_of_keys_equal_the_whole": say("Queries over a part of the keys have that part of the whole bias."),
    "sharded_equals_whole": say("Queries split over ranks give what they give unsharded."),
    "head_slices": say("A slice of the heads computes that slice of the whole."),
    "storage_order_does_not_matter": say("Tokens stored in another order, each with its position, give the same."),
    "gaps_are_kept": say("Positions with gaps between them are used as they are."),
    "later_tokens_do_not_matter": say("Tokens after a query do not change what it reads."),
    "far_tokens_do_not_matter": say("Tokens give the same when a token far away follows in their row."),
    "short_calls_equal_long_calls": say("The first tokens of a long call give what they give alone, also after it."),
    # rows of a batch
    "batch_mates_do_not_matter": say("A row gives beside other rows what it gives alone."),
    "rows_have_their_own_positions": say("Rows at positions of their own give what they give alone."),
    "sizes_are_not_confused": say("Batch, heads and tokens are told apart where they have one size."),
    "packed_equals_separate": say("Documents packed in one row give what they give alone."),
    "padded_equals_unpadded": say("Padding changes nothing for real tokens, and its own rows are finite."),
    "left_padded_equals_alone": say("A row padded on the left gives what it gives alone."),
    "right_padded_equals_alone": say("A row padded on the right gives what it gives alone."),
    "padded_decoding_equals_alone": say("A token decoded after a padded row gives what it gives alone."),
    # positions
    "locality": say("An encoded token depends on itself and its own position only, where declared."),
    "shift_invariance": say("Moving all positions by the same amount changes nothing, where declared."),
    "norm_preservation": say("Rotation keeps the length of a vector, where declared."),
    "position_0_does_not_turn": say("A token at position 0 keeps its direction."),
    "heads_turn_alike": say("The same token in all heads turns alike."),
    "neighbours_stay_distinct": say("A token at two neighbouring positions gives two results."),
    "rows_do_not_repeat": say("Far positions do not give the rows of near ones again."),
    "integers_of_32_bits_are_read_alike": say("Positions as 32-bit integers give what 64-bit integers give."),
    "far_distances_follow_the_line": say("A bias that is a straight line goes on as that line."),
    "a_straight_bias_falls_with_distance": say("A bias that is a straight line gives nearer keys more."),
    "hidden_keys_are_those_after_the_query": say("A bias that hides keys hides those after the query and no others."),
    "listed_equals_counted": say("Positions that count up by one give the same when nothing is known of them."),
    "joined_equals_listed": say("Positions of a cache, joined part by part, give the same as listed ones."),
    # attention
    "weights_sum_to_one": say("Values of ones give ones."),
    "heads_read_their_own_keys": say("A query head reads the key head of its group and no other."),
    "rows_that_see_no_key": say("A query that sees no key gives zeros, and no gradient comes back through it."),
    "empty_calls": say("Calls of no rows, no queries or no keys are served."),
    "width_of_values": say("Values may be narrower or wider than the heads."),
    "options_agree": say("Every option means the same by every backend."),
    "backends_agree": say("Every backend gives what the reference gives."),
    "module_equals_attend": say("The module gives what its parts give, decoding included."),
    "position_bias_is_not_ignored": say("A position_bias that attention documents changes the logits."),
    # earlier and other calls
    "the_same_call_gives_the_same": say("Equal calls give equal results."),
    "earlier_calls_do_not_matter": say("The very first call gives the same again after all others."),
    "far_calls_do_not_matter": say("A call gives the same before and after one past the trained length."),
    "other_offsets_do_not_matter": say("Calls of one length at two offsets do not see each other's tables."),
    "other_dtypes_do_not_matter": say("A call on bfloat16 tokens does not change later calls on float32 tokens."),
    "calls_at_once_do_not_matter": say("A call gives the same while other threads call too."),
    "tables_know_their_owner": say("Prepared positions give the same; tables of another configuration are refused."),
    "forward_writes_nothing": say("A call changes nothing that it is given and nothing that it keeps."),
    # numbers, memory and what surrounds a call
    "no_number_is_nan": say("No number of a result is NaN."),
    "strides_do_not_matter": say("Tensors that lie otherwise in memory give the same."),
    "tokens_of_16_bits_lose_16_bits_only": say("bfloat16 tokens lose no more than their own rounding."),
    "default_dtype_does_not_matter": say("The same under another torch.set_default_dtype."),
    "autocast_does_not_matter": say("The same inside autocast, up to the rounding that it is asked for."),
    "inference_mode_does_not_matter": say("A call in inference mode leaves nothing that a call with gradients cannot use."),
    # modules
    "state_is_configuration": say("There are no buffers; copies and pickles give the same."),
    "casting_a_module_does_not_round_its_angles": say("A cast to 16 bits and back changes trained parameters only."),
    "casts_keep_positions_exact": say("Parameters that multiply positions keep every bit in 16 bits."),
    "tables_survive_to_empty": say("The same after meta construction, to_empty and loading."),
    "fixed_tables_are_not_trained": say("A table by a known formula has no trainable parameters."),
    # derivatives and compilation
    "gradients": say("Gradients are those of finite differences."),
    "gradients_agree": say("Every backend's gradients are those of the reference, at the dtype of the call."),
    "transforms": say("Derivatives agree, whichever way they are taken."),
    "checkpointed_equals_plain": say("Activation checkpointing and hooks on saved tensors change nothing."),
    "one_graph_over_lengths": say("torch.compile makes one graph for all lengths, and it is right."),
}


def rows() -> list[tuple[str, list[str], Words]]:
    """(name, what it is tried on, sentence) of every law that is tried on anything, in the order of the table."""
    tried = {name: [kind for kind in KINDS if name in LAWS.get(kind, {})] for name in SENTENCES}
    return [(name, kinds, SENTENCES[name]) for name, kinds in tried.items() if kinds]
