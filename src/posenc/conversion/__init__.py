"""Checkpoints in the other rotary layout: rows of the query and key projections move, no bit of any number changes.

rows       which rows of a projection turn, and where they go
families   what is known of a model family: its layout, its fused projections
sizes      heads and their width, from config.json
names      which tensors are query and key projections
plan       what happens to every tensor of a checkpoint
files      safetensors files, one tensor at a time
checkpoint the whole: never overwriting, atomic
proof      the pass that reads everything back
"""
