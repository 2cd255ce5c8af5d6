var Ne={t5:305,learned:262,transformer_xl:145,shaw:350,floater:230,xpos:52,cope:112},ze=["sinusoidal","rope","alibi","yarn"];function H(n){let[t]=n.split("+");if(ze.includes(t))return`var(--${t})`;if(t==="nope")return"var(--line-6)";let e=Ne[t]??[...t].reduce((r,a)=>(r*31+a.charCodeAt(0))%360,7);return`light-dark(oklch(.47 .13 ${e}), oklch(.78 .11 ${e}))`}function ee(n){let t=n.closest(".posenc")?.dataset.theme;return t==="dark"||t==="auto"&&matchMedia("(prefers-color-scheme: dark)").matches}var Ee="http://www.w3.org/2000/svg";function o(n,t={},...e){return se(document.createElement(n),t,e)}function b(n,t={},...e){return se(document.createElementNS(Ee,n),t,e)}function se(n,t,e){for(let[r,a]of Object.entries(t))typeof a=="function"?n.addEventListener(r,a):a!==void 0&&a!==!1&&n.setAttribute(r,a===!0?"":String(a));return le(n,e),n}function le(n,t){for(let e of t)e!=null&&e!==!1&&n.append(typeof e=="number"?String(e):e)}function B(n,...t){n.replaceChildren(),le(n,t)}function j(n,...t){let e=document.createDocumentFragment();for(let r of t)r!=null&&r!==!1&&e.append(typeof r=="number"?String(r):r);ce(n,e)}function ce(n,t){let e=n.firstChild;for(let r of[...t.childNodes])if(!e)n.appendChild(r);else{let a=e.nextSibling;e.nodeName!==r.nodeName?n.replaceChild(r,e):e instanceof Element?Le(e,r):e.nodeValue!==r.nodeValue&&(e.nodeValue=r.nodeValue),e=a}for(;e;){let r=e.nextSibling;e.remove(),e=r}}function Le(n,t){for(let{name:e}of[...n.attributes])t.hasAttribute(e)||n.removeAttribute(e);for(let{name:e,value:r}of t.attributes)n.getAttribute(e)!==r&&n.setAttribute(e,r);ce(n,t)}var pe=`/* One visual language for all views. Everything hangs below .posenc, so that it also lives in a notebook's cell.

   colour   blue −1, red +1 (colours.ts) · amber a position · teal a channel · violet a head · ink a value
   type     system fonts; 16 px text, 13 px axes; numbers of equal width
   space    multiples of 4 px; cards have 12 px corners */

.posenc {
  --paper: light-dark(#fcfcfa, #121419); --sheet: light-dark(#ffffff, #1b1e24); --ink: light-dark(#16181d, #eceae4);
  --muted: light-dark(#5c6068, #a3a9b4); --edge: light-dark(#dfe2e7, #343841); --faint: light-dark(#c9cbcf, #5a5f69); --marker: light-dark(#ffe9a3, #4a3f14); --grid: light-dark(#e7e9ed, #2b2f37);
  --soft: light-dark(#f1f2f4, #23272e); --accent: light-dark(#16448e, #9cc4f5); --on-accent: light-dark(#ffffff, #10141b);
  --minus: light-dark(#16448e, #8ec2ff); --plus: light-dark(#b02a3a, #ffab9d); --position: light-dark(#9a6200, #f0b64a);
  --position-soft: light-dark(#fdf0d5, #3a2d12); --position-line: light-dark(rgb(190 125 10 / .75), rgb(240 182 74 / .75));
  --channel: light-dark(#17796f, #55c7ba); --channel-soft: light-dark(#dcf1ed, #14352f); --head: light-dark(#6f4d95, #bb9fe0);
  --head-soft: light-dark(#efe6f7, #2e2440); --line-1: light-dark(#16448e, #7db3f2); --line-2: light-dark(#b8493f, #ee7f76);
  --line-3: light-dark(#9a6b00, #e0a83a); --line-4: light-dark(#22786f, #52bfb3); --line-5: light-dark(#7455a0, #b79be0);
  --line-6: light-dark(#5d636d, #a3a9b4); --order-first: light-dark(#7b3fa8, #c78df0); --order-last: light-dark(#12908a, #3ed0c2);
  --rope: light-dark(#cf3a0c, #ff7448); --alibi: light-dark(#0079a8, #43c6e8); --yarn: light-dark(#5f2d91, #a883f0); --sinusoidal: light-dark(#5e4b00, #e6c04a);
  --good: light-dark(#16715f, #4fc3ac); --bad: light-dark(#b3302c, #f4837c);
  --sans: "Instrument Sans", system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei", "Noto Sans CJK SC", "Source Han Sans SC", sans-serif;
  --serif: Newsreader, "Story SC", "Iowan Old Style", Charter, Cambria, Georgia, "Songti SC", "Noto Serif CJK SC", "Source Han Serif SC", STSong, serif;
  color-scheme: light dark;
  background: var(--paper); color: var(--ink); line-height: 1.6; font-size: 16px; -webkit-text-size-adjust: 100%;
  font-family: var(--sans);
  font-variant-numeric: tabular-nums; text-align: start; min-height: 100%;
}
.posenc:lang(zh) { line-height: 1.75; letter-spacing: .01em; line-break: strict; text-spacing-trim: trim-start; }
.posenc[data-theme="light"] { color-scheme: light; } .posenc[data-theme="dark"] { color-scheme: dark; }
body:has(> .posenc) { margin: 0; }
html:has(> body > .posenc) { scrollbar-gutter: stable; }
body > .posenc { min-height: 100vh; } body > .posenc.alone { min-height: 0; } .alone :is(.story-steps .count, .onward > a, .exported) { visibility: hidden; } .posenc .whole { margin: 0; text-align: right; font-size: 13px; }
.posenc, .posenc * { box-sizing: border-box; }
.posenc :focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
.posenc main:focus { outline: none; }
/* What the drawing will push down appears together with it, so that nothing on the page jumps. */
main:not([data-ready]) :is(.stage, .formula-card, .pair, .onward, [data-role="exported"]), main:not([data-ready]) + footer { visibility: hidden; }
.posenc [hidden] { display: none !important; }
.measured-plate { position: absolute; visibility: hidden; } .posenc h1.plate { margin: 0; padding: 16px 24px 0; font: 600 24px/32px var(--sans); } .posenc p.plate { margin: 0; padding: 8px 24px 16px; font: 400 13px/1.5 var(--sans); color: var(--muted); overflow-wrap: anywhere; }
.studio { position: fixed; left: -9999px; top: 0; } .filmed :is(.answers, .play) { display: none !important; }
.away { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skips { position: absolute; left: -9999px; top: 8px; z-index: 9; display: flex; flex-wrap: wrap; gap: 8px; max-width: calc(100% - 16px); background: var(--sheet); border: 1px solid var(--edge); padding: 8px; border-radius: 8px; }
.skips:focus-within { left: 8px; }
.posenc a { color: var(--accent); text-underline-offset: 3px; }

/* the frame */
.bar { display: flex; align-items: center; gap: 8px 24px; max-width: 1200px; margin: 0 auto; padding: 10px 20px; font: 500 14px var(--sans); }
.posenc .brand { font: 500 23px/1 var(--serif); letter-spacing: -.01em; text-decoration: none; color: inherit; }
.bar .tools { display: flex; align-items: center; gap: 4px; } .posenc .bar button { background: none; border: 0; display: inline-grid; place-items: center; white-space: nowrap; } .posenc .bar button:hover { background: var(--soft); }
.posenc main { max-width: 1180px; margin: 0 auto; padding: 8px 20px 32px; }
.posenc footer { max-width: 1180px; margin: 0 auto; padding: 0 20px 32px; color: var(--muted); font-size: 13px; }
.posenc footer p { margin: 2px 0; }
.languages { display: inline-flex; }
.posenc .languages button { color: var(--muted); } .posenc .languages button[aria-pressed="true"] { color: var(--ink); font-weight: 650; text-decoration: underline; text-underline-offset: 5px; }
.rail { flex: 1; min-width: 0; } .rail ol { display: flex; justify-content: center; list-style: none; margin: 0; padding: 0; }
.posenc .rail a { display: flex; gap: 8px; align-items: center; justify-content: center; min-width: 32px; height: 32px; padding: 0 4px; color: var(--muted); text-decoration: none; border-bottom: 2px solid var(--edge); white-space: nowrap; }
.posenc .rail a.done { border-color: var(--ink); } .posenc .rail a:hover { color: var(--ink); } .rail small { display: none; font-size: inherit; }
.posenc .rail a[aria-current] { color: var(--ink); font-weight: 700; } .rail a[aria-current="page"] { padding: 0 10px; } .rail a[aria-current="page"] small { display: inline; }
.posenc dialog.contents { border: 0; border-radius: 12px; background: var(--paper); color: var(--ink); padding: 20px 28px; width: min(94vw, 980px); max-height: 92vh; box-shadow: 0 0 0 1px var(--faint); } .contents::backdrop { background: rgb(0 0 0 / .45); }
.posenc dialog.contents[open] { display: grid; grid-template-columns: 1fr 1fr; gap: 12px 32px; align-content: start; } .contents section:nth-of-type(2) { grid-row: span 2; } .contents ul { list-style: none; margin: 0; padding: 0; }
.posenc dialog.contents a { display: grid; grid-template-columns: 1.9em 1fr; align-items: center; min-height: 32px; color: inherit; text-decoration: none; line-height: 1.3; } .posenc dialog.contents a:hover { background: var(--soft); } .posenc dialog.contents a[aria-current] { font-weight: 700; } .contents a > span:first-child { color: var(--muted); font-variant-numeric: tabular-nums; } .contents [data-role="close"] { justify-self: end; grid-column: 1 / -1; }
.count { color: var(--muted); font-size: 13px; margin: 0; white-space: nowrap; }
.view-title { display: flex; justify-content: space-between; align-items: baseline; gap: 12px; }
.posenc h1 { font-size: clamp(23px, 3vw, 32px); line-height: 1.2; letter-spacing: -.015em; margin: 2px 0 8px; text-wrap: balance; font-weight: 700; }
.posenc:lang(zh) h1 { letter-spacing: 0; line-height: 1.3; }
.posenc h2 { font-size: 17px; margin: 0 0 8px; line-height: 1.35; }
.posenc h3, .posenc .predict h2 { font-size: 15px; margin: 0 0 6px; }
.phrased { word-break: keep-all; overflow-wrap: anywhere; }
.posenc p { margin: 0 0 10px; }
.lead { font-size: 16.5px; color: var(--muted); text-wrap: pretty; }
.posenc .lead { margin-bottom: 10px; }
.control-row > .controls { min-width: 0; max-width: 100%; } .controls label > span { white-space: nowrap; } .posenc .control-row select { max-width: min(230px, 60vw); }
.control-row { display: flex; flex-wrap: wrap; gap: 4px 18px; align-items: center; }
.control-row > details[open] { flex-basis: 100%; }
.posenc .control-row summary { padding: 5px 0; margin: 0; }
.small { font-size: 13.5px; color: var(--muted); }
.card { background: var(--sheet); border: 1px solid var(--edge); border-radius: 12px; padding: 16px 18px; min-width: 0; }
.card-head { display: flex; justify-content: space-between; align-items: baseline; gap: 12px; }
.stage { background: var(--sheet); border: 1px solid var(--edge); border-radius: 12px; padding: 16px; margin: 10px 0; min-width: 0; }
.posenc .stage > * + * { margin-top: 14px; }
.stage[aria-busy="true"] { cursor: progress; }
.stage.refused { opacity: .35; }
.posenc main[data-missing] :is(.stage, .formula-card, .code, .take) { display: none; }
.missing { margin: 10px 0; overflow-wrap: anywhere; } .posenc .missing p:last-child { margin: 0; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); gap: 12px; margin: 12px 0; align-items: start; }
.split { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 330px), 1fr)); gap: 18px; align-items: start; }
.split > * { min-width: 0; }
.formula-card:empty { display: none; }
.notice ul { margin: 0; padding-left: 20px; } .notice li { margin: 5px 0; }
.papers { font-size: 13.5px; margin-top: 10px; color: var(--muted); }
.onward { display: grid; grid-template-columns: 1fr auto 1fr; gap: 12px; align-items: center; margin-top: 20px; }
.onward a { text-decoration: none; font-weight: 600; } .onward small { display: block; color: var(--muted); font-weight: 400; }
.take { display: inline-flex; flex-wrap: wrap; gap: 8px; }
.onward a[rel="next"] { text-align: right; }
.trouble { color: var(--bad); border: 1px solid currentcolor; border-radius: 8px; padding: 8px 12px; } .posenc .controls > .trouble { flex-basis: 100%; order: 1; margin: 0; }

/* controls */
.posenc button, .posenc select, .posenc input, .posenc textarea { font: inherit; font-size: 14px; color: inherit; letter-spacing: inherit; }
.posenc button, .posenc select, .posenc input[type="number"], .posenc input[type="text"], .posenc textarea { background: var(--sheet); border: 1px solid var(--edge); border-radius: 8px; padding: 5px 10px; min-height: 34px; }
.posenc button { cursor: pointer; } .posenc button:hover { border-color: var(--muted); }
.posenc button.primary, .posenc button[aria-pressed="true"].choice { background: var(--accent); color: var(--on-accent); border-color: var(--accent); }
.posenc button:disabled, .posenc select:disabled { opacity: .55; cursor: default; }
.posenc input[type="number"] { width: 6em; } .posenc input[type="text"] { width: 12em; }
/* A sentence takes what its line has left. */
.control-row > .controls:has(.sentence) { flex: 1 1 0; } .controls > :has(.sentence) { flex: 1 1 24em; max-width: 40em; } .controls .typed label { flex: 1; } .posenc .controls .sentence { flex: 1; width: 0; min-width: 6em; }
.posenc textarea { width: 100%; font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 13px; resize: vertical; }
.posenc input[type="range"], .posenc input[type="checkbox"] { accent-color: var(--accent); }
.posenc input[type="range"] { width: min(34vw, 110px); min-height: 28px; padding: 0; }
.posenc input[type="checkbox"] { width: 18px; height: 18px; }
.posenc select { max-width: 100%; min-width: 0; }
.controls { display: flex; flex-wrap: wrap; gap: 8px 18px; align-items: center; font-size: 14px; }
.controls label { display: inline-flex; align-items: center; gap: 8px; max-width: 100%; color: var(--muted); }
.controls .typed { display: inline-flex; flex-wrap: wrap; gap: 4px 8px; align-items: center; max-width: 100%; } .posenc .cut { display: inline-flex; gap: 4px; } .posenc .cut[hidden] { display: none; } .posenc .cut button { padding: 3px 8px; font-size: 13px; } .posenc .cut button[aria-pressed="true"] { border-color: var(--accent); color: var(--accent); font-weight: 650; }
.controls label.wide { flex-basis: 100%; flex-direction: column; align-items: stretch; gap: 4px; }
.player { display: flex; flex-wrap: wrap; gap: 8px; align-items: center; font-size: 14px; }
.player label { display: inline-flex; align-items: center; gap: 8px; color: var(--muted); margin-left: 8px; }
.player .primary { min-width: 5.4em; }
.hint { color: var(--muted); font-size: 13.5px; }

/* formulas */
.formula { font-family: "STIX Two Text", "Cambria Math", Cambria, "Times New Roman", "Songti SC", "Noto Serif CJK SC", serif; font-size: 18px; overflow-x: auto; overflow-y: hidden; }
.formula-line { padding: 3px 0; } .formula-line + .formula-line { margin-top: 2px; }
.formula var { font-style: italic; } .formula sup, .formula sub { line-height: 0; font-size: .72em; }
.formula b, .formula output { font-family: system-ui, "Noto Sans", sans-serif; font-size: .86em; font-weight: 600; }
.formula sup b, .formula sub b { font-size: 1em; }
.put.position { color: var(--position); } .put.channel { color: var(--channel); } .put.head { color: var(--head); }
.formula output, .result { background: var(--soft); border-radius: 6px; padding: 1px 7px; }
.fraction { display: inline-flex; flex-direction: column; vertical-align: middle; text-align: center; line-height: 1.25; font-size: .86em; margin: 0 3px; }
.fraction > span:first-child { border-bottom: 1px solid currentcolor; padding: 0 4px; }
.position { color: var(--position); } .channel { color: var(--channel); } .head { color: var(--head); }

/* code */
.code pre { margin: 0; padding: 10px 12px; background: var(--soft); border-radius: 8px; overflow: auto; max-height: 25em; }
.posenc code { font-family: ui-monospace, Menlo, Consolas, "Noto Sans Mono CJK SC", monospace; font-size: 13px; line-height: 1.5; letter-spacing: 0; }
.code .card-head { margin-bottom: 8px; align-items: center; } .code h2 { margin: 0; }

/* predict, then see */
.predict { background: var(--soft); border-radius: 10px; padding: 12px 14px; }
.choices { display: flex; flex-wrap: wrap; gap: 8px; } .predict .answer { margin: 10px 0 0; } .predict .answer:empty { display: none; }
.posenc .choice.right { outline: 2px solid var(--good); outline-offset: 1px; }

/* heat maps */
.heatmap.with-window { display: grid; grid-template-columns: minmax(0, 1fr); gap: 16px; }
.heatmap > * { min-width: 0; }
.map-row { display: grid; grid-template-columns: 34px minmax(0, 1fr); }
.heatmap canvas { display: block; max-width: 100%; cursor: crosshair; touch-action: pan-y; }
.axis { position: relative; font-size: 12.5px; color: var(--muted); }
.axis.across { height: 18px; margin-left: 34px; } .axis.across span { position: absolute; transform: translateX(-50%); }
.axis.down span { position: absolute; right: 7px; transform: translateY(-50%); line-height: 1; }
.axis-name { font-size: 13px; color: var(--muted); margin-left: 34px; }
.posenc .colour-key { display: flex; align-items: center; gap: 8px; font-size: 13px; color: var(--muted); margin: 6px 0 0 34px; white-space: nowrap; }
.colour-key i { flex: 0 1 180px; height: 12px; border-radius: 4px; border: 1px solid var(--edge); }
.scroll { overflow-x: auto; max-width: 100%; }
.posenc table { border-collapse: collapse; font-size: 13px; }
.posenc caption { text-align: left; color: var(--muted); font-size: 13px; padding: 0 0 5px; }
.posenc td, .posenc th { padding: 4px 8px; text-align: right; font-weight: 400; white-space: nowrap; }
.window td { border: 2px solid var(--sheet); border-radius: 6px; min-width: 54px; padding: 5px 6px; }
.window th { color: var(--muted); } .window td[aria-current] { outline: 2px solid var(--ink); outline-offset: -3px; }
.window thead th { text-align: center; } .window td { text-align: center; }
.plain tbody tr { border-top: 1px solid var(--grid); } .plain thead th { color: var(--muted); }
.plain th[scope="row"], .plain thead th:first-child { text-align: left; }
.posenc details > summary { padding: 2px 0; cursor: pointer; color: var(--muted); font-size: 13.5px; } .posenc details[open] > summary { margin-bottom: 6px; }

/* small matrices with their numbers */
.matrix th { color: var(--muted); padding: 3px 6px; } .matrix thead th { text-align: center; }
.matrix td[data-value] { border: 2px solid var(--sheet); border-radius: 6px; min-width: 54px; height: 32px; padding: 2px 4px; text-align: center; background: var(--soft); color: var(--muted); cursor: pointer; touch-action: manipulation; }
.matrix td.lit { box-shadow: inset 0 0 0 2px var(--channel); }
.matrix td[aria-selected="true"] { box-shadow: inset 0 0 0 2px var(--ink), inset 0 0 0 3px var(--sheet); }

/* charts */
.chart svg, .wave svg { display: block; max-width: 100%; overflow: visible; }
.posenc svg text { fill: var(--muted); font-size: 12.5px; font-family: inherit; }
.posenc svg .grid { stroke: var(--grid); } .posenc svg .tick { stroke: var(--muted); }
.posenc svg .line { fill: none; stroke-width: 2; stroke-linejoin: round; } .posenc svg .dashed { stroke-dasharray: 6 4; }
.posenc svg .wide { stroke-width: 8; opacity: .38; } .posenc svg .lead-line { fill: none; stroke-width: 1; opacity: .5; } .posenc svg text.end-word { font-weight: 600; paint-order: stroke; stroke: var(--sheet); stroke-width: 3px; }
.posenc svg .band { opacity: .16; }
.posenc svg line.mark { stroke: var(--muted); stroke-dasharray: 3 4; } .posenc svg text.mark { fill: var(--ink); paint-order: stroke; stroke: var(--sheet); stroke-width: 4px; }
.posenc svg line.cursor { stroke: var(--position-line); stroke-width: 1.5; } .posenc svg circle.cursor { stroke: var(--sheet); stroke-width: 2; }
.posenc svg .axis-word { fill: var(--muted); }
.points svg { display: block; max-width: 100%; } .points[tabindex] .arm { cursor: pointer; }
.points .band-of { fill: transparent; } .points .arm:hover .band-of { fill: var(--soft); } .points .arm.chosen .band-of { fill: var(--head-soft); }
.posenc .points text.name { fill: var(--ink); font-size: 14px; }
.points .travel { stroke: var(--edge); stroke-width: 2; } .points .range { stroke-width: 5; opacity: .4; stroke-linecap: round; } .points .point { opacity: .55; }
@media (max-width: 640px) { .posenc .points text.name { font-size: 11.5px; } }
.posenc .legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 6px 0; padding: 0; font-size: 13.5px; }
.legend i { display: inline-block; width: 20px; border-top: 3px solid var(--k); vertical-align: middle; margin-right: 7px; } .legend i.dashed { border-top-style: dashed; } .legend i.wide { border-top-width: 8px; opacity: .38; }
.chart { cursor: default; } .chart[tabindex] { cursor: crosshair; touch-action: pan-y; }

/* Fingers: nothing that can be pressed is smaller than 44 pixels; the views' own sizes give way. */
@media (max-width: 640px), (pointer: coarse) {
  .posenc :is(button, select, summary, input:not([type="checkbox"], .away)) { min-height: 44px !important; }
  .posenc :is(button, select) { min-width: 44px !important; }
  .posenc summary { padding-block: 10px !important; line-height: 24px; }
  .posenc label.toggle, .posenc .term label { min-height: 44px !important; } .posenc :is(.brand, .papers a, .about-bug a, .facts a, .measured th a, .zone .button, dialog.contents a) { display: inline-flex; align-items: center; min-height: 44px !important; min-width: 44px; }
  .posenc .onward a { min-height: 44px; }
  .matrix td[data-value] { min-width: 44px; height: 44px; }
  .posenc .bar button { padding: 5px 8px; }
}
@media (max-width: 640px) {
  .rail { display: none; }
  .posenc dialog.contents[open] { grid-template-columns: 1fr; padding: 12px 16px; } .contents section:nth-of-type(2) { grid-row: auto; }
}
@media (min-width: 641px) { .languages .short { display: none; } }
@media (max-width: 1000px) { .posenc .rail a small { display: none !important; } }
@media (min-width: 1100px) {
  .heatmap.with-window { grid-template-columns: minmax(0, 1fr) auto; align-items: start; }
}
@media (min-width: 1500px) { .posenc main, .posenc footer { max-width: 1360px; } }
@media (max-width: 640px) {
  .bar { padding: 4px 12px; gap: 8px; } .posenc :is(.languages, summary) .long { display: none; } .bar .tools { margin-left: auto; gap: 0; } .posenc main { padding: 14px 12px 24px; } .posenc footer { padding: 0 12px 24px; }
  .stage { padding: 12px 10px; margin-top: 6px; } .card { padding: 14px 12px; } .lead { font-size: 15px; line-height: 1.45; } .view-title .count { display: none; }
  .window td { min-width: 39px; padding: 4px 1px; font-size: 11.5px; } .posenc .window th { padding: 4px 3px; } .formula { font-size: 16px; }
  .control-row { gap: 4px 10px; } .control-row > .controls { flex: 1 1 0; } .posenc:lang(en) .control-row > .controls:has(.cut:not([hidden])) { flex-basis: 100%; } .controls label:has(input[type="text"]), .controls .typed { flex: 1 1 100%; } .controls .typed { flex-wrap: nowrap; } .posenc .cut button { padding: 3px 5px; } .posenc .controls input[type="text"] { flex: 1; width: 0; } .controls label.slider { flex-basis: 100%; } .posenc .controls .slider input[type="range"] { flex: 1; width: 0; min-width: 60px; } .more .slider > span { min-width: 6em; }
  .onward { grid-template-columns: 1fr 1fr; } .onward .take { grid-row: 2; grid-column: 1 / -1; justify-content: center; }
}
@media (prefers-reduced-motion: reduce) { .posenc * { transition: none !important; animation: none !important; } }
@media (forced-colors: active) { .posenc canvas { forced-color-adjust: none; } }
@media print {
  .posenc[data-theme] { background: #fff; color-scheme: light; } .bar .tools, .story-steps, .controls, .player, .onward, .posenc button, .skips { display: none !important; }
  .stage, .card { break-inside: avoid; } .code pre { max-height: none; white-space: pre-wrap; } .posenc main { max-width: none; }
  .posenc * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
`;var te={en:"English",zh:"中文"};function de(n,t){return o("button",{type:"button","data-role":"theme","aria-label":n({en:"Light or dark",zh:"浅色或深色"}),click:t},b("svg",{viewBox:"0 0 20 20",width:18,height:18,"aria-hidden":"true"},b("circle",{cx:10,cy:10,r:7.2,fill:"none",stroke:"currentColor","stroke-width":1.6}),b("path",{d:"M10 2.8a7.2 7.2 0 0 1 0 14.4z",fill:"currentColor"})))}function me(n,t,e){return o("span",{class:"languages",role:"group","aria-label":n({en:"Language",zh:"语言"})},...["en","zh"].map(r=>o("button",{type:"button",lang:r==="zh"?"zh-CN":"en","aria-label":te[r],"aria-pressed":String(t===r),"data-language":r,click:()=>e(r)},o("span",{class:"long"},te[r]),o("span",{class:"short"},te[r].slice(0,r==="zh"?1:2).toUpperCase()))))}function _(n,t){return{en:n,zh:t}}function D(n,t=4){if(!Number.isFinite(n))return Number.isNaN(n)?"–":String(n).replace("Infinity","∞").replace("-","−");let e=Math.abs(n);return e===0?"0":(e>=1e6||e<1e-4?n.toExponential(2).replace("e+","e"):e>=1e3?String(Math.round(n)):n.toFixed(t)).replaceAll("-","−")}var qe=_("Up to 24 words. Words end at spaces and punctuation, an emoji is a word, and without spaces every Chinese character is one; “by words” writes the spaces. Each word gets a random vector, always the same one.","最多 24 个词。词在空格和标点处断开，一个表情符号算一个词；没有空格时，每个汉字算一个词；“按词”会加上空格。每个词对应一个随机向量，同一个词总是同一个。");function J(n,t,e){let r=([a,...p])=>o("tr",{},o("th",{scope:"row"},a),...p.map(c=>o("td",typeof c=="number"?{"data-value":c}:{},typeof c=="number"?D(c):c)));return o("div",{class:"scroll",tabindex:0,role:"region","aria-label":n},o("table",{class:"plain"},o("caption",{},n),o("thead",{},o("tr",{},...t.map(a=>a?o("th",{scope:"col"},a):o("td",{})))),o("tbody",{},...e.map(r))))}function q(n,t){return o("details",{class:"numbers"},o("summary",{},n),t)}var re={en:"Numbers of this chart",zh:"这张图的数值"},V=52,X=14,I=40,$e=1500,Te=168,ne=15,ue=34;function he(n,t){let e=o("div",{class:"chart"}),r=o("ul",{class:"legend"}),a=o("div",{}),p=q(n.t(re),a),c=o("div",{class:"charted"},e,r,p);t.pick?(e.tabIndex=0,e.setAttribute("role","application"),e.setAttribute("aria-roledescription",n.t({en:"chart",zh:"折线图"})),e.setAttribute("aria-label",`${n.t(t.label)}. ${n.t({en:"Left and right move the cursor.",zh:"左右方向键移动光标。"})}`)):(e.setAttribute("role","img"),e.setAttribute("aria-label",n.t(t.label)));let s=null,d=null,[i,m]=[b("g",{}),b("g",{})],u=b("svg",{"aria-hidden":"true"},i,m);e.append(u);let w=0;function z(l){s=l;let x=Math.max(w||=e.clientWidth,260);(!d||d.width!==x||!Oe(d.state,l))&&E(l,x),T(l),p.matches("[open]")&&C(l)}function E(l,x){let f=t.height??Math.round(Math.min(Math.max(x*.42,220),380)),y=l.series.every(h=>h.x.length===1),S=!y&&x>=800&&l.series.some(h=>h.end),g=S?Te:14,v=l.series.flatMap(h=>Y(h.x)),R=l.series.flatMap(h=>[...Y(h.y),...Y(h.low??[]),...Y(h.high??[])]),W=y?(Math.max(...v)-Math.min(...v))*.06||.5:0,M=G(Math.min(...v)-W,Math.max(...v)+W,V,x-g,t.xScale),P=t.yScale?0:(Math.max(...R)-Math.min(...R))*.06||.5,N=G(l.yFrom??Math.min(...R)-P,l.yTo??Math.max(...R)+P,f-I,X,t.yScale);d={state:l,width:x,at:M.place,up:N.place};for(let[h,$]of Object.entries({viewBox:`0 0 ${x} ${f}`,width:x,height:f}))u.setAttribute(h,String($));let A=[];for(let h of N.ticks(Math.max(4,Math.floor(f/60))))A.push(b("line",{class:"grid",x1:V,x2:x-g,y1:N.place(h),y2:N.place(h)}),b("text",{x:V-8,y:N.place(h)+4,"text-anchor":"end"},F(h)));for(let h of l.ticks?Ie(l.ticks,M):M.ticks(Math.max(3,Math.floor(x/110))))A.push(b("line",{class:"tick",x1:M.place(h),x2:M.place(h),y1:f-I,y2:f-I+4}),b("text",{x:M.place(h),y:f-I+18,"text-anchor":"middle"},F(h)));A.push(b("text",{class:"axis-word",x:(V+x-g)/2,y:f-4,"text-anchor":"middle"},n.t(t.x)),b("text",{class:"axis-word",x:2,y:10},n.t(t.y)));for(let h of l.marks??[])A.push(b("line",{class:"mark",x1:M.place(h.x),x2:M.place(h.x),y1:X,y2:f-I}),b("text",{class:"mark",x:M.place(h.x)+(M.place(h.x)>x-110?-5:5),y:X+12,"text-anchor":M.place(h.x)>x-110?"end":"start"},h.word));for(let h of l.series){h.low&&h.high&&A.push(b("path",{class:"band",d:He(h,M.place,N.place),fill:h.colour})),A.push(b("path",{class:`line${h.dashed?" dashed":""}${h.wide?" wide":""}`,d:Fe(h,M.place,N.place),stroke:h.colour}));for(let $ of h.points??[])for(let O=0;O<$.length;O++)Number.isFinite($[O])&&A.push(b("circle",{class:"point",cx:M.place(h.x[O]),cy:N.place($[O]),r:2,fill:h.colour}));if(h.dots)for(let $=0;$<h.x.length;$++)Number.isFinite(h.y[$])&&A.push(b("circle",{cx:M.place(h.x[$]),cy:N.place(h.y[$]),r:h.hollow?4.5:3.5,...h.hollow?{style:`fill: var(--sheet); stroke: ${h.colour}; stroke-width: 2`}:{fill:h.colour}}))}S&&A.push(...Re(l.series,M,N,f-I)),y&&A.push(...We(l.series,M,N,(V+x)/2,f-I)),j(i,...A)}function T(l){let x=[];if(l.cursor!==void 0&&l.series[0]){let f=l.series[0].x[l.cursor],y=d.at(f);x.push(b("line",{class:"cursor",x1:y,x2:y,y1:X,y2:Number(u.getAttribute("height"))-I}));for(let S of l.series){let g=l.cursor<S.x.length&&S.x[l.cursor]===f?l.cursor:-1;g>=0&&Number.isFinite(S.y[g])&&x.push(b("circle",{class:"cursor",cx:y,cy:d.up(S.y[g]),r:5,fill:S.colour}))}}j(m,...x),j(r,...l.series.length>1||l.cursor!==void 0?l.series.map(f=>{let y=o("i",{class:`${f.dashed?"dashed":""}${f.wide?"wide":""}`});y.style.setProperty("--k",f.colour);let S=l.cursor!==void 0&&l.cursor<f.y.length?o("b",{"data-value":f.y[l.cursor]},Number.isFinite(f.y[l.cursor])?D(f.y[l.cursor]):"–"):null;return o("li",{},y,f.name,S&&" ",S)}):[])}function C(l){let x=l.series[0];if(!x)return;let f=l.every??1,y=Be(Math.ceil(x.x.length/f),(l.cursor??0)/f).map(g=>g*f),S=[n.t(t.x),...l.series.map(g=>g.name)];j(a,J(n.t(t.label),S,y.map(g=>[F(x.x[g]),...l.series.map(v=>Number.isFinite(v.y[g])?v.y[g]:"–")])))}p.addEventListener("toggle",()=>p.matches("[open]")&&s&&C(s));function k(l){if(!s||!t.pick||!s.series[0])return;let x=e.getBoundingClientRect(),f=l.clientX-x.left-parseFloat(getComputedStyle(e).paddingLeft),{x:y}=s.series[0],S=d.at,g=0;for(let v=0;v<y.length;v+=s.every??1)Math.abs(S(y[v])-f)<Math.abs(S(y[g])-f)&&(g=v);t.pick(g)}e.addEventListener("pointerdown",k),e.addEventListener("pointermove",l=>(l.buttons&1||t.follows&&l.pointerType==="mouse")&&k(l)),e.addEventListener("keydown",l=>{if(!s||!t.pick||l.ctrlKey||l.metaKey||l.altKey)return;let x=s.series[0]?.x.length??0,f=s.cursor??0,y=s.every??1,S={ArrowLeft:f-y,ArrowRight:f+y,PageUp:f-10*y,PageDown:f+10*y,Home:0,End:x-1}[l.key];S!==void 0&&(l.preventDefault(),t.pick(Math.min(Math.max(S,0),x-1)))});let L=new ResizeObserver(()=>{w!==e.clientWidth&&(w=e.clientWidth,s&&z(s))});return L.observe(e),n.leaving(()=>L.disconnect()),{element:c,draw:z}}function Re(n,t,e,r){let a=n.flatMap(s=>{let d=Array.from(s.y).findLastIndex(Number.isFinite);return s.end&&d>=0?[{word:s.end,colour:s.colour,at:[t.place(s.x[d]),e.place(s.y[d])]}]:[]}),p=fe(a.map(({at:s})=>s[1]),ne,r),c=Math.max(...a.map(({at:s})=>s[0]));return a.flatMap(({word:s,colour:d,at:i},m)=>[...c-i[0]<ne?[b("path",{class:"lead-line",d:`M${i[0]+3} ${i[1]}L${c+8} ${p[m]}`,stroke:d})]:[],b("text",{class:"end-word",x:c+11,y:p[m]+4,style:`fill: ${d}`},s)])}function We(n,t,e,r,a){let p=fe(n.map(c=>e.place(c.y[0])),ne,a);return n.flatMap((c,s)=>{let[d,i,m]=[t.place(c.x[0]),e.place(c.y[0]),p[s]],u=d>r?-1:1;return[...Math.abs(m-i)>4?[b("path",{class:"lead-line",d:`M${d} ${i}L${d+12*u} ${m}`,stroke:c.colour})]:[],b("text",{class:"end-word",x:d+(Math.abs(m-i)>4?14:9)*u,y:m+4,"text-anchor":u<0?"end":"start",style:`fill: ${c.colour}`},c.end??c.name)]})}function Ie(n,t){let e=[],r=n.at(-1);for(let a of n)(a===r||t.place(r)-t.place(a)>=ue&&(!e.length||t.place(a)-t.place(e.at(-1))>=ue))&&e.push(a);return e}function fe(n,t,e=1/0){let r=[...n],a=n.map((p,c)=>c).sort((p,c)=>n[p]-n[c]);for(let p=1;p<a.length;p++)r[a[p]]=Math.max(r[a[p]],r[a[p-1]]+t);for(let p=a.length-1,c=e;p>=0;p--,c-=t)r[a[p]]=Math.min(r[a[p]],c);return r}function Oe(n,t){let e=({series:c,marks:s,yFrom:d,yTo:i})=>JSON.stringify([s,d,i,c.map(({name:m,colour:u,dashed:w,wide:z,end:E,dots:T})=>[m,u,w,z,E,T])]),r=({series:c})=>c.flatMap(({x:s,y:d,low:i,high:m,points:u})=>[s,d,i??[],m??[],...u??[]]),[a,p]=[r(n),r(t)];return e(n)===e(t)&&a.length===p.length&&a.every((c,s)=>c===p[s]||c.length===p[s].length&&Array.prototype.every.call(c,(d,i)=>Object.is(d,p[s][i])))}function Y(n){let[t,e]=[1/0,-1/0];for(let r=0;r<n.length;r++){let a=n[r];a<t&&(t=a),a>e&&(e=a)}return t<=e?[t,e]:[]}function G(n,t,e,r,a){let p=a?m=>Math.log2(Math.max(m,Number.MIN_VALUE)):m=>m,[c,s]=[p(n),p(t)],d=m=>e+(p(m)-c)/(s-c||1)*(r-e);function i(m){if(a){let k=a==="log"?Math.log2(10):1,L=Math.max(1,Math.ceil((s-c)/k/m)),l=[];for(let x=Math.ceil(c/k-1e-9);x<=s/k+1e-9;x+=L)l.push(2**(x*k));return l}let u=(s-c)/m,w=10**Math.floor(Math.log10(u||1)),z=[.5,1,2,2.5,5,10].map(k=>k*w),E=k=>{let[L,l]=[Math.ceil(c/k-1e-9),Math.floor(s/k+1e-9)];return Array.from({length:l-L+1},(x,f)=>(L+f)*k)},T=z.findIndex(k=>k>=u),C=E(z[T]);return C.length<3?E(z[Math.max(T-1,0)]):C}return{place:d,ticks:i}}function F(n){let t=Number(n.toPrecision(6)),e=Math.abs(t);return(e!==0&&(e>=1e6||e<.001)?t.toExponential().replace("e+","e"):String(t)).replaceAll("-","−")}function Fe(n,t,e){let r=Math.max(1,Math.ceil(n.x.length/$e)),a="",p=!1;for(let c=0;c<n.x.length;c+=r){let s=n.y[c];Number.isFinite(s)&&(a+=`${p?"L":"M"}${t(n.x[c]).toFixed(1)} ${e(s).toFixed(1)}`),p=Number.isFinite(s)}return a}function He(n,t,e){let r=Array.from({length:n.x.length},(p,c)=>c).filter(p=>Number.isFinite(n.low[p])&&Number.isFinite(n.high[p])),a=(p,c)=>c.map(s=>`${t(n.x[s]).toFixed(1)} ${e(p[s]).toFixed(1)}`).join("L");return r.length?`M${a(n.high,r)}L${a(n.low,[...r].reverse())}Z`:""}function Be(n,t){if(n<=24)return Array.from({length:n},(r,a)=>a);let e=Array.from({length:23},(r,a)=>Math.round(a/22*(n-1)));return[...new Set([...e,t])].sort((r,a)=>r-a)}var[Z,Q]=[32,40];function ge(n,t){let{t:e}=n,r=o("div",{class:"points",role:"img","aria-label":e(t.label)});t.pick&&(r.tabIndex=0,r.setAttribute("role","application"),r.setAttribute("aria-roledescription",e({en:"chart",zh:"图"})),r.setAttribute("aria-label",`${e(t.label)} ${e({en:"Up and down choose an encoding.",zh:"上下方向键选择编码。"})}`));let a=null;r.addEventListener("keydown",s=>{let d={ArrowDown:1,ArrowUp:-1}[s.key];if(!a||!t.pick||!d||s.ctrlKey||s.metaKey||s.altKey)return;s.preventDefault();let i=a.rows.findIndex(m=>m.chosen);t.pick(a.rows[Math.min(Math.max(i+d,0),a.rows.length-1)].key)});let p=new ResizeObserver(()=>a&&c(a));p.observe(r),n.leaving(()=>p.disconnect());function c(s){a=s;let{rows:d,marks:i=[]}=s,m=Math.max(r.clientWidth,280),u=m<560?156:190,w=i.length?26:8,z=d.flatMap(g=>g.values.flatMap(({low:v,high:R,value:W,seeds:M=[]})=>[v,R,W,...M])).concat(i.map(({x:g})=>g)).filter(Number.isFinite),[E,T]=[Math.min(...z),Math.max(...z)],C=t.xScale?1.1:(T-E)*.01||.05,[k,L]=s.range??(t.xScale?[E/C,T*C]:[E-C,T+C]),l=G(k,L,u+8,m-16,t.xScale),x=w+d.length*Z+Q,f=g=>w+(g+.5)*Z,y=l.ticks(Math.max(3,Math.floor((m-u)/90))),S=y.length>1?y:G(k,L,0,1).ticks(3);B(r,b("svg",{viewBox:`0 0 ${m} ${x}`,width:m,height:x,"aria-hidden":"true"},...S.flatMap(g=>[b("line",{class:"grid",x1:l.place(g),x2:l.place(g),y1:w,y2:x-Q}),b("text",{x:l.place(g),y:x-Q+17,"text-anchor":"middle"},`${F(g)}${t.unit??""}`)]),...i.flatMap(g=>[b("line",{class:"mark",x1:l.place(g.x),x2:l.place(g.x),y1:w,y2:x-Q}),b("text",{class:"mark",x:l.place(g.x),y:14,"text-anchor":"middle"},g.word)]),b("text",{class:"axis-word",x:m-16,y:x-4,"text-anchor":"end"},e(t.x)),...d.map((g,v)=>{let R=g.values.map(({value:W})=>l.place(W));return b("g",{class:g.chosen?"arm chosen":"arm","data-arm":g.key,click:t.pick&&(()=>t.pick(g.key))},b("rect",{class:"band-of",x:0,y:f(v)-Z/2,width:m,height:Z,rx:6}),b("text",{class:"name",x:4,y:f(v)+5},g.name),R.length>1&&b("line",{class:"travel",x1:Math.min(...R),x2:Math.max(...R),y1:f(v),y2:f(v)}),...g.values.flatMap(({value:W,low:M,high:P,colour:N,radius:A,seeds:h=[],hollow:$})=>[b("line",{class:"range",x1:l.place(M),x2:l.place(P),y1:f(v),y2:f(v),style:`stroke: ${N}`}),...h.map(O=>b("circle",{class:"point",cx:l.place(O),cy:f(v),r:2.5,style:`fill: ${N}`})),b("circle",{cx:l.place(W),cy:f(v),r:A,"data-value":W,style:$?`fill: var(--sheet); stroke: ${N}; stroke-width: 2`:`fill: ${N}`})]))})))}return{element:r,draw:c}}var U=n=>typeof n=="string"?_(n,n):n,xe=17,ae=n=>[...n].length>xe?`${[...n].slice(0,xe-1).join("")}…`:n;function be(n,t,e){let r=[...new Set(t.series.flatMap(({points:u})=>u.map(([w])=>w)))].sort((u,w)=>u-w),a=t.series.every(({points:u})=>u.length===1),p=t.series.map(u=>a?_e(u,e):je(u,r,e)),c=Math.max(r.indexOf(t.trained??Number.NaN),0),s=p.filter(u=>u.end).length,d=he(n,{...s>20&&{height:70+15*s},label:U(t.described),x:U(t.x),y:U(t.y),follows:!0,...t.ticks&&{xScale:"log2"},...t.y_log&&{yScale:"log2"},...!a&&{pick(u){c=u,m(),d.element.matches(":focus-within")&&n.announce(`${F(r[u])}: ${p.map(w=>`${w.name} ${D(w.y[u],3)}`).join(", ")}`)}}}),i=t.trained===void 0?[]:[{x:t.trained,word:n.t(_("trained length","训练长度"))}],m=()=>d.draw({series:p,marks:i,...a?{}:{cursor:c},...t.ticks&&{ticks:t.ticks},...t.y_log&&{yFrom:Math.min(...p.map(({y:u})=>u[0]))/1.3,yTo:Math.max(...p.map(({y:u})=>u[0]))*1.15},...t.y_range&&{yFrom:t.y_range[0]-4,yTo:t.y_range[1]+11}});return m(),a&&d.element.querySelector("details").replaceWith(q(n.t(re),J(e(t.described),["",e(t.x),e(t.y)],p.map(({name:u,x:w,y:z})=>[u,w[0],z[0]])))),d.element}function je({name:n,arm:t,points:e,kind:r,note:a},p,c){let s=new Map(e.map(([m,u,w])=>[m,{mean:u,seeds:w}])),d=Math.max(0,...e.map(([,,m])=>m.length)),i=m=>p.map(u=>s.get(u)?.seeds[m]??Number.NaN);return{name:c(n),x:p,y:p.map(m=>s.get(m)?.mean??Number.NaN),colour:t?H(t):"var(--muted)",dashed:r==="level"||r==="changed"||t.includes("+"),dots:d>0||e.length===1,...d>0&&{points:Array.from({length:d},(m,u)=>i(u))},...r!=="level"&&{end:a?`${ae(c(n))} ${c(a)}`:ae(c(n))}}}function _e({name:n,arm:t,points:[e],kind:r},a){return{name:a(n),x:[e[0]],y:[e[1]],colour:H(t),dots:!0,end:ae(a(n)),...r==="off"&&{hollow:!0}}}function we(n,t,e){let r=ge(n,{label:U(t.described),x:U(t.x),...t.log&&{xScale:"log2",unit:"×"}});return r.draw({rows:t.rows.map(({name:a,arm:p,hollow:c,...s})=>({key:p,name:e(a),values:[{...s,colour:H(p),radius:5,...c&&{hollow:c}}]})),marks:(t.marks??[]).map(([a,p])=>({x:a,word:e(p)})),...t.x_range&&{range:t.x_range}}),r.element}function ye(n,t){let e=i=>typeof i=="string"?i:n.t(i);function r(i){switch(i.is){case"text":return[o("p",{class:i.kind},e(i.words))];case"items":return[o("ul",{class:i.kind},...i.words.map(m=>o("li",{},e(m))))];case"cards":return[o("div",{class:"needs"},...i.cards.map(({need:m,pick:u,why:w})=>o("div",{class:"card"},o("div",{class:"need"},e(m)),o("div",{class:"pick"},e(u)),o("div",{class:"small"},e(w)))))];case"table":return[p(i)];case"picture":{let m=i.chart.is==="chart"?be(n,i.chart,e):we(n,i.chart,e);return[i.caption?o("figure",{},o("figcaption",{},e(i.caption)),m):o("figure",{},m)]}case"fold":return[o("details",{},o("summary",{},e(i.words)),...i.blocks.flatMap(r))];case"article":return[o("article",{class:i.kind},o("h3",{},e(i.words)),...i.blocks.flatMap(r))];case"side":return[o("div",{class:i.kind??"tasks"},...i.blocks.flatMap(r))]}}function a(i){let m=i.arm?o("i",{class:"swatch","aria-hidden":"true"}):null;m?.style.setProperty("--k",H(i.arm));let u=e(i.words);return[m,i.detail?o("b",{},u):i.kind==="code"?o("code",{},u):u,i.small&&o("small",{},e(i.small)),i.detail&&o("small",{},e(i.detail))]}function p({head:i,rows:m,kind:u="plain",caption:w}){let z=w?e(w):i.length?e(i[0].words):e(t.title);return o("div",{class:"scroll",tabindex:0,role:"region","aria-label":z},o("table",{class:u},w&&o("caption",{},e(w)),i.length>0&&o("thead",{},o("tr",{},...i.map(E=>o("th",{scope:"col"},...a(E))))),o("tbody",{},...m.map(([E,...T])=>o("tr",{},o("th",{scope:"row"},...a(E)),...De(T).map(([C,k])=>{let L=o("td",{class:C.shade===void 0?C.kind:`shaded ${C.kind??""}`.trim(),colspan:k>1&&k},...a(C));return C.shade!==void 0&&L.style.setProperty("--shade",`${Math.round(100*Math.min(Math.max(C.shade,0),1))}%`),L}))))))}let c=t.sections.map(({name:i,words:m,blocks:u})=>o("section",{id:i},o("h2",{},e(m)),...u.flatMap(r))),s=t.sections.map(({words:i},m)=>o("li",{},o("button",{type:"button",click:()=>c[m].scrollIntoView()},e(i)))),d=o("div",{class:"results"});return B(d,o("nav",{class:"sections","aria-label":e(t.contents)},o("ul",{},...s)),...c),d}function De(n){let t=[];for(let e of n){let r=t.at(-1);r&&e.kind?.startsWith("none")&&!e.detail&&JSON.stringify(r[0])===JSON.stringify(e)?r[1]++:t.push([e,1])}return t}var yt=_("Measured: a folder of results","实测：一个结果文件夹");var ve=`.results section { margin-top: 40px; scroll-margin-top: 8px; } .results section > p, .results article > p { max-width: 50em; }
.results .sections ul { display: flex; flex-wrap: wrap; gap: 4px 14px; list-style: none; padding: 0; margin: 14px 0 0; }
.posenc .results .sections button { border: 0; background: none; padding: 0; color: var(--accent); }
.results .tasks { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 430px), 1fr)); gap: 0 24px; align-items: start; } .results .tasks > * { min-width: 0; }
.results .task.long:has(.heat) { grid-column: 1 / -1; } .results article { margin-top: 18px; } .results h3 { margin-bottom: 8px; }
.results .panels { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 330px), 1fr)); gap: 16px; } .results .panels > * { min-width: 0; }
.results figure { margin: 12px 0; } .results figcaption { font-weight: 600; font-size: 14px; margin-bottom: 4px; }
.results .needs { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 290px), 1fr)); gap: 12px; margin: 12px 0; }
.results .need { font-size: 14px; color: var(--muted); line-height: 1.35; } .results .pick { font-size: 20px; font-weight: 650; color: var(--accent); margin: 4px 0 2px; overflow-wrap: anywhere; }
.results .said { padding-left: 20px; max-width: 50em; } .results .said li { margin: 6px 0; } .results .scroll { margin: 10px 0; }
.results table { width: 100%; } .results thead th { color: var(--muted); vertical-align: bottom; white-space: normal; }
.results tbody tr { border-top: 1px solid var(--grid); } .results th[scope="row"], .results thead th:first-child { text-align: left; }
.results tbody th { position: sticky; left: 0; z-index: 1; background: var(--paper); } .stage .results tbody th { background: var(--sheet); }
.results caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.results td b { font-weight: 600; } .results :is(td, th) small { display: block; color: var(--muted); font-size: 11.5px; font-weight: 400; } .results .facts td small, .results .plain td small { display: inline; margin-left: 5px; }
.results .swatch { display: inline-block; width: 10px; height: 10px; border-radius: 50%; background: var(--k); margin-right: 7px; }
.results .heat td { text-align: center; border: 2px solid var(--paper); border-radius: 8px; } .stage .results .heat td { border-color: var(--sheet); } .results .heat thead th:not(:first-child) { text-align: center; }
.results .shaded { background: color-mix(in oklab, light-dark(#f0a58f, #7d2f26) var(--shade), light-dark(#d8efe8, #1b4239)); } .results .shaded small { color: inherit; }
.results :is(.not-learnt, .unlearnt) { background: repeating-linear-gradient(135deg, transparent 0 6px, var(--soft) 6px 10px); } .results td.none { color: var(--muted); font-size: 12.5px; white-space: normal; text-align: center; min-width: 7em; } .results td.none b { color: var(--ink); font-size: 13px; }
.results td.failed, .results .no, .results .word.breaks { color: var(--bad); } .results .yes, .results .word.stays { color: var(--good); } .results .word { font-weight: 600; }
.results td.missing { outline: 1px dashed var(--muted); outline-offset: -3px; }
.results :is(.worded, .how) :is(td, th) { text-align: left; vertical-align: top; white-space: normal; min-width: 7em; } .results .how th { color: var(--muted); white-space: nowrap; } .results .how td { overflow-wrap: anywhere; }
.bar .brand + .tools { margin-left: auto; }
@media (max-width: 640px) { .results tr > :first-child { min-width: 84px; } .results tbody th { white-space: normal; max-width: 110px; overflow-wrap: break-word; line-height: 1.25; } .results .how th { max-width: none; } }
.posenc main:has(.results) [data-role="picture"] { display: none; }
@media print { .results .sections { display: none; } .results .scroll { overflow: visible; } .results :is(article, tr, figure) { break-inside: avoid; } }
`;var oe=JSON.parse(document.getElementById("posenc-about").textContent),Se=new CSSStyleSheet;Se.replaceSync(`${pe}
${ve}`);document.adoptedStyleSheets=[Se];var K=o("div",{class:"posenc"});document.body.append(K);var ke=[];function Me(n,t){for(let d of ke.splice(0))d();let e=d=>d[n],r=d=>typeof d=="string"?d:e(d),a=o("div",{class:"away",role:"status","aria-live":"polite"});document.documentElement.lang=K.lang=n==="zh"?"zh-CN":"en",K.dataset.theme=t;let p=(d,i)=>{try{localStorage.setItem("posenc-language",d),localStorage.setItem("posenc-theme",i)}catch{}Me(d,i)},c={t:e,announce:d=>{a.textContent=d},leaving:d=>{ke.push(d)}},s=o("main",{},o("h1",{},r(oe.title)),o("p",{class:"lead"},r(oe.lead)),ye(c,oe));B(K,o("header",{class:"bar"},o("span",{class:"brand"},"posenc lab"),o("span",{class:"tools"},de(e,()=>p(n,ee(K)?"light":"dark")),me(e,n,d=>{p(d,t),K.querySelector(`[data-language=${d}]`)?.focus()}))),s,a),s.dataset.ready="true"}function Ce(n){try{return localStorage.getItem(n)}catch{return null}}var ie=Ce("posenc-language");Me(ie==="en"||ie==="zh"?ie:navigator.language.startsWith("zh")?"zh":"en",Ce("posenc-theme")??"auto");document.getElementById(location.hash.slice(1))?.scrollIntoView();
