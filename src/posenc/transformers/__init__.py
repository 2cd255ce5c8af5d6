"""posenc inside a loaded Hugging Face model.

    import posenc.transformers as pt

    pt.attach(model, posenc.create("alibi", n_heads=32))             another encoding instead of the model's
    pt.attach(model, posenc.create("nope"), layers=range(3, 32, 4))  in some layers
    pt.parameters(model)                                             of learned encodings, for the optimiser
    pt.detach(model)

Only registered interfaces of transformers and module hooks are used. Needs the package transformers.
"""

from posenc.transformers.attach import attach as attach
from posenc.transformers.attach import detach as detach
from posenc.transformers.attach import parameters as parameters
from posenc.transformers.decoder import Unsupported as Unsupported
from posenc.transformers.loaded import from_pretrained as from_pretrained
