"""Loads this folder with the positional encoding that is attached to it. Needs posenc: pip install posenc"""

from posenc.transformers.auto_classes import config_class, model_class

Config = config_class("t5")
T5ForConditionalGeneration = model_class("T5ForConditionalGeneration", Config)
T5Model = model_class("T5Model", Config)
