"""Measures of untrained encodings: pure functions in fp64.

table   shift matrix, uniqueness, collisions by precision, neighbours, pairs that never finish a turn
decay   sinusoidal similarity and RoPE scores against distance, with the bound
scores  what an encoding adds to the logits, and the score of equal vectors against distance
order   how attention's output changes when the words are re-ordered
taylor  how much of the position signal is relative
"""

from __future__ import annotations

from posenc.frequencies import wavelengths as wavelengths
from posenc.pictures.measures.decay import first_rise as first_rise
from posenc.pictures.measures.decay import rope_bound as rope_bound
from posenc.pictures.measures.decay import rope_score as rope_score
from posenc.pictures.measures.decay import rope_score_of as rope_score_of
from posenc.pictures.measures.decay import sinusoidal_similarity as sinusoidal_similarity
from posenc.pictures.measures.order import SENTENCE_PAIRS as SENTENCE_PAIRS
from posenc.pictures.measures.order import OrderBlindness as OrderBlindness
from posenc.pictures.measures.order import SentencePair as SentencePair
from posenc.pictures.measures.order import last_token_sensitivity as last_token_sensitivity
from posenc.pictures.measures.order import order_sensitivity as order_sensitivity
from posenc.pictures.measures.order import order_sensitivity_of as order_sensitivity_of
from posenc.pictures.measures.order import rnn_sensitivity as rnn_sensitivity
from posenc.pictures.measures.order import sentence_sensitivity as sentence_sensitivity
from posenc.pictures.measures.scores import added_to_logits as added_to_logits
from posenc.pictures.measures.scores import row_similarity as row_similarity
from posenc.pictures.measures.scores import score_of_ones as score_of_ones
from posenc.pictures.measures.table import Closest as Closest
from posenc.pictures.measures.table import distances as distances
from posenc.pictures.measures.table import distinct_rows_of_rounded_positions as distinct_rows_of_rounded_positions
from posenc.pictures.measures.table import distinct_rows_of_rounded_table as distinct_rows_of_rounded_table
from posenc.pictures.measures.table import neighbour_distance as neighbour_distance
from posenc.pictures.measures.table import shift_matrix as shift_matrix
from posenc.pictures.measures.table import unfinished_pairs as unfinished_pairs
from posenc.pictures.measures.table import uniqueness as uniqueness
from posenc.pictures.measures.taylor import TaylorTerms as TaylorTerms
from posenc.pictures.measures.taylor import relative_share as relative_share
from posenc.pictures.measures.taylor import taylor_split as taylor_split
