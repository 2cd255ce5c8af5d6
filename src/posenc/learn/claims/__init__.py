"""The ledger: statements of the founding notes, each checked by computation.

for claim in posenc.learn.claims.LEDGER.values():
    print(claim.words.en, claim.check().verdict)
"""

from __future__ import annotations

from posenc.learn.claims import attention, length, table
from posenc.learn.claims.claim import Claim as Claim
from posenc.learn.claims.claim import Evidence as Evidence
from posenc.learn.claims.claim import Verdict as Verdict

_ALL: tuple[Claim, ...] = (
    table.denominators,
    table.last_cosine,
    table.slow_neighbours,
    table.neighbours_shrink,
    table.third_component,
    table.frequencies_grow,
    attention.permutation_invariant,
    table.longest_wavelength,
    attention.query_by_hand,
    attention.scores_by_hand,
    attention.position_codes,
    attention.reversed_weights,
    table.recurrence,
    attention.relative_score,
    table.never_repeats,
    length.sinusoid_unlimited,
    length.alibi_best,
    length.rope_unlimited,
    length.rope_decay,
    table.mean_and_variance,
    table.same_range,
    attention.positions_move_too,
    table.decay_is_spread,
    attention.gpt2_sinusoid,
    table.absolute_or_relative,
    table.right_half,
    table.addition_theorem,
    table.index_range,
    table.orthogonal_columns,
    table.shift_is_learned,
    attention.same_attention,
    length.better_for_language,
    # Errors in formulas, code and pictures of the notes, not in a sentence.
    attention.scale_left_out,
    attention.set_of_words,
    attention.taylor_without_half,
    attention.no_projection_of_r,
    table.column_is_index,
)
LEDGER: dict[str, Claim] = {claim.id: claim for claim in _ALL}
