"""YaRN: four times the trained length, without and with a short fine-tuning on long text.

Peng et al. 2023, "YaRN: Efficient Context Window Extension of Large Language Models" (arXiv 2309.00071).

    python examples/recipes/yarn.py [FOLDER]
"""

import time

from tiny_llama import TRAINED, folder, perplexities, report, text, trained, tune

import posenc.transformers as pt

begun, read = time.monotonic(), text()
model = trained(folder() / "base", read)
rows = {"RoPE": perplexities(model, read)}

pt.extend(model, 4 * TRAINED, method="yarn")
rows["YaRN, factor 4"] = perplexities(model, read)

tune(model, read, 80, learning_rate=5e-4, length=4 * TRAINED)
rows["YaRN, factor 4, fine-tuned"] = perplexities(model, read)

report("yarn", "YaRN: four times the trained length", rows, begun)
