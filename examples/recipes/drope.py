"""DroPE: train with RoPE, drop it, recalibrate for a short time on the trained length, read further.

Gelberg et al. 2025, "Extending the Context of Pretrained LLMs by Dropping Their Positional Embeddings" (arXiv 2512.12167).

    python examples/recipes/drope.py [FOLDER]
"""

import time

from tiny_llama import folder, perplexities, report, text, trained, tune

import posenc
import posenc.transformers as pt

begun, read = time.monotonic(), text()
model = trained(folder() / "base", read)
rows = {"RoPE": perplexities(model, read)}

pt.attach(model, posenc.create("nope"))  # in every layer
rows["RoPE dropped"] = perplexities(model, read)

tune(model, read, 150, learning_rate=1e-3)
rows["RoPE dropped, recalibrated"] = perplexities(model, read)

report("drope", "DroPE: RoPE is dropped after training", rows, begun)
