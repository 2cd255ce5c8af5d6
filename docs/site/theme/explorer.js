// The page with the explorer inside it: what follows # in this page's address, such as #/rotary_pair?m=7 or #S8, is opened.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const frame = document.querySelector("iframe.explorer");
  if (!frame) return;
  const file = frame.src.split("#")[0];
  const language = document.documentElement.lang.startsWith("zh") ? "zh" : "en";
  const open = () => {
    const [path, query = ""] = (location.hash.slice(1) || "/").split("?");
    const card = document.querySelector("[data-role=share]");
    if (card && /^\/?\w*$/.test(path)) card.href = card.href.replace(/[\w]+(?=(-zh)?\.html$)/, path.slice(1) || "start");
    frame.src = `${file}#${path}?${query ? `${query}&` : ""}lang=${language}`;
  };
  addEventListener("hashchange", open);
  if (location.hash) open();
});
