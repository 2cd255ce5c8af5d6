"""Every sentence that the report adds to the findings, in both languages.

phrase("lead", tasks=2, …)      a value that is Words is filled in language by language
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from posenc.lab.experiment.change import DROP, Change
from posenc.lab.findings.titles import with_factor, with_training
from posenc.lab.say import say
from posenc.support.languages import Words, joined

PROSE = {
    "title": say("Train short, test long"),
    "lead": say(
        "{arms} positional encodings on {tasks} tasks, {seeds} each, in models of one size. Experiment “{name}”: {about}"
    ),
    "lead one": say(
        "{arms} positional encodings on one task, {seeds} each, in models of one size. Experiment “{name}”: {about}"
    ),
    "contents": say("On this page"),
    # Short words
    "encoding": say("encoding"),
    "task": say("task"),
    "length": say("length"),
    "change": say("change"),
    "trained": say("trained length"),
    "chance": say("chance"),
    "baseline": say("baseline"),
    "baseline causal": say("only the byte before"),
    "baseline masked": say("without context"),
    "baseline counted": say("symbols counted, without their order"),
    "floor": say("best prediction (Bayes)"),
    "floors": say("Use of far context"),
    "floor text": say(
        "{task}: the loss of the best prediction, which counts all transitions so far, is known exactly. It is the first "
        "row, in bits; below it counts of what followed the last k symbols. The other rows are bits above it on the same "
        "symbols. Stays: whether the loss itself is kept beyond the trained length {home}. Far context used: the bits that "
        "the encoding saves from there to the longest length, as a share of what the best prediction saves."
    ),
    "ceiling": say("What longer windows of the text hold"),
    "ceiling text": say(
        "Bits a byte on the same bytes. The match model mixes counts of the few bytes before with the longest run of bytes "
        "that occurred earlier in the window. What it gains from a longer window is there to gain, and a better predictor "
        "may gain more. The other rows are the encodings that learnt the trained length {home}; a gain below 0 is a loss."
    ),
    "match model": say("match model, no Transformer"),
    "gains": say("gains from {home} to {far} bytes"),
    "grams": say("counts after {k} symbols"),
    "stays": say("beyond the trained length"),
    "used": say("far context used"),
    "bits": say("bits"),
    "bits low": say("bits per target, lower is better"),
    "exact high": say("% of rows entirely right, higher is better"),
    "exact": say("% all right"),
    "not learnt": say("not learnt at this budget"),
    "not learnt short": say("not learnt"),
    "improving short": say("still improving"),
    "cannot": say("cannot: {why}"),
    "failed": say("failed: {why}"),
    "missing": say("missing"),
    "trained far": say(" (trained at the longest length)"),
    "not asked": say("not part of this task"),
    "none": say("none"),
    "change ": say("none", context="change"),
    "change interpolation": say("interpolation"),
    "change ntk": Words("NTK"),
    "change yarn": Words("YaRN"),
    "change self_extend": Words("Self-Extend"),
    f"change {DROP}": say("positions dropped"),
    "numbers": say("The same numbers as a table"),
    # 1 The answer
    "answer": say("The answer"),
    "answer caption": say("{unit}, by {of}; {seeds}; small figures: 95 % interval over seeds (t)"),
    "word": say("beyond"),
    "said": say("All sentences"),
    "answer text": say(
        "Every number below is computed from this experiment. Encodings listed together cannot be told from the first: the "
        "95% interval of their difference (t, paired by seed) holds 0, with fewer than three seeds one seed reverses their "
        "order, or their times differ by less than the spread. An encoding with fewer than three seeds is not compared "
        "with those that have more."
    ),
    # 2 The measured table
    "stars": say("Measured values instead of star ratings"),
    "stars text": say(
        "Quality, valid length factor and area are measured on “{task}”, trained at length {home}. Valid length "
        "factor: the largest scored length, as a multiple of the trained length, up to which every scored length loses at "
        "most 0.05 bits (for tasks scored by exact match: keeps at least nine tenths of the exact match). “>”: the longest "
        "length tested was still valid. Brackets: the interval; with fewer than five seeds, the score of every seed in "
        "their order, and the factors of the worst and the best seed. Brackets of exact match with few seeds: Wilson "
        "intervals over the rows of all seeds, which are the same rows. Area: the mean score over log₂ length, from the "
        "trained length on. Other tasks: quality at the trained length, and beside it the valid length factor."
    ),
    "stars rank": say(
        "Mean rank beyond: mean over the seeds {seeds} ({of}) and the lengths above the trained one, among the ranked "
        "encodings that have a score at all of them; 1 is best."
    ),
    "stars cost": say(
        "Cost: time relative to no encoding. All encodings take turns in one process on {device}, for {rounds} rounds; "
        "small figures are quartiles."
    ),
    "no cost": say("Cost was not measured in this experiment."),
    "quality": say("quality at the trained length"),
    "factor": say("valid length factor"),
    "area": say("area under the curve"),
    "training": say("training × NoPE"),
    "prefill": say("prefill × NoPE"),
    "decode": say("decode × NoPE"),
    "parameters": say("extra parameters"),
    "memory": say("table bytes a token"),
    "rank": say("mean rank beyond"),
    # 3 Curves
    "curves": say("Quality against length"),
    "curves text": say(
        "On text, the targets are the same at every length; only the context before them grows. The other tasks have "
        "separate examples at each length. Each dot is one seed, each line is the mean over seeds, and the dashed "
        "vertical line marks the trained length. A flat line means that the quality is kept. The number after a name "
        "is the change at the longest length."
    ),
    "hollow": say("A ring: not learnt at this budget."),
    "rings": say("A ring is a model trained at the longest length. It shows what can be reached at that length."),
    "nobody": say(
        "No encoding learnt the trained length at this budget. The chart shows the score of each encoding at the "
        "trained length; no curves are drawn."
    ),
    "not drawn": say("Not drawn, because it was not learnt or is not possible: {rows}."),
    "ends at": say("ends at {length}"),
    "learning": say("While training"),
    "step": say("training step"),
    "loss": say("training loss in bits"),
    # 4 Heat map
    "behaviour flat": say("stays"),
    "behaviour fades": say("fades"),
    "behaviour breaks": say("breaks"),
    "side by side": say("Non-overlapping windows: different targets at every length"),
    "side text": say(
        "Longer windows contain fewer targets with little context, so these numbers fall with the length even if the "
        "model uses no distant context."
    ),
    "heat intervals": say(
        "Each cell shows the mean and, below it, the 95 % interval over seeds and documents. Hatched: the trained "
        "length was not learnt, so the encoding is not ranked. Empty cells state the reason. The colour shows the same "
        "number: green is better."
    ),
    "heat": say("Every encoding at every length"),
    "heat text": say(
        "Each cell shows the mean and, below it, every seed. Hatched: the trained length was not learnt, so the encoding "
        "is not ranked. Empty cells state the reason. The colour shows the same number: green is better."
    ),
    # 5 Changes after training
    "after": say("Changed after training"),
    "after text": say(
        "The frequencies or the positions of the trained RoPE models are changed, without further training. Do not "
        "compare these scores with encodings that were trained in the form in which they are scored."
    ),
    "after text trained": say(
        "The frequencies or the positions of the trained RoPE models are changed; those whose names give steps were "
        "trained on after it. Do not compare these scores with encodings that were trained in the form in which they are "
        "scored."
    ),
    "after best": say(
        "{task}: at {times} the trained length, {change} has the best mean, {value} {unit}{undecided}; without a change "
        "the score is {none}."
    ),
    "after undecided": say(", undecided against {change}"),
    # Cost
    "cost": say("Cost on this machine"),
    "cost text": say(
        "Time relative to no encoding (1×, logarithmic scale). All encodings take turns in one process on one thread. "
        "Dot: median of {rounds} rounds; line: quartiles. The NoPE row times a second copy of NoPE; its spread is the "
        "measurement noise. Prefill and decode: one attention layer, d_model {d_model}, {heads}. Training: "
        "{batch} rows of length {length}, d_model {trained_d_model}, {layers}. The time to compute the tables "
        "is included. FLOATER keeps the solution of its differential equation: prefill and decoding look it up, and every "
        "training step solves it again."
    ),
    "cost prefill": say("Prefill: {prompt} tokens at once"),
    "cost decode": say("Decode: one token after {prompt}"),
    "cost training": say("Training step", context="cost"),
    # Properties
    "properties": say("Properties that hold exactly"),
    "properties text": say(
        "Word order: how much the output changes, beyond the same re-ordering, when the words of 我爱你 and of three "
        "more sentences are reversed. Without an encoding this is {bidirectional} with bidirectional attention and "
        "{causal} with a causal mask. Shift and decode: largest differences in fp64. Sizes are those of the model "
        "trained here: d_model {d_model}, {heads}, {layers}, float32. All layers share the tables."
    ),
    "property bidirectional": say("word order, bidirectional"),
    "property causal": say("word order, causal"),
    "property shift": say("shift invariant"),
    "property decode": say("decode = prefill"),
    "property parameters": say("parameters"),
    "property bytes": say("parameter bytes"),
    "property tables": say("table bytes a token"),
    "property largest": say("largest position"),
    "property sites": say("acts on"),
    "any": say("any"),
    "yes": say("yes"),
    "no": say("no"),
    # 6 Pareto
    "pareto": say("Cost against valid length"),
    "pareto text": say(
        "Filled dots: no other encoding is both faster to train and better. Bars: quartiles of the time and intervals "
        "of the factor. Only encodings that learnt the trained length of “{task}” are shown."
    ),
    "pareto front": say("Pareto front: {rows}."),
    "pareto time": say("training time, × NoPE"),
    "pareto factor": say("valid length factor, higher is better"),
    "pareto area": say("area: {unit} over log₂ length, {better} is better"),
    "more": say("higher"),
    "less": say("lower"),
    # 7 By position
    "positions": say("Loss by position"),
    "positions text": say(
        "Loss at each position of a window of length {length}, mean over seeds; each point averages {width} positions. "
        "A curve that rises beyond the trained length shows where the encoding breaks. The text differs between "
        "positions but is the same for all encodings: compare curves, not positions."
    ),
    "window position": say("position in the window"),
    # 8 Attention
    "attention": say("Attention by distance during training"),
    "attention text": say(
        "Mean attention probability at each distance, for each layer and head, first seed, on logarithmic scales. "
        "{direction} The slider selects the training step."
    ),
    "attention back": say("Left: earlier tokens; 0: the token itself."),
    "attention both": say("Left: earlier tokens; right: later tokens; 0: the token itself."),
    "attention thinned": say(
        "The panels show layers {layers} and heads {heads} at {distances} of {all} distances; the trial files contain "
        "all of them."
    ),
    "head": say("layer {layer}, head {head}"),
    "shown encoding": say("Encoding shown"),
    "shown step": say("Training step"),
    "strongest": say("Distance with the highest probability, for each head at the last step"),
    "at distance": say("{p} at {where}"),
    "back": say("{n} back"),
    "ahead": say("{n} ahead"),
    "itself": say("itself"),
    "similarity": say("Similarity between the rows of the learned table"),
    "similarity text": say(
        "Cosine of every two rows: blue −1, white 0, red 1. The rows are random at first. A band along the diagonal "
        "means that neighbouring rows have become similar."
    ),
    "similarity here": say("Rows of the learned table at step {step}"),
    "similarity rows": say("Mean cosine, by the number of rows between the two"),
    "apart": say("rows apart"),
    "links": say("Links between words"),
    "links text": say(
        "Attention from one word to another at the last step: the highest probability among {heads} heads, and its "
        "ratio to uniform attention. The highest of {heads} heads is above 1× even if nothing was learnt, so compare "
        "encodings with each other."
    ),
    "link": say("link"),
    "even": say("uniform attention"),
    # 9 Published
    "published": say("Published claims and these results"),
    "published text": say(
        "{counts} Agree: every inequality of the claim holds in every seed that its encodings share, and the 95% interval "
        "of the mean difference over these seeds (t, paired) leaves out 0. Disagree: one of them fails likewise. "
        "Undecided: anything else, and fewer than {fewest} seeds. Not converged: an encoding of the claim still improved "
        "at the end of training, and longer training may change the verdict. No correction is made for the number of rows. "
        "Times have no seeds: quartiles that overlap leave an order undecided. OUT in a command is the folder of these "
        "results. The models are small and trained little, so a disagreement is not a refutation. Disagreements stay in "
        "the table."
    ),
    "papers": say("Claims of papers: {verdicts}."),
    "notes": say("Statements of the founding notes, which measured nothing: {verdicts}."),
    "not converged": say("{verdict}, not converged"),
    "verdicts": say("{agree} agree, {disagree} disagree, {undecided} undecided, {not_tested} not tested"),
    "source": say("source"),
    "source of notes": say("founding notes {numbers}"),
    "claim": say("claim"),
    "ours": say("here", context="heading"),
    "verdict": say("verdict"),
    "depth": say("Retrieval by depth"),
    "depth text": say(
        "{task}: per cent of rows all right, by where the key or the pair that is asked for stands: first quarter "
        "(farthest from the question) to last."
    ),
    "tuning": say("What tuning changed"),
    "tuning text": say(
        "{task}: {tries} tries for every encoding, on one seed that is not compared. Untuned: learning rate {rate}. Scores "
        "at the trained length of these shorter models; rank 1 is best."
    ),
    "tuning moved": say("Tuning changed the rank of {moved} of {count} encodings, at most by {most}."),
    "tuning kept": say("Tuning changed no rank."),
    "tuning steps": say("A try has {steps} of the {full} steps of the full training."),
    "tuning scales": say("Values of an encoding's own scale were tried at the learning rate {rate} only."),
    "tuning edge": say("Edge: no smaller or no larger value was tried, so that a better one may lie beyond."),
    "at edge": say("{setting} (edge)"),
    "tuning waiting": say("Not all tries are finished for {count} more."),
    "untuned": say("untuned"),
    "tuned": say("tuned"),
    "chosen": say("chosen"),
    "rank change": say("rank"),
    "would take": say("a test would take {needs}"),
    "would decide": say("would decide it: {command}"),
    "why": say("why"),
    "agree": say("agree"),
    "disagree": say("disagree"),
    "undecided": say("undecided"),
    "not tested": say("not tested"),
    # 10 How
    "how": say("Method, and how to repeat it"),
    "how text": say(
        "Within a seed, all encodings share initial weights and data order, so differences between encodings are "
        "paired. Averages are weighted by tokens. Equal values share a rank. Missing results are shown as missing."
    ),
    "how repeat": say(
        "posenc lab repeat {task} {arm} seed {seed} --in OUT trains this model again and compares its scores; they may "
        "differ by up to {bits:g} bits, or {exact:g} of the exact match, or by as much as the seeds do where "
        "that is more. The same command takes other tasks, encodings and seeds. posenc lab run --resume --out OUT trains "
        "what is missing."
    ),
    "how command": say("command"),
    "how trials": say("trials"),
    "how trials text": say("{found} of {expected} present, {failed} of them failed"),
    "how seeds": say("seeds"),
    "how model": say("model"),
    "text used": say(
        "Text: {source}, {documents} documents of {bytes} bytes to train on and {others} of {more} bytes held out"
    ),
    "text scored": say(
        "{task}: scored on {rows} windows of held-out documents, the last {targets} bytes of each, at every length"
    ),
    "how text used": say("text"),
    "how no text": say("no text: the tasks generate their own data"),
    "how surroundings": say("versions"),
    "how machine": say("machine"),
    "tasks": say("Tasks, training and the criterion for “learnt”"),
    "lengths": say("lengths"),
    "trained with": say("training"),
    "steps": say("{steps} steps, {tokens} tokens a model"),
    "tokens": say("{tokens} tokens a model"),
    "rate": say("learning rate"),
    "rate tuned": say("chosen from {rates} at the trained length, per encoding: {rows}"),
    "rate with scale": say(
        "{name}: the default and {count} values of its own scale, each at the rates {rates}; chosen rate {rate}"
    ),
    "rate and scale": say("chosen from {rates}, and {count} values of the own scale at {first}: {rows}"),
    "rate as": say("{name} as {other}: {rate}"),
    "rate same": say("{rate} for all, not tuned"),
    "gate": say("criterion for “learnt”"),
    "gate limit": say("limit {limit} {unit}"),
    "limits": say("Limitations"),
    "limit size": say(
        "The models are small and trained little. Their scores do not carry over to larger models, and the order of the "
        "encodings may change."
    ),
    "limit gate": say("“Not learnt” applies to this training budget only. Longer training may change it."),
    "limit random": say(
        "Random positions: trained and scored at sorted random subsets of 0 … {drawn} ({task}); a score is the mean "
        "over several draws. Scores at positions 0, 1, 2, … stand beside."
    ),
    "limit random in training": say(
        "Random positions: trained on a sorted random subset of 0 … {last} ({task}), scored at positions 0, 1, 2, …."
    ),
    "limit learned": say("Learned positions: the table has as many rows as training can reach, {trained} ({task})."),
    "limit t5": say(
        "T5's buckets distinguish distances up to {reach}. Training on {trained} tokens ({task}) never uses the buckets "
        "of longer distances; the T5 paper trained at 512."
    ),
    "limit settings": say("{task}: set in place of the defaults, for this trained length: {rows}."),
    "lost": say("Missing and failed trials"),
    "nothing lost": say("No trial is missing and none failed."),
    "seed": say("seed"),
}


def phrase(key: str, /, **values: object) -> Words:
    """The sentence of that key with its values filled in."""
    return PROSE[key].filled(**values)


def change_name(word: str) -> Words:
    """A change after training as a heading: none; YaRN; YaRN (factor 2); YaRN, 200 steps at 512."""
    change = Change.parse(word) if word else None
    return with_training(with_factor(phrase(f"change {change.method if change else ''}"), word), word)


def of(text: Mapping[str, Any]) -> Words:
    """A text of the findings, from its JSON form."""
    return Words(text["en"], text["zh"])


def same(text: object) -> Words:
    """A text that is the same in both languages."""
    return Words(str(text))


def listed(parts: list[Words]) -> Words:
    return joined(parts, ", ", "、")
