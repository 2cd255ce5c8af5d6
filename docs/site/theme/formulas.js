// Formulas are marked by pymdownx.arithmatex as \(…\) and \[…\]; KaTeX draws them, from files of this site.
document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll(".arithmatex")) {
    const text = place.textContent.trim();
    const displayMode = text.startsWith("\\[");
    katex.render(text.slice(2, -2), place, { displayMode, throwOnError: false, strict: "ignore" });
  }
});
