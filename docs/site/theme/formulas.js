// Formulas are marked by pymdownx.arithmatex as \(…\) and \[…\]; KaTeX draws them, from files of this site. One that is wider
// than the page breaks at its wide spaces, then at its signs, and becomes smaller where that is not enough: none is cut.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const LEAST = 0.5;
  const WIDE = /^\\q?quad$/;
  const SIGNS = /^(\\q?quad|,|=|\+)$/;
  const places = [...document.querySelectorAll(".arithmatex")].map((place) => ({ place, text: place.textContent.trim() }));
  const wide = (place) => place.scrollWidth - place.clientWidth > 1;
  const draw = ({ place, text }) => {
    const displayMode = text.startsWith("\\[");
    const formula = text.slice(2, -2);
    const render = (latex) => katex.render(latex, place, { displayMode, throwOnError: false, strict: "ignore" });
    place.style.fontSize = "";
    render(formula);
    if (!displayMode || !wide(place)) return;
    const broken = (at) => render(`\\begin{gathered}${apart(formula, at).join("\\\\")}\\end{gathered}`);
    broken(WIDE);
    if (wide(place)) broken(SIGNS);
    if (wide(place)) broken(WIDE); // signs do not help: smaller, with fewer lines
    for (let size = 1; wide(place) && size > LEAST; size -= 0.05) place.style.fontSize = `${size - 0.05}em`;
  };

  /** The parts of a formula at tokens that stand in no brackets and no environment; a sign stays, a space does not. */
  function apart(formula, at) {
    const lines = [""];
    let depth = 0;
    for (const token of formula.match(/\\begin|\\end|\\left(?![a-z])\\?.|\\right(?![a-z])\\?.|\\q?quad|\\.|[^\\]/gs) ?? []) {
      if (/^(\\begin|\\left.*|[{([])$/.test(token)) depth += 1;
      if (/^(\\end|\\right.*|[})\]])$/.test(token)) depth -= 1;
      const breaks = depth === 0 && at.test(token);
      if (breaks && /[=+]/.test(token)) lines.push(token);
      else if (breaks) lines[lines.length - 1] += token === "," ? token : "";
      else lines[lines.length - 1] += token;
      if (breaks && !/[=+]/.test(token)) lines.push("");
    }
    return lines.map((line) => line.trim()).filter(Boolean);
  }

  const all = () => places.forEach(draw);
  all();
  document.fonts.ready.then(all); // its letters are wider than those that stand in for them
  let width = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth !== width) all();
    width = innerWidth;
  });
});
