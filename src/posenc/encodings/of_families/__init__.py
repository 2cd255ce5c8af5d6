"""Encodings that one model family uses, built by `posenc.configs`. `posenc.create` does not name them."""
