"""A checkpoint's positional weights, read from safetensors, tensor by tensor. Pickles are refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from posenc.configs import headers
from posenc.configs.errors import ConfigError
from posenc.configs.read import read_config
from posenc.configs.spec import PositionSpec
from posenc.configs.weights import with_weights
from posenc.support.checked import checked

if TYPE_CHECKING:
    from posenc.encoding import PositionalEncoding


class Checkpoint(Mapping[str, Tensor]):
    """The tensors of a safetensors file, or of a folder of them, each read on access.

    Raises FileNotFoundError if there are none, ConfigError for a name in two files and for a pickle.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        from safetensors import safe_open

        location = Path(path)
        files = [location] if location.is_file() else sorted(location.glob("*.safetensors"))
        if not files:
            pickled = [*location.glob("*.bin"), *location.glob("*.pt")] if location.is_dir() else []
            also = f"; {pickled[0].name} is a pickle, which can run code: save it as safetensors first" if pickled else ""
            raise FileNotFoundError(f"checkpoint: no *.safetensors in {location}{also}")
        self.files: dict[str, Any] = {}
        for file in files:
            if file.suffix != ".safetensors":
                raise ConfigError(f"{file}: expected a safetensors file; a pickle can run code and is not read")
            headers.read_header(file)  # says where a file is cut short, which safetensors does not
            try:
                opened = safe_open(file, framework="pt")
            except Exception as error:
                raise ConfigError(f"{file}: not a safetensors file: {str(error)[:120]}") from None
            for name in opened.keys():  # noqa: SIM118  (no mapping)
                if name in self.files:
                    raise ConfigError(f"{name}: is in {file.name} and in another file of {location}")
                self.files[name] = opened

    def __getitem__(self, name: str) -> Tensor:
        tensor: Tensor = self.files[name].get_tensor(name)
        return tensor

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


@checked
def load_encodings(
    checkpoint: str | PathLike[str] | Mapping[str, Tensor], spec: PositionSpec | None = None
) -> dict[str, list[PositionalEncoding]]:
    """Every attention layer's encoding with the checkpoint's positional weights, by part: {"": [layer 0, …]}.

        encodings = load_encodings("my-model/")        # config.json and *.safetensors
        encodings["text_config"][3]

    checkpoint  a folder, a safetensors file, or a state dict; other tensors are ignored, among them buffers that old
                programs stored (inv_freq, position_ids, …)
    spec        the result of read_config; by default read from the folder's config.json

    Raises KeyError for a missing weight, ValueError for a wrong shape, FileNotFoundError for a missing file.
    """
    if spec is None:
        if isinstance(checkpoint, Mapping):
            raise TypeError(
                "spec: a state dict does not say which model it belongs to; give read_config(…) of its config.json"
            )
        folder = Path(checkpoint)
        spec = read_config(folder if folder.is_dir() else folder.parent)
    state = checkpoint if isinstance(checkpoint, Mapping) else Checkpoint(checkpoint)
    return {
        path: [with_weights(part, n, state) for n in range(len(part.layers))] for path, part in spec.walk() if part.layers
    }
