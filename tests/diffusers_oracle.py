"""What diffusers' own functions do to queries and embeddings, model by model: imports nothing of posenc.

A function of TURNED takes x [b, h, t, d] and returns it turned as the class's attention turns it; one of ADDED returns what
is added to embeddings, [t, m]. Tokens stand in the order of the class's pipeline. `n` has the sizes: text, frames, height,
width, frames per second; `ids` the coordinates, read only where a pipeline's are not rebuilt here.
diffusers_oracle.json keeps a few sums of each result, so that tests without the package compare with it
(`python tests/test_diffusion_models.py FOLDER`, the folder that holds the package).
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace as Sizes
from typing import Any

import torch
from torch import Tensor

KEPT = Path(__file__).with_suffix(".json")
CPU = torch.device("cpu")
N = Sizes(text=5, frames=3, height=4, width=6, fps=12)
OTHERS = {  # sizes at which the positions of a row of the table hold without a factor
    "CogVideoX-5B": {"frames": 2, "height": 6, "width": 9},
    "ConsisID": {"frames": 2, "height": 6, "width": 9},
    "EasyAnimate": {"frames": 1, "height": 30, "width": 45},
    "Z-Image": {"text": 32},
    "DiT": {"height": 5, "width": 8},
}


def sizes(name: str) -> Sizes:
    return Sizes(**{**vars(N), **OTHERS.get(name, {})})


def module(name: str) -> Any:
    return import_module(f"diffusers.models.transformers.{name}")


def embeddings() -> Any:
    return import_module("diffusers.models.embeddings")


def pipeline(path: str, name: str) -> Any:
    return getattr(import_module(f"diffusers.pipelines.{path}"), name)


def neighbours(x: Tensor, tables: Any) -> Tensor:
    """cos and sin, [t, d] each."""
    return embeddings().apply_rotary_emb(x, tuple(table.reshape(-1, table.shape[-1]) for table in tables))


def halves(x: Tensor, tables: Any) -> Tensor:
    return embeddings().apply_rotary_emb(x, tables, use_real_unbind_dim=-2)


def complex_numbers(x: Tensor, table: Tensor) -> Tensor:
    """exp(iφ), [t, d/2]."""
    table = table.reshape(1, -1, table.shape[-1])
    return embeddings().apply_rotary_emb(x.transpose(1, 2), table, use_real=False).transpose(1, 2)


def matrices(x: Tensor, table: Tensor) -> Tensor:
    """2 × 2 matrices of pairs, [t, d/2, 2, 2]."""
    pairs = x.transpose(1, 2).reshape(1, x.shape[2], x.shape[1], -1, 1, 2)
    return (table.reshape(1, x.shape[2], 1, -1, 2, 2) * pairs).sum(-1).flatten(-2).transpose(1, 2)


def text_first(turn: Callable[..., Tensor], x: Tensor, tables: Any, n: Sizes) -> Tensor:
    return torch.cat([x[:, :, : n.text], turn(x[:, :, n.text :], tables)], dim=2)


def text_last(turn: Callable[..., Tensor], x: Tensor, tables: Any, n: Sizes) -> Tensor:
    return torch.cat([turn(x[:, :, : -n.text], tables), x[:, :, -n.text :]], dim=2)


def grid(n: Sizes, *start: float) -> Tensor:
    """(start, row, column) of the patches, counted here."""
    t, y, x = (start or (0, 0, 0)) if len(start) != 1 else (start[0], 0, 0)
    return torch.tensor([[t, y + row, x + column] for row in range(n.height) for column in range(n.width)]).float()


def diagonal(n: Sizes, *axes: float) -> Tensor:
    return torch.arange(n.text)[:, None] * torch.tensor(axes)


def latents(n: Sizes, patch: int = 2) -> Tensor:
    return torch.zeros(1, 16, n.frames, patch * n.height, patch * n.width)


def image(n: Sizes, patch: int = 2) -> Tensor:
    return torch.zeros(1, 16, patch * n.height, patch * n.width)


def by_ids(name: str, cls: str, base: float, split: tuple[int, ...], made: Callable[[Sizes], Tensor] | None = None) -> Any:
    """A class that reads ids, [t, axes]."""

    def turn(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
        ids = ids if made is None else made(n)
        return neighbours(x, getattr(module(name), cls)(base, list(split))(ids))

    return turn


def flux_ids(path: str, name: str) -> Callable[[Sizes], Tensor]:
    def made(n: Sizes) -> Tensor:
        patches = pipeline(path, name)._prepare_latent_image_ids(1, n.height, n.width, CPU, torch.float32)
        return torch.cat([torch.zeros(n.text, 3), patches.reshape(-1, 3)])

    return made


def flux2_ids(n: Sizes) -> Tensor:
    made = pipeline("flux2.pipeline_flux2", "Flux2Pipeline")
    text = made._prepare_text_ids(torch.zeros(1, n.text, 8))
    return torch.cat([text, made._prepare_latent_ids(torch.zeros(1, 8, n.height, n.width))], dim=1)[0].float()


def longcat_ids(n: Sizes) -> Tensor:
    made = import_module("diffusers.pipelines.longcat_image.pipeline_longcat_image").prepare_pos_ids
    text = made(modality_id=0, type="text", start=(0, 0), num_token=n.text)
    return torch.cat([text, made(modality_id=1, type="image", start=(512, 512), height=n.height, width=n.width)])


def ovis_ids(n: Sizes) -> Tensor:
    made = pipeline("ovis_image.pipeline_ovis_image", "OvisImagePipeline")._prepare_latent_image_ids
    return torch.cat([diagonal(n, 0, 1, 1), made(1, n.height, n.width, CPU, torch.float32)])


def krea_ids(n: Sizes) -> Tensor:
    return pipeline("krea2.pipeline_krea2", "Krea2Pipeline").prepare_position_ids(n.text, n.height, n.width, CPU)


def hidream(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    of = module("transformer_hidream_image")
    places = torch.cat([grid(n), torch.zeros(n.text, 3)])[None]
    table = of.HiDreamImageEmbedND(10000, [64, 32, 32])(places)
    return of.apply_rope(x.transpose(1, 2), x.transpose(1, 2), table)[0].transpose(1, 2)


def prx(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    of = module("transformer_prx")
    places = of.get_image_ids(1, n.height, n.width, 1, CPU)
    return text_first(of.apply_rope, x, of.PRXEmbedND(64, 10000, [32, 32])(places), n)


def qwen(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    made = module("transformer_qwenimage").QwenEmbedRope(10000, [16, 56, 56], scale_rope=True)
    patches, text = made([(1, n.height, n.width)], CPU, max_txt_seq_len=n.text)
    return complex_numbers(x, torch.cat([text, patches]))


def nucleus(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    made = module("transformer_nucleusmoe_image").NucleusMoEEmbedRope(10000, [16, 56, 56], scale_rope=True)
    patches, text = made([(1, n.height, n.width)], CPU, max_txt_seq_len=n.text)
    return complex_numbers(x, torch.cat([text, patches]))


def qwen21(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    made = module("transformer_qwenimage21").QwenImage21Rope(10000, [16, 56, 56])
    is_image = torch.arange(n.text + n.height * n.width) >= n.text
    return complex_numbers(x, made([(1, n.height, n.width)], is_image, CPU))


def hunyuan(name: str, cls: str, patch: int) -> Any:
    def turn(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
        made = getattr(module(name), cls)(patch, 1, [16, 56, 56], 256.0)
        return text_last(neighbours, x, made(latents(n, patch)), n)

    return turn


def framepack(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    made = module("transformer_hunyuan_video_framepack").HunyuanVideoFramepackRotaryPosEmbed(2, 1, [16, 56, 56], 256.0)
    return text_last(neighbours, x, made(torch.arange(n.frames), 2 * n.height, 2 * n.width, CPU), n)


def hunyuan_image(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    made = module("transformer_hunyuanimage").HunyuanImageRotaryPosEmbed((1, 1), (64, 64), 256.0)
    return text_last(neighbours, x, made(image(n, 1)), n)


def joyimage(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    cls = module("transformer_joyimage").JoyImageEditTransformer3DModel
    about = Sizes(hidden_size=3072, num_attention_heads=24, rope_dim_list=[16, 56, 56], theta=256)
    tables, _ = cls.get_rotary_pos_embed(about, [1, n.height, n.width])
    return text_last(neighbours, x, tables, n)


def joyimage_plus(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    cls = module("transformer_joyimage_edit_plus").JoyImageEditPlusTransformer3DModel
    config = Sizes(hidden_size=3072, num_attention_heads=24, rope_dim_list=[16, 56, 56], theta=256)
    tables = cls._get_rotary_pos_embed_for_range(Sizes(config=config), (0, 0, 0), (1, n.height, n.width))
    return text_last(neighbours, x, tables, n)


def wan(name: str, cls: str, d_head: int = 128) -> Any:
    def turn(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
        return neighbours(x, getattr(module(name), cls)(d_head, (1, 2, 2), 1024)(latents(n)))

    return turn


def wan_animate_2(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    of = module("transformer_wan_animate_2")
    table = torch.cat([of.rope_params(512, 44), of.rope_params(512, 42), of.rope_params(512, 42)], dim=1)
    return of.rope_apply(x.transpose(1, 2), torch.tensor([[n.frames, n.height, n.width]]), table).transpose(1, 2)


def any_flow(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    of = module("transformer_anyflow")
    layout = {"total_frames": n.frames, "full_frame_shape": (n.height, n.width)}
    table = of.AnyFlowRotaryPosEmbed(128, (1, 2, 2), 1024)(layout, CPU)["query"]
    return of.apply_rotary_emb(x, table)


def any_flow_far(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    of = module("transformer_anyflow_far")
    layout = {"total_frames": n.frames, "full_frame_shape": (n.height, n.width), "num_compressed_frames": 0}
    layout["compressed_frame_shape"] = (n.height // 2, n.width // 2)
    table = of.AnyFlowCausalRotaryPosEmbed(128, (1, 2, 2), (1, 4, 4), 1024)(layout, CPU)["query"]
    return of.apply_rotary_emb(x, table)


def helios(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    of = module("transformer_helios")
    table = of.HeliosRotaryPosEmbed((44, 42, 42), 10000.0)(torch.arange(n.frames)[None], n.height, n.width, CPU)
    return of.apply_rotary_emb_transposed(x.transpose(1, 2), table.flatten(2).transpose(1, 2)).transpose(1, 2)


def sana_wm(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    of = module("transformer_sana_wm")
    table = of.SanaWMRotaryPosEmbed(112, (1, 1, 1), 1024)((n.frames, n.height, n.width))
    return of._apply_rotary_emb(x.transpose(2, 3), table).transpose(2, 3)


def cogvideox(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    shape = (n.height, n.width)
    return text_first(neighbours, x, embeddings().get_3d_rotary_pos_embed(64, ((0, 0), shape), shape, n.frames), n)


def easy_animate(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    made = module("transformer_easyanimate").EasyAnimateRotaryPosEmbed(2, 64)
    return text_first(neighbours, x, made(latents(n)), n)


def lumina2(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    made = module("transformer_lumina2").Lumina2RotaryPosEmbed(10000, [32, 32, 32])
    return complex_numbers(x, made(image(n), torch.ones(1, n.text, dtype=torch.long))[3])


def z_image(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    """ZImageTransformer2DModel.patchify_and_embed: the caption from 1 on, the image after it, first in the sequence."""
    of = module("transformer_z_image")
    places = of.ZImageTransformer2DModel.create_coordinate_grid
    caption = places((n.text, 1, 1), (1, 0, 0), CPU).flatten(0, 2)
    patches = places((1, n.height, n.width), (n.text + 1, 0, 0), CPU).flatten(0, 2)
    table = of.RopeEmbedder(256.0, [32, 48, 48], [1024, 512, 512])(torch.cat([patches, caption]))
    return complex_numbers(x, table)


def fibo_2(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    of = module("transformer_bria_fibo2")
    places = of.BriaFibo2Transformer2DModel.create_coordinate_grid
    gist = places((n.text, 1, 1), (1, 0, 0), CPU).flatten(0, 2)
    patches = places((1, n.height, n.width), (512 + 1, 0, 0), CPU).flatten(0, 2)
    return complex_numbers(x, of.RopeEmbedder(256.0, [32, 48, 48], [2048, 512, 512])(torch.cat([gist, patches])))


def axes_of(n: Sizes) -> tuple[Tensor, Tensor, Tensor]:
    return torch.arange(n.frames), torch.arange(n.height), torch.arange(n.width)


def kandinsky(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    made = module("transformer_kandinsky").Kandinsky5RoPE3D((16, 24, 24))
    return matrices(x, made((1, n.frames, n.height, n.width), axes_of(n), (1.0, 2.0, 2.0)))


def kandinsky_text(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    return matrices(x, module("transformer_kandinsky").Kandinsky5RoPE1D(64)(torch.arange(n.text)))


def kandinsky6(name: str, cls: str, split: tuple[int, ...]) -> Any:
    def turn(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
        of = module(name)
        table = getattr(of, cls)(split)(axes_of(n), (1.0, 2.0, 2.0)).flatten(0, 2)
        return of.apply_rotary(x[0].transpose(0, 1), table).transpose(0, 1)[None]

    return turn


def kandinsky6_text(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    of = module("transformer_kandinsky6")
    return of.apply_rotary(x[0].transpose(0, 1), of.Kandinsky6RoPE1D(128)(torch.arange(n.text))).transpose(0, 1)[None]


def glm_image(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    return text_first(halves, x, module("transformer_glm_image").GlmImageRotaryPosEmbed(40, 2)(image(n)), n)


def cogview4(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    return text_first(halves, x, module("transformer_cogview4").CogView4RotaryPosEmbed(40, 2, (256, 256))(image(n)), n)


def cosmos(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    made = module("transformer_cosmos").CosmosRotaryPosEmbed(128, (128, 240, 240), (1, 2, 2), rope_scale=(2.0, 1.0, 1.0))
    return halves(x, made(latents(n), fps=n.fps))


def minimax_h3(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    of = module("transformer_minimax_h3")
    return of._apply_rotary_emb(x.transpose(1, 2), *of.MiniMaxH3RotaryPosEmbed(16, 10000.0)(ids)).transpose(1, 2)


def ideogram(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    made = module("transformer_ideogram4").Ideogram4MRoPE(256, 5000000, (24, 20, 20))
    patches = grid(n) + 65536  # IMAGE_POSITION_OFFSET
    return halves(x, tuple(table[0] for table in made(torch.cat([diagonal(n, 1, 1, 1), patches])[None])))


def cosmos3(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    made = module("transformer_cosmos3").Cosmos3VLTextRotaryEmbedding(128, 5000000.0, (24, 20, 20))
    return halves(x, tuple(table[0] for table in made(ids.T[:, None], CPU, torch.float32)))


def allegro(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    shape = (n.height, n.width)
    made = embeddings().get_3d_rotary_pos_embed_allegro(96, ((0, 0), shape), shape, n.frames, (2.2, 2.0, 2.0))
    places = torch.cartesian_prod(*(axis.long() for axis in made[3:])).T.reshape(3, 1, -1)
    return embeddings().apply_rotary_emb_allegro(x, made[:3], places)


def ernie_image(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    """The rotation is defined within ErnieImageSingleStreamAttnProcessor: angles of neighbours, halves paired."""
    text = torch.cat([torch.arange(n.text).float()[:, None], torch.zeros(n.text, 2)], dim=1)
    made = module("transformer_ernie_image").ErnieImageEmbedND3(128, 256, (32, 48, 48))
    angles = made(torch.cat([grid(n, n.text), text])[None])[:, :, 0][:, None]
    first, second = x.chunk(2, dim=-1)
    return x * angles.cos() + torch.cat([-second, first], dim=-1) * angles.sin()


def hunyuan_dit(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    shape = (n.height, n.width)
    return neighbours(x, embeddings().get_2d_rotary_pos_embed(88, ((0, 0), shape), shape))


def lumina_next(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    return complex_numbers(x, embeddings().get_2d_rotary_pos_embed_lumina(72, n.height, n.width))


def mochi_frequencies() -> Tensor:
    return torch.randn(3, 24, 64, generator=torch.Generator().manual_seed(0))


def mochi(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    """The rotation is defined within MochiAttnProcessor2_0: neighbours."""
    cos, sin = module("transformer_mochi").MochiRoPE()(mochi_frequencies(), n.frames, n.height, n.width, CPU, torch.float32)

    def turn(x: Tensor, tables: Any) -> Tensor:
        even, odd = x[..., 0::2], x[..., 1::2]
        cos, sin = (table.transpose(0, 1) for table in tables)
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)

    return text_last(turn, x, (cos, sin), n)


def whole(turn: Callable[..., Tensor], x: Tensor, tables: Any) -> Tensor:
    """Of all heads side by side, [b, t, h·d]."""
    turned = turn(x.transpose(1, 2).flatten(2), tables)
    return turned.unflatten(-1, (x.shape[1], -1)).transpose(1, 2)


def ltx(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    of = module("transformer_ltx")
    made = of.LTXVideoRotaryPosEmbed(2048)
    tables = made(torch.zeros(1, 1, 2048), n.frames, n.height, n.width, rope_interpolation_scale=(8 / n.fps, 32, 32))
    return whole(of.apply_rotary_emb, x, tables)


def ltx2(name: str, cls: str, layout: str) -> Any:
    def turn(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
        of = module(name)
        made = getattr(of, cls)(4096, rope_type=layout, num_attention_heads=32)
        tables = made(made.prepare_video_coords(1, n.frames, n.height, n.width, CPU, fps=n.fps))
        return whole(getattr(of, f"apply_{layout}_rotary_emb"), x, tables)

    return turn


def ltx2_audio(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    of = module("transformer_ltx2")
    about = {"modality": "audio", "scale_factors": [4], "rope_type": "split", "num_attention_heads": 32}
    made = of.LTX2AudioVideoRotaryPosEmbed(2048, **about)
    tables = made(made.prepare_audio_coords(1, n.frames, CPU))
    return of.apply_split_rotary_emb(x.transpose(1, 2).flatten(2), tables).unflatten(-1, (32, 64)).transpose(1, 2)


def stable_audio(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    tables = embeddings().get_1d_rotary_pos_embed(32, n.frames, use_real=True, repeat_interleave_real=False)
    return torch.cat([halves(x[..., :32], tables), x[..., 32:]], dim=-1)


def stable_audio_3(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    of = module("transformer_stable_audio3")
    return of._apply_rotary_partial(x.transpose(1, 2), of.StableAudio3RotaryEmbedding(64 // 2)(n.frames, CPU)).transpose(
        1, 2
    )


def longcat_audio(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    of = module("transformer_longcat_audio_dit")
    tables = of.AudioDiTRotaryEmbedding(64, 2048, base=100000.0)(x.transpose(1, 2))
    return of._apply_rotary_emb(x.transpose(1, 2), tables).transpose(1, 2)


def ace_step(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    return halves(x, module("ace_step_transformer")._ace_step_rotary_freqs(n.frames, 128, 1000000.0, CPU, torch.float32))


def minimax_music(x: Tensor, n: Sizes, ids: Tensor) -> Tensor:
    of = module("transformer_minimax_music3")
    tables = of.MiniMaxMusic3RotaryEmbedding(32)(n.frames, CPU)
    return of._apply_partial_rotary_emb(x.transpose(1, 2), tables).transpose(1, 2)


def patch_embed(cls: Any, *inputs: Tensor, **sizes: Any) -> Tensor:
    """What a module that makes patches adds to them: its output where nothing else is in it."""
    made = cls(**sizes)
    for parameter in (*made.proj.parameters(), *(made.text_proj.parameters() if hasattr(made, "text_proj") else ())):
        torch.nn.init.zeros_(parameter)
    with torch.no_grad():
        return made(*inputs)[0]


def sd3(n: Sizes) -> Tensor:
    about = {"height": 128, "width": 128, "patch_size": 2, "in_channels": 16, "embed_dim": 1536, "pos_embed_max_size": 192}
    return patch_embed(embeddings().PatchEmbed, image(n), **about)


def pixart(n: Sizes) -> Tensor:
    about = {"height": 128, "width": 128, "patch_size": 2, "in_channels": 16, "embed_dim": 1152, "interpolation_scale": 2}
    return patch_embed(embeddings().PatchEmbed, image(n), **about)


def dit(n: Sizes) -> Tensor:
    about = {"height": 32, "width": 32, "patch_size": 2, "in_channels": 16, "embed_dim": 1152}
    return patch_embed(embeddings().PatchEmbed, image(n), **about)


def cogview3(n: Sizes) -> Tensor:
    inputs = image(n), torch.zeros(1, n.text, 4096)
    return patch_embed(embeddings().CogView3PlusPatchEmbed, *inputs, in_channels=16, hidden_size=2560)


def latte(n: Sizes) -> Tensor:
    """Within frames; LatteTransformer3DModel's constructor has the table along them."""
    about = {"height": 64, "width": 64, "patch_size": 2, "in_channels": 16, "embed_dim": 1152, "interpolation_scale": 1}
    return patch_embed(embeddings().PatchEmbed, image(n), **about).repeat(n.frames, 1)


def latte_along_frames(n: Sizes) -> Tensor:
    frames = torch.arange(0, 16)[:, None]
    made = embeddings().get_1d_sincos_pos_embed_from_grid(1152, frames, output_type="pt")
    return made[: n.frames].float().repeat_interleave(n.height * n.width, dim=0)


def aura_table() -> Tensor:
    return torch.randn(1024, 3072, generator=torch.Generator().manual_seed(0))


def aura_flow(n: Sizes) -> Tensor:
    cls = module("auraflow_transformer_2d").AuraFlowPatchEmbed
    made = cls(64, 64, 2, in_channels=16, embed_dim=3072, pos_embed_max_size=1024)
    return aura_table()[made.pe_selection_index_based_on_dim(2 * n.height, 2 * n.width)]


def cogvideox_2b(n: Sizes) -> Tensor:
    made = embeddings().get_3d_sincos_pos_embed(1920, (n.width, n.height), n.frames, 1.875, 1.0)
    return torch.cat([torch.zeros(n.text, 1920), made.flatten(0, 1)])


FLUX = (10000.0, (16, 56, 56))
TURNED: dict[str, Any] = {
    "FLUX.1": by_ids("transformer_flux", "FluxPosEmbed", *FLUX, flux_ids("flux.pipeline_flux", "FluxPipeline")),
    "Chroma1": by_ids("transformer_flux", "FluxPosEmbed", *FLUX, flux_ids("chroma.pipeline_chroma", "ChromaPipeline")),
    "Bria 3.2": by_ids("transformer_bria", "BriaEmbedND", *FLUX, flux_ids("bria.pipeline_bria", "BriaPipeline")),
    "FIBO": by_ids(
        "transformer_bria_fibo", "BriaFiboEmbedND", *FLUX, flux_ids("bria_fibo.pipeline_bria_fibo", "BriaFiboPipeline")
    ),
    "Krea 2": by_ids("transformer_krea2", "Krea2RotaryPosEmbed", 1000.0, (32, 48, 48), krea_ids),
    "FLUX.2": by_ids("transformer_flux2", "Flux2PosEmbed", 2000.0, (32,) * 4, flux2_ids),
    "FLUX.3": by_ids("transformer_flux3", "Flux3PosEmbed", 10000.0, (32,) * 4),
    "LongCat-Image": by_ids("transformer_longcat_image", "LongCatImagePosEmbed", *FLUX, longcat_ids),
    "Ovis-Image": by_ids("transformer_ovis_image", "OvisImagePosEmbed", *FLUX, ovis_ids),
    "HiDream-I1": hidream,
    "PRX": prx,
    "Qwen-Image": qwen,
    "Nucleus-Image": nucleus,
    "Qwen-Image-2.1": qwen21,
    "HunyuanImage 2.1": hunyuan_image,
    "HunyuanVideo": hunyuan("transformer_hunyuan_video", "HunyuanVideoRotaryPosEmbed", 2),
    "HunyuanVideo 1.5": hunyuan("transformer_hunyuan_video15", "HunyuanVideo15RotaryPosEmbed", 1),
    "Motif-Video": hunyuan("transformer_motif_video", "MotifVideoRotaryPosEmbed", 2),
    "FramePack": framepack,
    "JoyImage-Edit": joyimage,
    "JoyImage-Edit-Plus": joyimage_plus,
    "Wan2.1": wan("transformer_wan", "WanRotaryPosEmbed"),
    "Wan VACE": wan("transformer_wan_vace", "WanRotaryPosEmbed"),
    "Wan2.2-Animate": wan("transformer_wan_animate", "WanRotaryPosEmbed"),
    "Wan-Animate 2": wan_animate_2,
    "SkyReels-V2": wan("transformer_skyreels_v2", "SkyReelsV2RotaryPosEmbed"),
    "ChronoEdit": wan("transformer_chronoedit", "ChronoEditRotaryPosEmbed"),
    "AnyFlow": any_flow,
    "AnyFlow-FAR": any_flow_far,
    "Helios": helios,
    "SANA-Video": wan("transformer_sana_video", "WanRotaryPosEmbed", 112),
    "SANA-WM": sana_wm,
    "CogVideoX-5B": cogvideox,
    "ConsisID": cogvideox,
    "EasyAnimate": easy_animate,
    "Lumina-Image 2.0": lumina2,
    "Z-Image": z_image,
    "FIBO 2": fibo_2,
    "Kandinsky 5/visual": kandinsky,
    "Kandinsky 5/text": kandinsky_text,
    "Kandinsky 6/visual": kandinsky6("transformer_kandinsky6", "Kandinsky6RoPE3D", (32, 48, 48)),
    "Kandinsky 6/text": kandinsky6_text,
    "Kandinsky 6 SR": kandinsky6("transformer_kandinsky6_sr", "Kandinsky6SRRoPE3D", (16, 24, 24)),
    "GLM-Image": glm_image,
    "CogView4": cogview4,
    "Cosmos 1.0": cosmos,
    "MiniMax-H3": minimax_h3,
    "Ideogram 4": ideogram,
    "Cosmos 3": cosmos3,
    "Allegro": allegro,
    "ERNIE-Image": ernie_image,
    "HunyuanDiT": hunyuan_dit,
    "Lumina-Next": lumina_next,
    "Mochi": mochi,
    "LTX-Video": ltx,
    "LTX-2/video": ltx2("transformer_ltx2", "LTX2AudioVideoRotaryPosEmbed", "split"),
    "LTX-2/audio": ltx2_audio,
    "SANA-WM refiner/video": ltx2("transformer_sana_wm_refiner", "SanaWMLTX2AudioVideoRotaryPosEmbed", "interleaved"),
    "Stable Audio Open": stable_audio,
    "Stable Audio 3": stable_audio_3,
    "LongCat-AudioDiT": longcat_audio,
    "ACE-Step 1.5": ace_step,
    "MiniMax-Music 3": minimax_music,
}
ADDED: dict[str, Any] = {
    "CogVideoX-2B": cogvideox_2b,
    "SD3": sd3,
    "PixArt": pixart,
    "DiT": dit,
    "CogView3-Plus": cogview3,
    "Latte": latte,
    "Latte/1": latte_along_frames,
    "AuraFlow": aura_flow,
}
LEARNED = {"Mochi": ("frequencies", mochi_frequencies), "AuraFlow": ("table", aura_table)}
"""Parameters with which a model's function is compared."""
SHAPES = {"Mochi": (24, 128), "LTX-Video": (32, 64), "LTX-2/video": (32, 128), "LTX-2/audio": (32, 64)}
SHAPES |= {"SANA-WM refiner/video": (32, 128)}
"""Heads and channels of those whose heads differ; others are tried on two heads."""


def vectors(name: str, d_head: int, tokens: int) -> Tensor:
    heads = SHAPES.get(name, (2, d_head))[0]
    return torch.randn(1, heads, tokens, d_head, generator=torch.Generator().manual_seed(1))


def sums(result: Tensor) -> list[float]:
    """Eight sums, with drawn signs, of the first, the middle and the last token of a result."""
    rows = result.reshape(-1, *result.shape[-2:]).double()
    signs = torch.randint(0, 2, (8, *rows.shape[::2]), generator=torch.Generator().manual_seed(2)).double() * 2 - 1
    return [round(one, 3) for token in (0, rows.shape[1] // 2, -1) for one in (signs * rows[:, token]).sum((1, 2)).tolist()]


def free_ids(n_axes: int) -> Tensor:
    """Coordinates where a pipeline's are not rebuilt here."""
    return torch.randint(0, 40, (9, n_axes), generator=torch.Generator().manual_seed(3)).float()
