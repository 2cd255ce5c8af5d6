"""RNoPE: a model trained with RoPE in every layer keeps it in every second one; the others get NoPE and a short training.

Yang et al. 2025, "RoPE to NoPE and Back Again: A New Hybrid Attention Strategy" (arXiv 2501.18795). Their windows in the
RoPE layers are left out here.

    python examples/recipes/rnope.py [FOLDER]
"""

import time

from tiny_llama import folder, perplexities, report, text, trained, tune

import posenc
import posenc.transformers as pt

begun, read = time.monotonic(), text()
model = trained(folder() / "base", read)
rows = {"RoPE in every layer": perplexities(model, read)}

pt.attach(model, posenc.create("nope"), layers=[1, 3])
rows["NoPE in layers 1 and 3"] = perplexities(model, read)

tune(model, read, 150, learning_rate=1e-3)
rows["NoPE in layers 1 and 3, tuned"] = perplexities(model, read)

report("rnope", "RNoPE: NoPE in every second layer", rows, begun)
