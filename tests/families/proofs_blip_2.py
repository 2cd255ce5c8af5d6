"""posenc.configs.families.blip_2, compared with the models' own code in transformers."""

from __future__ import annotations

import torch

import posenc
from families.harness import Proof, build, config_of, modeling, proof, spec_of, tokens
from posenc.configs.weights import with_weights


@proof("blip_2_qformer")
def blip_2_qformer(model_type: str) -> Proof:
    result = Proof(model_type, "learned table for the text input, if there is one; no positions for queries")
    sizes = {"num_hidden_layers": 2, "encoder_hidden_size": 16, "max_position_embeddings": 12}
    config = config_of(model_type, **sizes, use_qformer_text_input=True)
    spec, module = spec_of(config), modeling(model_type).Blip2TextEmbeddings(config)
    state = {f"embeddings.{name}": value for name, value in module.state_dict().items()}
    words, queries = tokens((2, 5)), torch.randn(2, 3, 64)
    with torch.no_grad():
        out = module(input_ids=words, query_embeds=queries)
        got = with_weights(spec, 0, state).embed(module.word_embeddings(words), posenc.Positions.arange(2, 5))
    result.close("what enters the first layer, words", got, out[:, 3:])
    result.equal("queries unchanged", out[:, :3], queries)
    both_ways(result, build(config, "Blip2QFormerModel", attention=None))
    silent = spec_of(config_of(model_type, **sizes))
    assert len(spec.layers) == len(silent.layers) == 2
    assert not any(layer.uses for layer in silent.layers)
    return result


@proof("instructblip_qformer", "instructblipvideo_qformer")
def instructblip_qformer(model_type: str) -> Proof:
    result = Proof(model_type, "learned table for text, none for queries")
    config = config_of(model_type, num_hidden_layers=2, encoder_hidden_size=16, max_position_embeddings=12)
    name = "InstructBlipVideo" if "video" in model_type else "InstructBlip"
    spec, model = spec_of(config), build(config, f"{name}QFormerModel", attention=None)
    words, queries, entered = tokens((2, 5)), torch.randn(2, 3, 64), []
    model.embeddings.layernorm.register_forward_pre_hook(lambda module, given: entered.append(given[0]))
    with torch.no_grad():
        mask = torch.ones(2, 8, dtype=torch.long)
        model(input_ids=words, query_embeds=queries, attention_mask=mask, encoder_hidden_states=torch.randn(2, 4, 16))
        text = model.embeddings.word_embeddings(words)
    got = with_weights(spec, 0, model.state_dict()).embed(text, posenc.Positions.arange(2, 5))
    result.close("what enters the first layer, words", got.detach(), entered[0][:, 3:])
    result.equal("queries unchanged", entered[0][:, :3], queries)
    assert len(spec.layers) == len(model.encoder.layer) == 2
    assert not spec.layers[1].uses
    return result


def both_ways(result: Proof, model: torch.nn.Module) -> None:
    """Queries in another order come out in that order: nothing tells them apart but what they are."""
    queries, order = torch.randn(1, 6, 64), torch.tensor([3, 1, 5, 0, 4, 2])
    with torch.no_grad():
        image = torch.randn(1, 4, 16)
        once, again = (model(x, encoder_hidden_states=image).last_hidden_state for x in (queries, queries[:, order]))
    result.close("queries in another order", once[:, order], again, 16.0)  # sums over queries in another order
