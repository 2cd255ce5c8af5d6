"""Loads this folder with the positional encoding that is attached to it. Needs posenc: pip install posenc"""

from posenc.transformers.auto_classes import config_class, model_class

Config = config_class("llama")
LlamaForCausalLM = model_class("LlamaForCausalLM", Config)
LlamaModel = model_class("LlamaModel", Config)
