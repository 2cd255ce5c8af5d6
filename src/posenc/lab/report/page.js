var Me={t5:305,learned:262,transformer_xl:145,shaw:350,floater:230,xpos:52,cope:112},Ce=["sinusoidal","rope","alibi","yarn"];function O(r){let[t]=r.split("+");if(Ce.includes(t))return`var(--${t})`;if(t==="nope")return"var(--line-6)";let e=Me[t]??[...t].reduce((n,a)=>(n*31+a.charCodeAt(0))%360,7);return`light-dark(oklch(.47 .13 ${e}), oklch(.78 .11 ${e}))`}function Z(r){let t=r.closest(".posenc")?.dataset.theme;return t==="dark"||t==="auto"&&matchMedia("(prefers-color-scheme: dark)").matches}var Ne="http://www.w3.org/2000/svg";function o(r,t={},...e){return ae(document.createElement(r),t,e)}function b(r,t={},...e){return ae(document.createElementNS(Ne,r),t,e)}function ae(r,t,e){for(let[n,a]of Object.entries(t))typeof a=="function"?r.addEventListener(n,a):a!==void 0&&a!==!1&&r.setAttribute(n,a===!0?"":String(a));return oe(r,e),r}function oe(r,t){for(let e of t)e!=null&&e!==!1&&r.append(typeof e=="number"?String(e):e)}function F(r,...t){r.replaceChildren(),oe(r,t)}function H(r,...t){let e=document.createDocumentFragment();for(let n of t)n!=null&&n!==!1&&e.append(typeof n=="number"?String(n):n);ie(r,e)}function ie(r,t){let e=r.firstChild;for(let n of[...t.childNodes])if(!e)r.appendChild(n);else{let a=e.nextSibling;e.nodeName!==n.nodeName?r.replaceChild(n,e):e instanceof Element?ze(e,n):e.nodeValue!==n.nodeValue&&(e.nodeValue=n.nodeValue),e=a}for(;e;){let n=e.nextSibling;e.remove(),e=n}}function ze(r,t){for(let{name:e}of[...r.attributes])t.hasAttribute(e)||r.removeAttribute(e);for(let{name:e,value:n}of t.attributes)r.getAttribute(e)!==n&&r.setAttribute(e,n);ie(r,t)}var se=`/* One visual language for all views. Everything hangs below .posenc, so that it also lives in a notebook's cell.

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
body > .posenc { min-height: 100vh; }
.posenc, .posenc * { box-sizing: border-box; }
.posenc :focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
.posenc main:focus { outline: none; }
/* What the drawing will push down appears together with it, so that nothing on the page jumps. */
main:not([data-ready]) :is(.stage, .formula-card, .pair, .onward, [data-role="exported"]), main:not([data-ready]) + footer { visibility: hidden; }
.posenc [hidden] { display: none !important; }
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
`;var Q={en:"English",zh:"中文"};function le(r,t){return o("button",{type:"button","data-role":"theme","aria-label":r({en:"Light or dark",zh:"浅色或深色"}),click:t},b("svg",{viewBox:"0 0 20 20",width:18,height:18,"aria-hidden":"true"},b("circle",{cx:10,cy:10,r:7.2,fill:"none",stroke:"currentColor","stroke-width":1.6}),b("path",{d:"M10 2.8a7.2 7.2 0 0 1 0 14.4z",fill:"currentColor"})))}function ce(r,t,e){return o("span",{class:"languages",role:"group","aria-label":r({en:"Language",zh:"语言"})},...["en","zh"].map(n=>o("button",{type:"button",lang:n==="zh"?"zh-CN":"en","aria-label":Q[n],"aria-pressed":String(t===n),"data-language":n,click:()=>e(n)},o("span",{class:"long"},Q[n]),o("span",{class:"short"},Q[n].slice(0,n==="zh"?1:2).toUpperCase()))))}function j(r,t){return{en:r,zh:t}}function B(r,t=4){if(!Number.isFinite(r))return Number.isNaN(r)?"–":String(r).replace("Infinity","∞").replace("-","−");let e=Math.abs(r);return e===0?"0":(e>=1e6||e<1e-4?r.toExponential(2).replace("e+","e"):e>=1e3?String(Math.round(r)):r.toFixed(t)).replaceAll("-","−")}var Pe=j("Up to 24 words. Words end at spaces and punctuation, an emoji is a word, and without spaces every Chinese character is one; “by words” writes the spaces. Each word gets a random vector, always the same one.","最多 24 个词。词在空格和标点处断开，一个表情符号算一个词；没有空格时，每个汉字算一个词；“按词”会加上空格。每个词对应一个随机向量，同一个词总是同一个。");function V(r,t,e){let n=([a,...d])=>o("tr",{},o("th",{scope:"row"},a),...d.map(p=>o("td",typeof p=="number"?{"data-value":p}:{},typeof p=="number"?B(p):p)));return o("div",{class:"scroll",tabindex:0,role:"region","aria-label":r},o("table",{class:"plain"},o("caption",{},r),o("thead",{},o("tr",{},...t.map(a=>a?o("th",{scope:"col"},a):o("td",{})))),o("tbody",{},...e.map(n))))}function U(r,t){return o("details",{class:"numbers"},o("summary",{},r),t)}var ee={en:"Numbers of this chart",zh:"这张图的数值"},G=52,P=14,_=40,Le=1500,Ae=168,pe=15,de=34;function me(r,t){let e=o("div",{class:"chart"}),n=o("ul",{class:"legend"}),a=o("div",{}),d=U(r.t(ee),a),p=o("div",{class:"charted"},e,n,d);t.pick?(e.tabIndex=0,e.setAttribute("role","application"),e.setAttribute("aria-roledescription",r.t({en:"chart",zh:"折线图"})),e.setAttribute("aria-label",`${r.t(t.label)}. ${r.t({en:"Left and right move the cursor.",zh:"左右方向键移动光标。"})}`)):(e.setAttribute("role","img"),e.setAttribute("aria-label",r.t(t.label)));let c=null,m=null,[i,l]=[b("g",{}),b("g",{})],x=b("svg",{"aria-hidden":"true"},i,l);e.append(x);let y=0;function E(s){c=s;let g=Math.max(y||=e.clientWidth,260);(!m||m.width!==g||!We(m.state,s))&&z(s,g),A(s),d.matches("[open]")&&C(s)}function z(s,g){let h=t.height??Math.round(Math.min(Math.max(g*.42,220),380)),k=g>=800&&s.series.some(u=>u.end),f=k?Ae:14,w=s.series.flatMap(u=>J(u.x)),M=s.series.flatMap(u=>[...J(u.y),...J(u.low??[]),...J(u.high??[])]),v=q(Math.min(...w),Math.max(...w),G,g-f,t.xScale),I=t.yScale?0:(Math.max(...M)-Math.min(...M))*.06||.5,T=q(s.yFrom??Math.min(...M)-I,s.yTo??Math.max(...M)+I,h-_,P,t.yScale);m={state:s,width:g,at:v.place,up:T.place};for(let[u,L]of Object.entries({viewBox:`0 0 ${g} ${h}`,width:g,height:h}))x.setAttribute(u,String(L));let N=[];for(let u of T.ticks(Math.max(4,Math.floor(h/60))))N.push(b("line",{class:"grid",x1:G,x2:g-f,y1:T.place(u),y2:T.place(u)}),b("text",{x:G-8,y:T.place(u)+4,"text-anchor":"end"},W(u)));for(let u of s.ticks?Te(s.ticks,v):v.ticks(Math.max(3,Math.floor(g/110))))N.push(b("line",{class:"tick",x1:v.place(u),x2:v.place(u),y1:h-_,y2:h-_+4}),b("text",{x:v.place(u),y:h-_+18,"text-anchor":"middle"},W(u)));N.push(b("text",{class:"axis-word",x:(G+g-f)/2,y:h-4,"text-anchor":"middle"},r.t(t.x)),b("text",{class:"axis-word",x:2,y:10},r.t(t.y)));for(let u of s.marks??[])N.push(b("line",{class:"mark",x1:v.place(u.x),x2:v.place(u.x),y1:P,y2:h-_}),b("text",{class:"mark",x:v.place(u.x)+(v.place(u.x)>g-110?-5:5),y:P+12,"text-anchor":v.place(u.x)>g-110?"end":"start"},u.word));for(let u of s.series){u.low&&u.high&&N.push(b("path",{class:"band",d:Oe(u,v.place,T.place),fill:u.colour})),N.push(b("path",{class:`line${u.dashed?" dashed":""}${u.wide?" wide":""}`,d:Ie(u,v.place,T.place),stroke:u.colour}));for(let L of u.points??[])for(let R=0;R<L.length;R++)Number.isFinite(L[R])&&N.push(b("circle",{class:"point",cx:v.place(u.x[R]),cy:T.place(L[R]),r:2,fill:u.colour}));if(u.dots)for(let L=0;L<u.x.length;L++)Number.isFinite(u.y[L])&&N.push(b("circle",{cx:v.place(u.x[L]),cy:T.place(u.y[L]),r:u.hollow?4.5:3.5,...u.hollow?{style:`fill: var(--sheet); stroke: ${u.colour}; stroke-width: 2`}:{fill:u.colour}}))}k&&N.push(...$e(s.series,v,T)),H(i,...N)}function A(s){let g=[];if(s.cursor!==void 0&&s.series[0]){let h=s.series[0].x[s.cursor],k=m.at(h);g.push(b("line",{class:"cursor",x1:k,x2:k,y1:P,y2:Number(x.getAttribute("height"))-_}));for(let f of s.series){let w=s.cursor<f.x.length&&f.x[s.cursor]===h?s.cursor:-1;w>=0&&Number.isFinite(f.y[w])&&g.push(b("circle",{class:"cursor",cx:k,cy:m.up(f.y[w]),r:5,fill:f.colour}))}}H(l,...g),H(n,...s.series.length>1||s.cursor!==void 0?s.series.map(h=>{let k=o("i",{class:`${h.dashed?"dashed":""}${h.wide?"wide":""}`});k.style.setProperty("--k",h.colour);let f=s.cursor!==void 0&&s.cursor<h.y.length?o("b",{"data-value":h.y[s.cursor]},Number.isFinite(h.y[s.cursor])?B(h.y[s.cursor]):"–"):null;return o("li",{},k,h.name,f&&" ",f)}):[])}function C(s){let g=s.series[0];if(!g)return;let h=s.every??1,k=Fe(Math.ceil(g.x.length/h),(s.cursor??0)/h).map(w=>w*h),f=[r.t(t.x),...s.series.map(w=>w.name)];H(a,V(r.t(t.label),f,k.map(w=>[W(g.x[w]),...s.series.map(M=>Number.isFinite(M.y[w])?M.y[w]:"–")])))}d.addEventListener("toggle",()=>d.matches("[open]")&&c&&C(c));function S(s){if(!c||!t.pick||!c.series[0])return;let g=e.getBoundingClientRect(),h=s.clientX-g.left-parseFloat(getComputedStyle(e).paddingLeft),{x:k}=c.series[0],f=m.at,w=0;for(let M=0;M<k.length;M+=c.every??1)Math.abs(f(k[M])-h)<Math.abs(f(k[w])-h)&&(w=M);t.pick(w)}e.addEventListener("pointerdown",S),e.addEventListener("pointermove",s=>(s.buttons&1||t.follows&&s.pointerType==="mouse")&&S(s)),e.addEventListener("keydown",s=>{if(!c||!t.pick||s.ctrlKey||s.metaKey||s.altKey)return;let g=c.series[0]?.x.length??0,h=c.cursor??0,k=c.every??1,f={ArrowLeft:h-k,ArrowRight:h+k,PageUp:h-10*k,PageDown:h+10*k,Home:0,End:g-1}[s.key];f!==void 0&&(s.preventDefault(),t.pick(Math.min(Math.max(f,0),g-1)))});let $=new ResizeObserver(()=>{y!==e.clientWidth&&(y=e.clientWidth,c&&E(c))});return $.observe(e),r.leaving(()=>$.disconnect()),{element:p,draw:E}}function $e(r,t,e){let n=r.flatMap(p=>{let c=Array.from(p.y).findLastIndex(Number.isFinite);return p.end&&c>=0?[{word:p.end,colour:p.colour,alone:p.x.length===1,at:[t.place(p.x[c]),e.place(p.y[c])]}]:[]}),a=Re(n.map(({at:p})=>p[1]),pe),d=Math.max(...n.map(({at:p})=>p[0]));return n.flatMap(({word:p,colour:c,alone:m,at:i},l)=>[...m||d-i[0]<pe?[b("path",{class:"lead-line",d:`M${i[0]+3} ${i[1]}L${d+8} ${a[l]}`,stroke:c})]:[],b("text",{class:"end-word",x:d+11,y:a[l]+4,style:`fill: ${c}`},p)])}function Te(r,t){let e=[],n=r.at(-1);for(let a of r)(a===n||t.place(n)-t.place(a)>=de&&(!e.length||t.place(a)-t.place(e.at(-1))>=de))&&e.push(a);return e}function Re(r,t){let e=[...r],n=r.map((a,d)=>d).sort((a,d)=>r[a]-r[d]);for(let a=1;a<n.length;a++)e[n[a]]=Math.max(e[n[a]],e[n[a-1]]+t);return e}function We(r,t){let e=({series:p,marks:c,yFrom:m,yTo:i})=>JSON.stringify([c,m,i,p.map(({name:l,colour:x,dashed:y,wide:E,end:z,dots:A})=>[l,x,y,E,z,A])]),n=({series:p})=>p.flatMap(({x:c,y:m,low:i,high:l,points:x})=>[c,m,i??[],l??[],...x??[]]),[a,d]=[n(r),n(t)];return e(r)===e(t)&&a.length===d.length&&a.every((p,c)=>p===d[c]||p.length===d[c].length&&Array.prototype.every.call(p,(m,i)=>Object.is(m,d[c][i])))}function J(r){let[t,e]=[1/0,-1/0];for(let n=0;n<r.length;n++){let a=r[n];a<t&&(t=a),a>e&&(e=a)}return t<=e?[t,e]:[]}function q(r,t,e,n,a){let d=a?l=>Math.log2(Math.max(l,Number.MIN_VALUE)):l=>l,[p,c]=[d(r),d(t)],m=l=>e+(d(l)-p)/(c-p||1)*(n-e);function i(l){if(a){let S=a==="log"?Math.log2(10):1,$=Math.max(1,Math.ceil((c-p)/S/l)),s=[];for(let g=Math.ceil(p/S-1e-9);g<=c/S+1e-9;g+=$)s.push(2**(g*S));return s}let x=(c-p)/l,y=10**Math.floor(Math.log10(x||1)),E=[.5,1,2,2.5,5,10].map(S=>S*y),z=S=>{let[$,s]=[Math.ceil(p/S-1e-9),Math.floor(c/S+1e-9)];return Array.from({length:s-$+1},(g,h)=>($+h)*S)},A=E.findIndex(S=>S>=x),C=z(E[A]);return C.length<3?z(E[Math.max(A-1,0)]):C}return{place:m,ticks:i}}function W(r){let t=Number(r.toPrecision(6)),e=Math.abs(t);return(e!==0&&(e>=1e6||e<.001)?t.toExponential().replace("e+","e"):String(t)).replaceAll("-","−")}function Ie(r,t,e){let n=Math.max(1,Math.ceil(r.x.length/Le)),a="",d=!1;for(let p=0;p<r.x.length;p+=n){let c=r.y[p];Number.isFinite(c)&&(a+=`${d?"L":"M"}${t(r.x[p]).toFixed(1)} ${e(c).toFixed(1)}`),d=Number.isFinite(c)}return a}function Oe(r,t,e){let n=Array.from({length:r.x.length},(d,p)=>p).filter(d=>Number.isFinite(r.low[d])&&Number.isFinite(r.high[d])),a=(d,p)=>p.map(c=>`${t(r.x[c]).toFixed(1)} ${e(d[c]).toFixed(1)}`).join("L");return n.length?`M${a(r.high,n)}L${a(r.low,[...n].reverse())}Z`:""}function Fe(r,t){if(r<=24)return Array.from({length:r},(n,a)=>a);let e=Array.from({length:23},(n,a)=>Math.round(a/22*(r-1)));return[...new Set([...e,t])].sort((n,a)=>n-a)}var[X,Y]=[32,40];function ue(r,t){let{t:e}=r,n=o("div",{class:"points",role:"img","aria-label":e(t.label)});t.pick&&(n.tabIndex=0,n.setAttribute("role","application"),n.setAttribute("aria-roledescription",e({en:"chart",zh:"图"})),n.setAttribute("aria-label",`${e(t.label)} ${e({en:"Up and down choose an encoding.",zh:"上下方向键选择编码。"})}`));let a=null;n.addEventListener("keydown",c=>{let m={ArrowDown:1,ArrowUp:-1}[c.key];if(!a||!t.pick||!m||c.ctrlKey||c.metaKey||c.altKey)return;c.preventDefault();let i=a.rows.findIndex(l=>l.chosen);t.pick(a.rows[Math.min(Math.max(i+m,0),a.rows.length-1)].key)});let d=new ResizeObserver(()=>a&&p(a));d.observe(n),r.leaving(()=>d.disconnect());function p(c){a=c;let{rows:m,marks:i=[]}=c,l=Math.max(n.clientWidth,280),x=l<560?156:190,y=i.length?26:8,E=m.flatMap(f=>f.values.flatMap(({low:w,high:M,value:v,seeds:I=[]})=>[w,M,v,...I])).concat(i.map(({x:f})=>f)).filter(Number.isFinite),[z,A]=[Math.min(...E),Math.max(...E)],C=t.xScale?1.1:(A-z)*.01||.05,[S,$]=c.range??(t.xScale?[z/C,A*C]:[z-C,A+C]),s=q(S,$,x+8,l-16,t.xScale),g=y+m.length*X+Y,h=f=>y+(f+.5)*X,k=s.ticks(Math.max(3,Math.floor((l-x)/90)));F(n,b("svg",{viewBox:`0 0 ${l} ${g}`,width:l,height:g,"aria-hidden":"true"},...k.flatMap(f=>[b("line",{class:"grid",x1:s.place(f),x2:s.place(f),y1:y,y2:g-Y}),b("text",{x:s.place(f),y:g-Y+17,"text-anchor":"middle"},`${W(f)}${t.unit??""}`)]),...i.flatMap(f=>[b("line",{class:"mark",x1:s.place(f.x),x2:s.place(f.x),y1:y,y2:g-Y}),b("text",{class:"mark",x:s.place(f.x),y:14,"text-anchor":"middle"},f.word)]),b("text",{class:"axis-word",x:l-16,y:g-4,"text-anchor":"end"},e(t.x)),...m.map((f,w)=>{let M=f.values.map(({value:v})=>s.place(v));return b("g",{class:f.chosen?"arm chosen":"arm","data-arm":f.key,click:t.pick&&(()=>t.pick(f.key))},b("rect",{class:"band-of",x:0,y:h(w)-X/2,width:l,height:X,rx:6}),b("text",{class:"name",x:4,y:h(w)+5},f.name),M.length>1&&b("line",{class:"travel",x1:Math.min(...M),x2:Math.max(...M),y1:h(w),y2:h(w)}),...f.values.flatMap(({value:v,low:I,high:T,colour:N,radius:u,seeds:L=[],hollow:R})=>[b("line",{class:"range",x1:s.place(I),x2:s.place(T),y1:h(w),y2:h(w),style:`stroke: ${N}`}),...L.map(Se=>b("circle",{class:"point",cx:s.place(Se),cy:h(w),r:2.5,style:`fill: ${N}`})),b("circle",{cx:s.place(v),cy:h(w),r:u,"data-value":v,style:R?`fill: var(--sheet); stroke: ${N}; stroke-width: 2`:`fill: ${N}`})]))})))}return{element:n,draw:p}}var K=r=>typeof r=="string"?j(r,r):r,he=17,te=r=>[...r].length>he?`${[...r].slice(0,he-1).join("")}…`:r;function fe(r,t,e){let n=[...new Set(t.series.flatMap(({points:l})=>l.map(([x])=>x)))].sort((l,x)=>l-x),a=t.series.every(({points:l})=>l.length===1),d=t.series.map(l=>a?je(l,e):He(l,n,e)),p=Math.max(n.indexOf(t.trained??Number.NaN),0),c=me(r,{label:K(t.described),x:K(t.x),y:K(t.y),follows:!0,...t.ticks&&{xScale:"log2"},...t.y_log&&{yScale:"log2"},...!a&&{pick(l){p=l,i(),c.element.matches(":focus-within")&&r.announce(`${W(n[l])}: ${d.map(x=>`${x.name} ${B(x.y[l],3)}`).join(", ")}`)}}}),m=t.trained===void 0?[]:[{x:t.trained,word:r.t(j("trained length","训练长度"))}],i=()=>c.draw({series:d,marks:m,...a?{}:{cursor:p},...t.ticks&&{ticks:t.ticks},...t.y_range&&{yFrom:t.y_range[0]-4,yTo:t.y_range[1]+11}});return i(),a&&c.element.querySelector("details").replaceWith(U(r.t(ee),V(e(t.described),["",e(t.x),e(t.y)],d.map(({name:l,x,y})=>[l,x[0],y[0]])))),c.element}function He({name:r,arm:t,points:e,kind:n,note:a},d,p){let c=new Map(e.map(([l,x,y])=>[l,{mean:x,seeds:y}])),m=Math.max(0,...e.map(([,,l])=>l.length)),i=l=>d.map(x=>c.get(x)?.seeds[l]??Number.NaN);return{name:p(r),x:d,y:d.map(l=>c.get(l)?.mean??Number.NaN),colour:t?O(t):"var(--muted)",dashed:n==="level"||n==="changed"||t.includes("+"),dots:m>0||e.length===1,...m>0&&{points:Array.from({length:m},(l,x)=>i(x))},...n!=="level"&&{end:a?`${te(p(r))} ${p(a)}`:te(p(r))}}}function je({name:r,arm:t,points:[e],kind:n},a){return{name:a(r),x:[e[0]],y:[e[1]],colour:O(t),dots:!0,end:te(a(r)),...n==="off"&&{hollow:!0}}}function ge(r,t,e){let n=ue(r,{label:K(t.described),x:K(t.x),...t.log&&{xScale:"log2",unit:"×"}});return n.draw({rows:t.rows.map(({name:a,arm:d,hollow:p,...c})=>({key:d,name:e(a),values:[{...c,colour:O(d),radius:5,...p&&{hollow:p}}]})),marks:(t.marks??[]).map(([a,d])=>({x:a,word:e(d)})),...t.x_range&&{range:t.x_range}}),n.element}function xe(r,t){let e=i=>typeof i=="string"?i:r.t(i);function n(i){switch(i.is){case"text":return[o("p",{class:i.kind},e(i.words))];case"items":return[o("ul",{class:i.kind},...i.words.map(l=>o("li",{},e(l))))];case"cards":return[o("div",{class:"needs"},...i.cards.map(({need:l,pick:x,why:y})=>o("div",{class:"card"},o("div",{class:"need"},e(l)),o("div",{class:"pick"},e(x)),o("div",{class:"small"},e(y)))))];case"table":return[d(i)];case"picture":{let l=i.chart.is==="chart"?fe(r,i.chart,e):ge(r,i.chart,e);return[i.caption?o("figure",{},o("figcaption",{},e(i.caption)),l):o("figure",{},l)]}case"fold":return[o("details",{},o("summary",{},e(i.words)),...i.blocks.flatMap(n))];case"article":return[o("article",{class:i.kind},o("h3",{},e(i.words)),...i.blocks.flatMap(n))];case"side":return[o("div",{class:i.kind??"tasks"},...i.blocks.flatMap(n))]}}function a(i){let l=i.arm?o("i",{class:"swatch","aria-hidden":"true"}):null;l?.style.setProperty("--k",O(i.arm));let x=e(i.words);return[l,i.detail?o("b",{},x):i.kind==="code"?o("code",{},x):x,i.small&&o("small",{},e(i.small)),i.detail&&o("small",{},e(i.detail))]}function d({head:i,rows:l,kind:x="plain",caption:y}){let E=y?e(y):i.length?e(i[0].words):e(t.title);return o("div",{class:"scroll",tabindex:0,role:"region","aria-label":E},o("table",{class:x},y&&o("caption",{},e(y)),i.length>0&&o("thead",{},o("tr",{},...i.map(z=>o("th",{scope:"col"},...a(z))))),o("tbody",{},...l.map(([z,...A])=>o("tr",{},o("th",{scope:"row"},...a(z)),...Be(A).map(([C,S])=>{let $=o("td",{class:C.shade===void 0?C.kind:`shaded ${C.kind??""}`.trim(),colspan:S>1&&S},...a(C));return C.shade!==void 0&&$.style.setProperty("--shade",`${Math.round(100*Math.min(Math.max(C.shade,0),1))}%`),$}))))))}let p=t.sections.map(({name:i,words:l,blocks:x})=>o("section",{id:i},o("h2",{},e(l)),...x.flatMap(n))),c=t.sections.map(({words:i},l)=>o("li",{},o("button",{type:"button",click:()=>p[l].scrollIntoView()},e(i)))),m=o("div",{class:"results"});return F(m,o("nav",{class:"sections","aria-label":e(t.contents)},o("ul",{},...c)),...p),m}function Be(r){let t=[];for(let e of r){let n=t.at(-1);n&&e.kind?.startsWith("none")&&!e.detail&&JSON.stringify(n[0])===JSON.stringify(e)?n[1]++:t.push([e,1])}return t}var bt=j("Measured: a folder of results","实测：一个结果文件夹");var be=`.results section { margin-top: 40px; scroll-margin-top: 8px; } .results section > p, .results article > p { max-width: 50em; }
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
`;var re=JSON.parse(document.getElementById("posenc-about").textContent),ye=new CSSStyleSheet;ye.replaceSync(`${se}
${be}`);document.adoptedStyleSheets=[ye];var D=o("div",{class:"posenc"});document.body.append(D);var we=[];function ve(r,t){for(let m of we.splice(0))m();let e=m=>m[r],n=m=>typeof m=="string"?m:e(m),a=o("div",{class:"away",role:"status","aria-live":"polite"});document.documentElement.lang=D.lang=r==="zh"?"zh-CN":"en",D.dataset.theme=t;let d=(m,i)=>{try{localStorage.setItem("posenc-language",m),localStorage.setItem("posenc-theme",i)}catch{}ve(m,i)},p={t:e,announce:m=>{a.textContent=m},leaving:m=>{we.push(m)}},c=o("main",{},o("h1",{},n(re.title)),o("p",{class:"lead"},n(re.lead)),xe(p,re));F(D,o("header",{class:"bar"},o("span",{class:"brand"},"posenc lab"),o("span",{class:"tools"},le(e,()=>d(r,Z(D)?"light":"dark")),ce(e,r,m=>{d(m,t),D.querySelector(`[data-language=${m}]`)?.focus()}))),c,a),c.dataset.ready="true"}function ke(r){try{return localStorage.getItem(r)}catch{return null}}var ne=ke("posenc-language");ve(ne==="en"||ne==="zh"?ne:navigator.language.startsWith("zh")?"zh":"en",ke("posenc-theme")??"auto");document.getElementById(location.hash.slice(1))?.scrollIntoView();
