"""posenc inside a loaded Hugging Face model.

    import posenc.transformers as pt

    pt.attach(model, posenc.create("alibi", n_heads=32))             another encoding instead of the model's
    pt.attach(model, posenc.create("nope"), layers=range(3, 32, 4))  in some layers
    pt.parameters(model)                                             of learned encodings, for the optimiser
    pt.detach(model)
    pt.check(model)                                                  the laws of position on this model; a report
    pt.from_pretrained(folder)                                       a saved model, with what was attached to it
    pt.fast(model), pt.slow(model)                                   posenc's rotation kernel, or the model's own again
    pt.extend(model, 131072, method="yarn")                          a longer context, in the configuration too
    pt.evict(model, cache, keep)                                     cached tokens dropped, the others moved together
    pt.crop(cache, lengths)                                          the first tokens of every row kept, row by row
    with pt.length(model, prompt + new): …                           dynamic NTK and LongRoPE: one length per request
    pt.register_rope("mine", frequencies), pt.unregister_rope(…)     a rope_type of one's own, global to the process

Registered interfaces of transformers and module hooks. Where the model's rotation is replaced, an attention module has a
forward of its own. Nothing of transformers is changed. Needs the package transformers.
"""

from typing import TYPE_CHECKING

from posenc.support.lazy import public

if TYPE_CHECKING:
    from posenc.transformers.attachment import attach as attach
    from posenc.transformers.attachment import detach as detach
    from posenc.transformers.attachment import parameters as parameters
    from posenc.transformers.decoder import Unsupported as Unsupported
    from posenc.transformers.eviction import crop as crop
    from posenc.transformers.eviction import evict as evict
    from posenc.transformers.extension import extend as extend
    from posenc.transformers.kernel_rotation import fast as fast
    from posenc.transformers.kernel_rotation import slow as slow
    from posenc.transformers.loaded import from_pretrained as from_pretrained
    from posenc.transformers.model_laws import check as check
    from posenc.transformers.request_length import length as length
    from posenc.transformers.rope_types import register_rope as register_rope
    from posenc.transformers.rope_types import unregister_rope as unregister_rope

__getattr__, __dir__ = public(
    __name__,
    {
        "attach": "attachment",
        "detach": "attachment",
        "parameters": "attachment",
        "check": "model_laws",
        "Unsupported": "decoder",
        "crop": "eviction",
        "evict": "eviction",
        "extend": "extension",
        "fast": "kernel_rotation",
        "slow": "kernel_rotation",
        "from_pretrained": "loaded",
        "length": "request_length",
        "register_rope": "rope_types",
        "unregister_rope": "rope_types",
    },
)
