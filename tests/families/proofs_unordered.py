"""Attention without positions; test_unordered.py looks through their weights."""

from __future__ import annotations

STAGES = "attention has none; order is in the convolutions that make patches and stand between layers"
NO_POSITIONS = {
    "cvt": "attention has none; queries, keys and values are made by convolutions",
    "glpn": STAGES,
    "segformer": STAGES,
    "pvt_v2": STAGES,
    "mobilevit": STAGES,
    "mobilevitv2": STAGES,
    "swiftformer": STAGES,
    "pp_ocrv5_server_rec": "attention has none, over the features of a convolutional backbone",
    "pp_ocrv5_mobile_rec": "attention has none, over the features of a convolutional backbone",
    "pp_ocrv6_small_rec": "attention has none, over the features of a convolutional backbone",
    "pp_ocrv6_tiny_rec": "a convolutional backbone, and a head without attention",
    "slanet": "a convolutional backbone, read by a recurrent cell",
    "superglue": "attention has none; a network of each point's coordinates and score is added to its features",
}
