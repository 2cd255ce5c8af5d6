"""Encodings that one model family uses, built by `posenc.dialects`. `posenc.create` does not name them."""
