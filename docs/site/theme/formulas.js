// Formulas are marked by pymdownx.arithmatex as \(…\) and \[…\]; KaTeX draws them, from files of this site. One that is wider
// than the page breaks where it has a wide space, and becomes smaller where that is not enough: none is cut.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const LEAST = 0.62;
  const places = [...document.querySelectorAll(".arithmatex")].map((place) => ({ place, text: place.textContent.trim() }));
  const wide = (place) => place.scrollWidth - place.clientWidth > 1;
  const draw = ({ place, text }) => {
    const displayMode = text.startsWith("\\[");
    const formula = text.slice(2, -2);
    const render = (latex) => katex.render(latex, place, { displayMode, throwOnError: false, strict: "ignore" });
    place.style.fontSize = "";
    render(formula);
    if (!displayMode || !wide(place)) return;
    const lines = apart(formula);
    if (lines.length > 1) render(`\\begin{gathered}${lines.join("\\\\")}\\end{gathered}`);
    if (wide(place)) place.style.fontSize = `${Math.max(LEAST, (place.clientWidth / place.scrollWidth) * 0.98)}em`;
  };

  /** The parts between wide spaces that stand in no braces and no environment. */
  function apart(formula) {
    const lines = [""];
    let depth = 0;
    for (const token of formula.match(/\\begin|\\end|\\left|\\right|\\q?quad|\\.|[^\\]/gs) ?? []) {
      if (token === "\\begin" || token === "\\left" || token === "{") depth += 1;
      if (token === "\\end" || token === "\\right" || token === "}") depth -= 1;
      if (depth === 0 && token.endsWith("quad")) lines.push("");
      else lines[lines.length - 1] += token;
    }
    return lines.map((line) => line.trim()).filter(Boolean);
  }

  const all = () => places.forEach(draw);
  all();
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) all();
    width = innerWidth;
  });
});
