"""Checkpoints in the other rotary layout: rows of the query and key projections are permuted, no number changes.

rows       which rows of a projection rotate, and where they go
families   layouts and fused projections of model families
sizes      number and width of heads, from config.json
names      which tensors are query and key projections
plan       what happens to every tensor of a checkpoint
files      safetensors files, one tensor at a time
checkpoint the conversion as a whole: atomic, never overwrites
proof      reads everything back and checks it
"""
