"""Measures what a release of vLLM, SGLang and llama.cpp does with a family's rotary settings: servers.json.

    python tools/servers.py FOLDER        FOLDER: what pip download brought, unpacked: vllm/, sglang/, vendor/llama.cpp/

The files of the programs are read, not run: a family counts as reading its settings if the model file that the
program's own registry gives for it hands them to the function that computes frequencies (`get_rope`; in llama.cpp every
`ggml_rope_ext` takes the context's base and scale). A family without such a file is left out: not known. `keys` has what
that function then reads of them, for each rope_type.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "src/posenc/configs/report/servers.json"
ARGUMENT = {"vllm": "rope_parameters", "sglang": "rope_scaling"}  # of get_rope: what holds the scaling
PLACE = {"vllm": 3, "sglang": 5}
DEEPEST = 6


def architectures() -> dict[str, str]:
    """The class of each family that generates text, as transformers names it; the text part has its own name."""
    from transformers.models.auto import modeling_auto as auto
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    found: dict[str, str] = {}
    for table in (auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES, auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES):
        for family, names in table.items():
            found[family] = names if isinstance(names, str) else names[0]
    for family in list(found):
        part = CONFIG_MAPPING[family].sub_configs.get("text_config") if family in CONFIG_MAPPING else None
        if getattr(part, "model_type", ""):
            found.setdefault(part.model_type, found[family])
    return found


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def registry(program: str, models: Path) -> dict[str, tuple[Path, str]]:
    """Architecture -> the file and the class that serve it."""
    found: dict[str, tuple[Path, str]] = {}
    if program == "vllm":
        for node in ast.walk(tree(models / "registry.py")):
            if isinstance(node, ast.Dict):
                for key, value in zip(node.keys, node.values, strict=True):
                    if isinstance(key, ast.Constant) and isinstance(value, ast.Tuple) and len(value.elts) == 2:
                        file, name = (getattr(one, "value", None) for one in value.elts)
                        path = models / f"{str(file).replace('.', '/')}.py"
                        if path.exists():
                            found.setdefault(str(key.value), (path, str(name)))
        return found
    for path in models.glob("*.py"):
        for node in tree(path).body:
            if isinstance(node, ast.Assign) and names_of(node) == ["EntryClass"]:
                for name in [one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)]:
                    found[name] = path, name
    return found


def classes(path: Path) -> dict[str, ast.ClassDef]:
    return {node.name: node for node in tree(path).body if isinstance(node, ast.ClassDef)}


def imported(path: Path, models: Path) -> dict[str, Path]:
    """Names that a model file takes from others."""
    found = {}
    for node in tree(path).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            other = models / f"{node.module.rpartition('.')[2]}.py"
            if ".models." in f".{node.module}" or node.level:
                found |= {one.asname or one.name: other for one in node.names if other.exists()}
    return found


def reached(path: Path, name: str, models: Path, served: dict[str, tuple[Path, str]]) -> list[tuple[Path, ast.ClassDef]]:
    """The classes that the class of an architecture is made of, in this file and in others."""
    todo, seen = [(path, name)], {}
    while todo:
        file, one = todo.pop()
        own = classes(file)
        if one not in own or (file, one) in seen or "Vision" in one:  # what an encoder of images does is another table
            continue
        seen[file, one] = own[one]
        others = imported(file, models)
        for node in ast.walk(own[one]):
            if isinstance(node, ast.Name):
                if node.id in own:
                    todo.append((file, node.id))
                elif node.id in others:
                    todo.append((others[node.id], node.id))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in served:
                todo.append(served[node.value])  # init_vllm_registered_model(architectures=["Qwen2ForCausalLM"])
    return [(file, made) for (file, _), made in seen.items()]


def calls(node: ast.AST, name: str) -> Iterator[ast.Call]:
    for one in ast.walk(node):
        if isinstance(one, ast.Call) and (getattr(one.func, "id", "") or getattr(one.func, "attr", "")).startswith(name):
            yield one


def given(call: ast.Call, keyword: str, place: int | None = None) -> ast.expr | None:
    for one in call.keywords:
        if one.arg == keyword:
            return one.value
    return call.args[place] if place is not None and len(call.args) > place else None


def says(value: ast.expr | None, own: ast.ClassDef, made_of: list[tuple[Path, ast.ClassDef]], depth: int = 0) -> bool:
    """Whether a value comes from the configuration: followed through names, attributes and arguments."""
    if value is None or depth > DEEPEST:
        return False
    names = {one.id for one in ast.walk(value) if isinstance(one, ast.Name)}
    attributes = {one.attr for one in ast.walk(value) if isinstance(one, ast.Attribute)}
    texts = {one.value for one in ast.walk(value) if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    keys = {"rope_parameters", "rope_scaling"}  # a configuration that transformers 5 read has no rope_theta beside them
    if any("config" in one for one in names | attributes) and (attributes | texts) & keys:
        return True
    if any(calls(value, "get_rope_config")):
        return True
    for name in names | attributes:
        for node in ast.walk(own):
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None and node.value is not value:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                flat = [part for one in targets for part in (one.elts if isinstance(one, ast.Tuple) else [one])]
                if any(name in (getattr(one, "id", ""), getattr(one, "attr", "")) for one in flat) and says(
                    node.value, own, made_of, depth + 1
                ):
                    return True
        takes = [
            one.arg for node in ast.walk(own) if isinstance(node, ast.arguments) for one in (*node.args, *node.kwonlyargs)
        ]
        if name in takes and name not in ("self", "config"):
            for _, other in made_of:
                for call in calls(other, own.name):
                    if says(given(call, name), other, made_of, depth + 1):
                        return True
    return False


def measured(program: str, models: Path) -> dict[str, list[str]]:
    """Families whose files hand over all settings, those that hand over the base alone, and whose pairs are neighbours."""
    served = registry(program, models)
    found: dict[str, list[str]] = {"settings": [], "base": [], "interleaved": []}
    for family, architecture in sorted(architectures().items()):
        if architecture not in served:
            continue
        made_of = reached(*served[architecture], models, served)
        made = [(call, own) for _, own in made_of for call in calls(own, "get_rope") if "config" not in ast.dump(call.func)]
        if not made:
            continue
        key, place = ARGUMENT[program], PLACE[program]
        own_tables = any("ROPE_INIT_FUNCTIONS" in ast.dump(own) for _, own in made_of)  # as transformers does
        silent = all(isinstance(given(call, key, place), ast.Constant | None) for call, _ in made)
        if own_tables or any(says(given(call, key, place), own, made_of) for call, own in made):
            found["settings"].append(family)
        elif silent and any(says(given(call, "base", 3), own, made_of) for call, own in made):
            found["base"].append(family)
        if neighbours(made_of):
            found["interleaved"].append(family)
    return found


def neighbours(made_of: list[tuple[Path, ast.ClassDef]]) -> bool:
    """Whether a model turns neighbouring pairs: `is_neox_style` is False where it is given, set afterwards, or the default
    that the configuration is asked with. A class that sets it to True afterwards has the last word. A local variable does
    not count: it is set to False for GGUF files only.
    """
    said = set[bool]()
    for _, own in made_of:
        for node in ast.walk(own):
            if isinstance(node, ast.keyword) and node.arg == "is_neox_style":
                value: ast.expr | None = node.value
            elif isinstance(node, ast.Call) and ast.unparse(node).startswith("getattr(config, 'rope_is_neox_style',"):
                value = node.args[2]
            elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith(".is_neox_style"):
                value = node.value
                if isinstance(value, ast.Constant) and value.value is True:
                    return False
            else:
                continue
            if isinstance(value, ast.Constant):
                said.add(value.value)
    return False in said


def keys_read(models: Path) -> dict[str, list[str]]:
    """For each rope_type for which the program's get_rope has a branch, the keys of the settings that the branch reads."""
    layers = models.parent / "layers"
    (function,) = [
        node
        for path in (*layers.glob("rotary_embedding*.py"), *layers.glob("rotary_embedding/*.py"))
        for node in tree(path).body
        if isinstance(node, ast.FunctionDef) and node.name == "get_rope"
    ]
    found = {}
    for branch in ast.walk(function):
        if (
            isinstance(branch, ast.If)
            and isinstance(branch.test, ast.Compare)
            and ast.unparse(branch.test.left) == "scaling_type"
        ):
            nodes = [node for line in branch.body for node in ast.walk(line)]
            written = {
                id(node.slice) for node in nodes if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
            }
            texts = {node.value for node in nodes if isinstance(node, ast.Constant) and id(node) not in written}
            keys = sorted(one for one in texts if isinstance(one, str) and one.isidentifier())
            found |= {node.value: keys for node in ast.walk(branch.test) if isinstance(node, ast.Constant)}
    return found


def names_of(node: ast.Assign) -> list[str]:
    return [getattr(one, "id", "") for one in node.targets]


def llama_cpp(root: Path) -> dict[str, str]:
    """Family -> the architecture that llama.cpp's converter writes, where every rotation takes the context's settings."""
    written: dict[str, str] = {}
    for path in (root / "conversion").glob("*.py"):
        for node in classes(path).values():
            said = [one.value for one in node.body if isinstance(one, ast.Assign) and names_of(one) == ["model_arch"]]
            registered = [
                one for one in node.decorator_list if isinstance(one, ast.Call) and "register" in ast.dump(one.func)
            ]
            for call in registered if said else ():
                arch = ast.unparse(said[0]).rpartition(".")[2]
                written |= {one.value: arch for one in call.args if isinstance(one, ast.Constant)}
    text = (root / "gguf-py/gguf/constants.py").read_text("utf-8")
    names = dict(re.findall(r"MODEL_ARCH\.(\w+):\s+\"([^\"]+)\"", text))
    found = {}
    for family, architecture in sorted(architectures().items()):
        arch = names.get(written.get(architecture, ""))
        source = root / "src/models" / f"{arch}.cpp"
        if arch and source.exists():
            rotations = re.findall(r"ggml_rope_(?:ext|multi)\((.*?)\);", source.read_text("utf-8"), re.DOTALL)
            if rotations and all("freq_base" in one and "freq_scale" in one for one in rotations):
                found[family] = arch
    return found


def version(folder: Path, name: str) -> str:
    (one,) = folder.glob(f"{name}-*.whl") if name != "llama_cpp_python" else folder.glob(f"{name}-*.tar.gz")
    return one.name.split("-")[1].removesuffix(".tar.gz")


def table(folder: Path) -> dict[str, Any]:
    import transformers

    date = datetime.date.today().isoformat()
    (cpp,) = folder.glob("llama_cpp_python-*/vendor/llama.cpp")
    found: dict[str, Any] = {"transformers": {"version": transformers.__version__, "date": date}}
    for name, program, models in (
        ("vLLM", "vllm", folder / "vllm/model_executor/models"),
        ("SGLang", "sglang", folder / "sglang/srt/models"),
    ):
        kinds = measured(program, models)
        found[name] = {"version": version(folder, program), "date": date} | kinds | {"keys": keys_read(models)}
    of = f"llama-cpp-python {version(folder, 'llama_cpp_python')}"
    found["llama.cpp"] = {"version": of, "date": date, "architectures": llama_cpp(cpp)}
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Writes servers.json from unpacked releases.")
    parser.add_argument("folder", type=Path)
    TABLE.write_text(json.dumps(table(parser.parse_args().folder), indent=1) + "\n", "utf-8")
