"""Published claims, and what our records say of them.

table ─► a claim and its check ─► our_scores: the numbers of a folder ─► deciding: the verdict ─► readme
              │                                                               └ not agree ─► causes: why
              └ text_checks, task_checks, attention_checks, cost_checks
"""
