"""What several encodings are made of: base classes and shared tables. `posenc.create` does not name them."""
