"""What every encoding must obey, for anyone's implementation.

    posenc.laws.check(my_encoding, posenc.laws.Setting(d_model=64, n_heads=4))      raises LawBroken at the first breach
    posenc.laws.report(my_encoding)                                                  says of every law whether it holds

Each law is a plain function of an encoding and a setting. A law compares an encoding with itself under another arrangement
of the same tokens, so it needs no formula. A wrong sign or constant is for an oracle to find.

Draw the parameters of a learned encoding first (`draw_parameters`): a table of zeros obeys nearly every law.

    rows            a token's row depends on the token alone
    arrangements    the same tokens in chunks, packed, padded, sharded, shifted, in another order, at other strides
    attention_module  posenc.Attention is what its parts are
    state           where configuration lives, and what a call may write
    compilation     torch.compile
    derivatives     gradients
    transforms      forward mode, torch.func, second derivatives
    checkpointing   activation checkpointing and hooks on saved tensors
    backends        every backend computes the same
    no_visible_key  queries from which everything is hidden
    sizes           no rows, no tokens, values of another width than the heads
    options         masks, windows, chunks, scales and caps mean the same everywhere

Legend: b batch, t tokens, h query heads, g key heads, d d_model, dh d_head.
"""

from posenc.checking.errors import LawBroken, NotApplicable
from posenc.checking.laws.arrangements import (
    batch_mates_do_not_matter,
    decode_equals_prefill,
    head_slices,
    joined_equals_listed,
    listed_equals_counted,
    packed_equals_separate,
    padded_equals_unpadded,
    sharded_equals_whole,
    shift_invariance,
    storage_order_does_not_matter,
    strides_do_not_matter,
)
from posenc.checking.laws.attention_module import module_equals_attend
from posenc.checking.laws.backends import backends_agree
from posenc.checking.laws.checkpointing import checkpointed_equals_plain
from posenc.checking.laws.compilation import one_graph_over_lengths
from posenc.checking.laws.derivatives import gradients, gradients_agree
from posenc.checking.laws.no_visible_key import rows_that_see_no_key
from posenc.checking.laws.options import options_agree
from posenc.checking.laws.registry import LAWS, Law, check, law, report
from posenc.checking.laws.rows import locality, norm_preservation
from posenc.checking.laws.sizes import empty_calls, width_of_values
from posenc.checking.laws.state import (
    autocast_does_not_matter,
    calls_at_once_do_not_matter,
    casting_a_module_does_not_round_its_angles,
    casts_keep_positions_exact,
    default_dtype_does_not_matter,
    forward_writes_nothing,
    inference_mode_does_not_matter,
    state_is_configuration,
    tables_know_their_owner,
    tables_survive_to_empty,
)
from posenc.checking.laws.transforms import transforms
from posenc.checking.laws.world import Setting, World, draw_parameters, expressible

__all__ = [
    "LAWS",
    "Law",
    "LawBroken",
    "NotApplicable",
    "Setting",
    "World",
    "autocast_does_not_matter",
    "backends_agree",
    "batch_mates_do_not_matter",
    "calls_at_once_do_not_matter",
    "casting_a_module_does_not_round_its_angles",
    "casts_keep_positions_exact",
    "check",
    "checkpointed_equals_plain",
    "decode_equals_prefill",
    "default_dtype_does_not_matter",
    "draw_parameters",
    "empty_calls",
    "expressible",
    "forward_writes_nothing",
    "gradients",
    "gradients_agree",
    "head_slices",
    "inference_mode_does_not_matter",
    "joined_equals_listed",
    "law",
    "listed_equals_counted",
    "locality",
    "module_equals_attend",
    "norm_preservation",
    "one_graph_over_lengths",
    "options_agree",
    "packed_equals_separate",
    "padded_equals_unpadded",
    "report",
    "rows_that_see_no_key",
    "sharded_equals_whole",
    "shift_invariance",
    "state_is_configuration",
    "storage_order_does_not_matter",
    "strides_do_not_matter",
    "tables_know_their_owner",
    "tables_survive_to_empty",
    "transforms",
    "width_of_values",
]
