"""The registry of readers, and helpers for them.

A reader turns the keys of one section into a PositionSpec. It is registered for model types and named after the first:

    @family("llama", "mistral")
    def llama(keys: Keys) -> PositionSpec:
        return decoder(keys, rope(keys, d_head=head_width(keys)))
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from posenc.configs.beside import with_recorded_layout
from posenc.configs.errors import ConfigError
from posenc.configs.keys import Keys
from posenc.configs.remote import REMOTE, other_family, text_section, unknown_class, with_remote_code
from posenc.configs.say import say
from posenc.configs.spec import GRADES, RECURRENT, Grade, Layer, PositionSpec, Use
from posenc.configs.unread import check_flat, check_sizes, note_sections, note_unread


class Readers(dict[str, "Reader"]):
    """The reader of each model type. The file that registers a type is imported when the type is first looked up."""

    def __contains__(self, model_type: object) -> bool:
        named = f'"{model_type}"'
        for pattern in (rf"^@family\([^)]*{re.escape(named)}", re.escape(named), ""):  # most likely files first
            if super().__contains__(model_type):
                return True
            for module, text in _files():
                if re.search(pattern, text, re.MULTILINE):
                    importlib.import_module(module)
        return super().__contains__(model_type)

    def __missing__(self, model_type: str) -> Reader:
        if model_type in self:
            return self[model_type]
        raise KeyError(model_type)


Reader = Callable[[Keys], PositionSpec]
READERS = Readers()


def family(*model_types: str) -> Callable[[Reader], Reader]:
    """Registers a reader. Raises ValueError if a model type already has one."""

    def register(reader: Reader) -> Reader:
        for model_type in model_types:
            if READERS.get(model_type):
                raise ValueError(f"{model_type}: already has a reader, in {READERS[model_type].__module__}")
            READERS[model_type] = reader
        return reader

    return register


@functools.cache
def _files() -> tuple[tuple[str, str], ...]:
    """The modules of posenc.configs.families and their texts, with those of the tables beside them."""
    from posenc.configs import families

    names = {file.stem for file in Path(families.__path__[0]).glob("[!_]*.py")}
    texts: dict[str, str] = {}
    for file in sorted(Path(families.__path__[0]).glob("[!_]*.*")):
        if file.stem in names and file.suffix in (".py", ".toml"):
            texts[file.stem] = texts.get(file.stem, "") + file.read_text(encoding="utf-8")
    return tuple((f"{families.__name__}.{name}", text) for name, text in texts.items())


@functools.cache
def load_readers() -> None:
    """Imports every file of posenc.configs.families, once, which registers the readers."""
    for module, _ in _files():
        importlib.import_module(module)


def reader_paths() -> dict[str, str]:
    """Model type -> path of its reader, such as "posenc.configs.families.qwen2:qwen2"; sorted by model type."""
    load_readers()
    readers = READERS | {name: READERS[about.reader] for name, about in REMOTE.items()}
    return {name: f"{reader.__module__}:{reader.__name__}" for name, reader in sorted(readers.items())}


def read_section(keys: Keys, part: str = "") -> PositionSpec:
    """The spec of one section, from its family's reader, with a warning for each positional key that was not read.

    Raises ConfigError where sizes of the file were not read and the class's defaults stand in their place.
    """
    model_type = keys.family
    keys, spec = _read(_by_its_classes(keys))
    claims = "" if keys.family == model_type else model_type
    spec = with_recorded_layout(_with_direction(keys, spec), keys)
    for key in keys.unread():
        note_unread(keys, key)
    note_sections(keys)
    once = dict.fromkeys((*spec.remarks, *keys.remarks))
    remarks = tuple(sorted(once, key=lambda remark: (GRADES.index(remark.grade), remark.key)))
    spec = replace(
        spec,
        part=part,
        n_kv_heads=_key_heads(keys, spec),
        remarks=remarks,
        keys=tuple(keys.read.items()),
        config_class=keys.facts["class"],
        claims=claims,
    )
    return _remote(spec) if keys.remote else spec


KEY_HEADS = ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "n_head_kv", "multi_query_group_num", "kv_n_heads")


def _key_heads(keys: Keys, spec: PositionSpec) -> int | None:
    """The heads of keys and values, as the file or the class has them: grouped heads share them."""
    if spec.n_heads is None:
        return None
    if keys.data.get("multi_query") is True and not keys.data.get("new_decoder_architecture"):
        return 1
    held = {**keys.facts["defaults"], **{name: value for name, value in keys.data.items() if value is not None}}
    named = (held.get(name) for key in KEY_HEADS for name in (*keys.spellings(key), key))
    return next((count for count in named if type(count) is int and 0 < count <= spec.n_heads), None)


def _read(keys: Keys) -> tuple[Keys, PositionSpec]:
    """The spec as the family's reader makes it, and the keys as that reader took them."""
    if name := text_section(keys, READERS):
        return _text_alone(keys, name)
    keys, reader = with_remote_code(keys, READERS)
    try:
        spec = READERS[reader](keys)
    except ConfigError:
        check_flat(keys)
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:  # a slip that no check names yet
        where = f"{keys.path}: " if keys.path else ""
        raise ConfigError(f"{where}{keys.family}: cannot be read: {type(error).__name__}: {str(error)[:200]}") from error
    check_sizes(keys, spec)
    return keys, spec


def _text_alone(keys: Keys, name: str) -> tuple[Keys, PositionSpec]:
    """Of a model whose type is not known, the text model in the section `name`, which is."""
    section = keys.section(name, "")
    keys.remote = section.remote = True
    text = read_section(section, name)
    keys.note("model_type", say("{family!r} is not known: read as its {section}", family=keys.family, section=name))
    coordinates = say("those of {section}; how other parts count is not read", section=name)
    spec = PositionSpec(keys.family, parts=(text,), coordinates=coordinates, wraps=name)
    check_sizes(keys, spec)
    return keys, spec


def _by_its_classes(keys: Keys) -> Keys:
    """The keys as those of the family that architectures and auto_map name, if model_type is another's and reads otherwise.

    A class decides over model_type, which is often a class's whose file was copied. Raises ConfigError if it cannot.
    """
    other = other_family(keys, READERS)
    if other is None:
        if name := unknown_class(keys, READERS):
            keys.note(
                "architectures", say("{name} is not known: read as {family}, by model_type", name=name, family=keys.family)
            )
        return keys
    family, name = other
    readings: list[list[tuple[str, tuple[Layer, ...]]] | ConfigError] = []
    for model_type in (keys.family, family):
        tried = Keys(keys.data, model_type, keys.path, defaults=keys.base_may_be_default)
        try:
            readings.append([(path, part.layers) for path, part in _read(tried)[1].walk()])
        except ConfigError as error:
            readings.append(error)
    if readings[0] == readings[1]:
        return keys
    told = say("{name} is a class of {family}, and model_type is {other!r}", name=name, family=family, other=keys.family)
    if isinstance(refusal := readings[1], ConfigError):
        refused = say("{told}; as {family} the file cannot be read: {error}", told=told, family=family, error=refusal.words)
        raise ConfigError(refused) from refusal
    grade: Grade = "note" if {keys.family, family} <= REMOTE.keys() else "warning"  # transformers has neither
    keys.remark(grade, "architectures", say("{told}: read as {family}, by its class", told=told, family=family))
    return keys.of_family(family)


OWN_MASKS = ("autoformer", "fsmt", "imagegpt", "kosmos_2_text_model", "openai-gpt", "prophetnet", "timesfm")


def _with_direction(keys: Keys, spec: PositionSpec) -> PositionSpec:
    """The same spec, bidirectional if the file has is_causal: false, which transformers' masks read for every decoder.

    Not in OWN_MASKS, whose code makes its own, nor in layers of chunks. A window of n tokens reaches n to either side.
    """
    if keys.remote or keys.family in OWN_MASKS or not keys.has("is_causal"):
        return spec
    own = [spec, *(part for part in spec.parts if not part.keys)]
    if not any(layer.causal and layer.attends for part in own for layer in part.layers):
        return spec
    if keys.flag("is_causal"):
        return spec
    keys.note("is_causal", say("transformers' masks read it: attention is bidirectional"))

    def both_ways(part: PositionSpec) -> PositionSpec:
        layers = (
            replace(layer, causal=False, window=layer.window and 2 * layer.window + 1)
            if layer.causal and layer.chunk is None
            else layer
            for layer in part.layers
        )
        return replace(part, layers=tuple(layers))

    return replace(both_ways(spec), parts=tuple(part if part.keys else both_ways(part) for part in spec.parts))


def _remote(spec: PositionSpec) -> PositionSpec:
    """The same spec, run by the model's own code with everything inside."""
    return replace(spec, remote=True, parts=tuple(_remote(part) for part in spec.parts))


def parts(keys: Keys, *names: str, **otherwise: str) -> tuple[PositionSpec, ...]:
    """The specs of sections: parts(keys, "text_config", "vision_config").

    `otherwise` gives the model type of a section if neither the file nor the class does:
    parts(keys, vision_config="siglip_vision_model").
    """
    named = [(name, None) for name in names] + list(otherwise.items())
    return tuple(read_section(keys.section(name, model_type), name) for name, model_type in named)


def head_width(keys: Keys, heads: str = "num_attention_heads", width: str = "hidden_size", key: str = "head_dim") -> int:
    """head_dim if the file or the class has it, otherwise hidden_size / num_attention_heads.

    ConfigError if that is uneven.
    """
    size = keys.whole(key, None)
    if size is not None:
        return int(size)
    d_model, n_heads = keys.whole(width), keys.whole(heads)
    if d_model % n_heads:
        raise ConfigError(f"{keys.spelt(width)}: {d_model} is not a multiple of {keys.spelt(heads)}={n_heads}")
    return int(d_model // n_heads)


def stack_of(
    keys: Keys,
    layers: Sequence[Layer],
    *,
    embedding: Sequence[Use] = (),
    width: str = "hidden_size",
    heads: str = "num_attention_heads",
    length: str | int | None = "max_position_embeddings",
    d_head: int | None = None,
    **about: Any,
) -> PositionSpec:
    """A stack of attention layers; `embedding` becomes uses of the first layer.

    width, heads, length  the family's keys for them; `about` is anything else that PositionSpec takes
    """
    layers = list(layers)
    if embedding:
        layers[0] = replace(layers[0], uses=(*embedding, *layers[0].uses))
    d_model, n_heads = keys.whole(width, None), keys.whole(heads, None)
    if d_head is None and d_model and n_heads:
        d_head = d_model // n_heads
    trained = keys.whole(length, None) if isinstance(length, str) else length
    trained = keys.whole("max_trained_positions", None) or trained  # of Nomic: a table or mask may be longer
    return PositionSpec(
        keys.family, layers=tuple(layers), d_model=d_model, n_heads=n_heads, d_head=d_head, trained_length=trained, **about
    )


def decoder(
    keys: Keys,
    use: Use | None,
    *,
    kinds: Sequence[str] | None = None,
    by_kind: Mapping[str, Use | None] | None = None,
    d_head: int | None = None,
    **about: Any,
) -> PositionSpec:
    """A causal stack; all layers have the same use, or that of their kind.

    kinds    the kind of each layer, by default layer_types; "sliding_attention" has a window of sliding_window tokens, and
             layers that are not attention ("linear_attention", "conv", …) have no use
    by_kind  the use of each kind, instead of `use`
    """
    kinds = layer_kinds(keys) if kinds is None else kinds
    layers = []
    for kind in kinds:
        use_of_kind = None if kind in RECURRENT else use if by_kind is None else by_kind[kind]
        layers.append(Layer((use_of_kind,) if use_of_kind else (), kind, window_of(keys, kind)))
    return stack_of(keys, layers, d_head=head_width(keys) if d_head is None else d_head, **about)


def bidirectional(spec: PositionSpec) -> PositionSpec:
    """The same spec with bidirectional attention in every layer; windows are kept."""
    return replace(spec, layers=tuple(replace(layer, causal=False) for layer in spec.layers))


def two_stacks(keys: Keys, encoder: Use | None, decoder: Use | None, **about: Any) -> PositionSpec:
    """Encoder and decoder of one configuration: encoder_layers, decoder_layers, d_model."""
    stacks = []
    for side, use, causal in (("encoder", encoder, False), ("decoder", decoder, True)):
        layers = [Layer(causal=causal)] * keys.whole(f"{side}_layers")
        spec = stack_of(
            keys, layers, embedding=[use] if use else [], width="d_model", heads=f"{side}_attention_heads", **about
        )
        stacks.append(spec.with_part(side))
    return PositionSpec(keys.family, parts=tuple(stacks))


def layer_kinds(keys: Keys, n_layers: str = "num_hidden_layers", assumed: str = "full_attention") -> tuple[str, ...]:
    """layer_types, one for each layer; `assumed` for all layers if neither file nor class has them."""
    count = keys.whole(n_layers)
    kinds = keys.names("layer_types", None, length=count)
    return (assumed,) * count if kinds is None else tuple(kinds)


def window_of(keys: Keys, kind: str) -> int | None:
    return keys.whole("sliding_window", None) if kind == "sliding_attention" else None
