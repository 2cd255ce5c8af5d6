"""The test files that stand nearest to a source file: those that bear its name, and those that import from it."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
FILES = 7  # at most, so that a mutant is judged in seconds

# What everything imports has its tests named here, the nearest first.
NAMED = {
    "encoding": "encoding sizes door attention empty_calls t5 stack",
    "support/tensors": "encoding door sizes learned shaw rotation learned_rope checks",
    "positions": "positions randomized sinusoidal_families door empty_calls attention module",
    "attention/__init__": "attention door xpos rope",
    "attention/module": "module door c_caches f_positions",
    "frequencies/layouts": "layouts rotation",
    "encodings/bases/coordinates": "sinusoidal_families learned_families",
    "encodings/bases/content_dependent": "hidden_states distance_bank t5_families path fox selective_rope",
    **dict.fromkeys(("encodings/bidirectional_fox", "encodings/cable", "encodings/fox"), "hidden_states fox"),
    "encodings/grape_ap": "hidden_states grape",
    **{
        f"encodings/{name}": f"hidden_states {name}" for name in ("carope", "path", "per_row_fox", "selective_rope", "wall")
    },
    "combined": "stack module per_layer",
    "structure": "relative_attention shaw transformer_xl",
    "attention/options": "attention_options no_visible_key door attention",
    "attention/windows": "attention_options attention",
    "support/checked": "checks door sizes",
    "attention/cached_tokens": "cache",
    "attention/rotated_keys": "conversion",
    "support/checks": "checks",
    "support/sharding": "positions",
    "support/pytree": "positions",
    "frequencies/fractions": "frequencies",
    "attention/own_finish": "no_visible_key",
    "catalogue/entry": "catalogue checks",
    "catalogue/description": "encoding checks",
    **dict.fromkeys(("encodings/bases/regions", "encodings/lm_infinite", "encodings/dual_chunk"), "far_distances"),
    **dict.fromkeys(("encodings/self_extend", "encodings/rerope"), "far_distances"),
    **dict.fromkeys(("encodings/bases/dormand_prince", "encodings/bases/solved_path"), "kept_solution floater"),
    "encodings/bases/clipped_vectors": "shaw relative_attention",
    "encodings/bases/bias_table": "few_pairs t5",
    "encodings/bases/block_rotation": "com_rope liere",
    "encodings/bases/camera_matrices": "cameras",
    **dict.fromkeys(("encodings/prope", "encodings/gta"), "cameras"),
    "encodings/rope": "rope rope_options axes attention a_precision e_layouts g_kernels",
    "frequencies/base": "frequencies sinusoidal",
    "frequencies/lengths": "scalings",
    "attention/backends/__init__": "attention toeplitz_attention flex",
    "attention/backends/reference": "attention no_visible_key cope shaw attention_options",
    "attention/backends/sdpa": "attention attention_options alibi t5 transformer_xl",
    "attention/backends/regions": "regions_backend far_distances",
    "attention/backends/toeplitz/__init__": "toeplitz_attention alibi t5 few_pairs",
    "attention/backends/toeplitz/attention": "toeplitz_attention",
    "attention/backends/toeplitz/plain": "toeplitz_attention",
    "attention/backends/toeplitz/torch_operator": "toeplitz_attention",
    "attention/backends/toeplitz/bias_gradients": "toeplitz_attention",
    "attention/backends/relative/__init__": "relative_attention transformer_xl shaw",
    "attention/backends/relative/attention": "relative_attention",
    "attention/backends/relative/few": "few_vectors",
    "attention/backends/relative/plain": "relative_attention",
    "attention/backends/relative/torch_operator": "relative_attention",
    "kernels/__init__": "kernels sin_cos_kernels",
    **dict.fromkeys(("kernels/cope_counts/__init__", "kernels/cope_counts/cope_counts"), "cope reference_blocks"),
    **dict.fromkeys(("kernels/banded/__init__", "kernels/banded/banded", "kernels/banded/panels"), "banded"),
    "kernels/banded/gradients": "cutoff",
    "kernels/lanes": "toeplitz_attention banded",
    "kernels/derivatives": "toeplitz_attention relative_attention rotation",
    "kernels/eager": "eager rotation sin_cos sinusoidal",
    "kernels/rotation/few_tokens": "few_tokens",
    "kernels/rotation/__init__": "rotation input_rotation",
    "kernels/rotation/exported": "export",
    "kernels/rotation/plain": "rotation",
    "kernels/rotation/rotation": "rotation",
    "kernels/rotation/triton_kernel": "triton_rotation",
    "kernels/rotation/triton_rotation": "triton_rotation",
    "kernels/sin_cos/__init__": "sin_cos rope rope_options sinusoidal",
    "kernels/sin_cos/native": "sin_cos sin_cos_kernels",
    "kernels/sin_cos/plain": "sin_cos sinusoidal rope",
    "kernels/sin_cos/text": "sin_cos",
    "kernels/sin_cos/torch_operator": "sin_cos sin_cos_kernels",
    "kernels/sin_cos/sin_cos": "sin_cos sin_cos_kernels sinusoidal",
}


def nearest(file: str) -> list[Path]:
    """The test files for `file`, a path below src/posenc, the nearest first; for an entry of the catalogue that no test
    imports, those that create it by name. Raises ValueError where there is none.
    """
    module = file.removesuffix(".py").removesuffix(".cpp")
    named = NAMED.get(module, "").split()
    wanted = [f"test_{word}" for word in named or [Path(module).stem]]
    every = [path for folder in ("oracles", "field_bugs", "") for path in sorted((TESTS / folder).glob("test_*.py"))]
    by_name = [path for word in wanted for path in every if path.stem in (word, f"{word}_families")]
    dotted = "posenc." + module.replace("/", ".")
    importing = [] if named else [path for path in every if path.parent.name == "oracles" and dotted in _imports(path)]
    naming = [] if named or by_name or importing else [path for path in every if Path(module).name in _names_in(path)]
    found = list(dict.fromkeys([*by_name, *importing, *naming]))[:FILES]
    if not found:
        raise ValueError(f"{file}: no test bears its name or imports from it; name one in tests/mutations/nearest.py")
    return found


@functools.cache
def _imports(path: Path) -> frozenset[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{one.name}" for one in node.names)}
        elif isinstance(node, ast.Import):
            names |= {one.name for one in node.names}
    return frozenset(names)


@functools.cache
def _names_in(path: Path) -> frozenset[str]:
    """The strings that stand alone in a file of oracles."""
    if path.parent.name != "oracles":
        return frozenset()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
