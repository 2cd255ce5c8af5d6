"""The lab: train short, test long, and measure which encoding fits which need."""
