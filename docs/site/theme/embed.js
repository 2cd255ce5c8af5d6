// A view of the explorer in a page of others, at its state, as tall as it is:
//
//   <script src="https://example.org/assets/embed.js" data-view="rotary_pair?m=9&n=4" data-language="zh"></script>
//
// data-file names the exported file where it is not explorer.html beside this script.
"use strict";
(() => {
  const script = document.currentScript;
  const { view = "", language = "en", file = "explorer.html" } = script.dataset;
  const frame = document.createElement("iframe");
  const [place, query] = [`${file}#/${view}`, new URLSearchParams({ alone: "true", lang: language })];
  frame.src = new URL(`${place}${place.includes("?") ? "&" : "?"}${query}`, script.src).href;
  frame.title = "posenc";
  frame.style.cssText = "width: 100%; height: 720px; border: 0";
  addEventListener("message", ({ source, data }) => {
    if (source === frame.contentWindow && data?.posenc > 0) frame.style.height = `${data.posenc}px`;
  });
  script.after(frame);
})();
