// The search of the site finds encodings as `posenc list WORD` does: by names, aliases, models, papers and authors, in both
// languages. Above what stands in the text it shows at most three entries; a guess says that it is one. The functions repeat
// posenc/catalogue/index.py over the index that docs/site/found.py writes; tests/test_site_search.py compares both.
"use strict";
globalThis.posencFind = (() => {
  const HAN = "\\u3400-\\u9fff";
  const index = globalThis.posencIndex;
  const [empty, called] = [new RegExp(`^(?:${index.empty})$`), new Set(index.called)];

  /** Its letters, digits and +, in lower case. */
  const fold = (word) => word.toLowerCase().replace(/[^\p{L}\p{N}+]/gu, "");
  const spaced = (word) => word.toLowerCase().replace(/[\s_-]+/g, " ").trim();

  const ANY = new RegExp(index.any, "i");
  const bare = (word) => word.replace(ANY, "") || word;

  /** Its parts without what says nothing. */
  function meaning(word) {
    const lower = word.replace(/(?<=[a-z]{3})(?=[A-Z])/g, " ").toLowerCase().replace(/(\d)[ -]d\b/g, "$1d");
    const parts = lower.match(new RegExp(`\\d+d(?![a-z])|\\d+|[a-z+]+|[${HAN}]+`, "g")) ?? [];
    const told = parts.map((part) => part.replace(/(?<=[a-z]{3}[^su])s$/, "")).filter((part) => !empty.test(part)).map((part) => part.replace(/位置|编码|嵌入|的/g, ""));
    return new Set(told.filter(Boolean).map((part) => index.same[part] ?? part));
  }

  const letters = (word) => [...word];
  const total = (parts) => [...parts].reduce((sum, part) => sum + letters(part).length, 0);

  /** 0 to 1: the share of letters that both have in the same order, as rapidfuzz's ratio. */
  function ratio(one, other) {
    const [a, b] = [letters(one), letters(other)];
    const all = a.length + b.length;
    let row = new Array(b.length + 1).fill(0);
    for (const letter of a) {
      const next = [0];
      for (let j = 0; j < b.length; j++) next.push(letter === b[j] ? row[j] + 1 : Math.max(row[j + 1], next[j]));
      row = next;
    }
    return all ? 1 - (all - 2 * row[b.length]) / all : 1;
  }

  const terms = index.terms.map(([entry, written, role, group]) => ({ entry, written, group, role, rank: index.roles.indexOf(role), spaced: spaced(written), folded: fold(written), bare: fold(bare(written)), meaning: meaning(written) }));

  const same = (a, b) => a.size > 0 && a.size === b.size && [...a].every((one) => b.has(one));

  function alike(word, term) {
    if (word.spaced === term.spaced) return 0;
    if (word.folded === term.folded) return 1;
    return same(word.meaning, term.meaning) ? 2 : null;
  }

  function standsIn(part, known) {
    if (known.has(part)) return true;
    if (new RegExp(`^[${HAN}]`).test(part)) return [...known].some((other) => other.includes(part));
    return letters(part).length > 5 && [...known].some((other) => ratio(part, other) * 100 >= 85);
  }

  function likeness(word, term) {
    if (term.role === "topic" && alike(word, term) !== null) return 1;
    if (index.whole.includes(term.role)) return 0;
    let found = 0;
    const [one, other] = [letters(word.folded).length, letters(term.folded).length];
    if ((term.role === "name" || term.role === "model") && Math.min(one, other) > 2 && Math.abs(one - other) < 3) {
      const spelt = Math.min(ratio(word.folded, term.folded), ratio(word.bare, term.bare));
      found = spelt >= index.near ? spelt : 0;
    }
    if (term.role === "paper" && word.last === term.folded && word.last !== word.folded) found = 0.5; // Ofir Press
    const parts = [...word.meaning];
    const telling = parts.filter((part) => letters(part).length > 2 || new RegExp(`^[${HAN}]{2}`).test(part));
    if (telling.length && telling.length === parts.length && parts.every((part) => standsIn(part, term.meaning))) {
      const share = total(word.meaning) / total(term.meaning);
      found = Math.max(found, 0.5 + 0.1 * Math.min(share, 1) + 0.1 * Math.max(0, 2 - term.group));
    }
    return found;
  }

  const folded = (word) => ({ spaced: spaced(word), folded: fold(word), bare: fold(bare(word)), last: fold(word.slice(word.lastIndexOf(" ") + 1)), meaning: meaning(word) });

  function known(word) {
    const found = terms.filter((term) => term.role !== "topic").map((term) => [alike(word, term), term]);
    const whole = found.filter(([grade, term]) => grade !== null && (grade < 2 || !index.whole.includes(term.role)));
    return whole.map(([grade, term]) => [term.role === "type" ? 1 : grade, term]).sort((a, b) => a[0] - b[0] || a[1].rank - b[1].rank);
  }

  /** What a word means: {entries: [{entry, written, role, guess}], missing, elsewhere, free}, as lookup.find and lookup.hint. */
  function find(text) {
    const asked = text.match(/\d{4}\.\d{5}/)?.[0] ?? text;
    const word = folded(asked);
    const whole = fold(text);
    const missing = called.has(whole) ? undefined : index.missing.find((method) => method.is.includes(whole));
    if (missing) return { entries: [], missing };
    const elsewhere = index.elsewhere[whole];
    if (!word.folded) return { entries: [], elsewhere };
    let found = known(word);
    if (!found.length) found = known(folded(asked.slice(asked.lastIndexOf("/") + 1).replace(new RegExp(index.version, "is"), "")));
    const guess = !found.length;
    const free = guess && index.free.includes(whole);
    if (guess && (elsewhere || free)) return { entries: [], elsewhere, free };
    if (guess) {
      const near = meaning(bare(asked)).size ? folded(bare(asked)) : word;
      found = terms.map((term) => [likeness(near, term), term]).filter(([grade]) => grade > 0).sort((a, b) => b[0] - a[0]);
      found = found.filter(([grade]) => grade > found[0][0] - index.worse);
    }
    const best = new Map();
    for (const [, term] of found) if (!best.has(term.entry)) best.set(term.entry, term);
    const entries = [...best.values()].slice(0, index.limit).map(({ entry, written, role }) => ({ entry, written, role, guess }));
    return { entries, elsewhere };
  }
  return find;
})();

/** Chapters, views and pages that say most telling parts of a text, in either language; those with them in the title first. */
globalThis.posencTopics = (() => {
  const SILENT = /^(i|my|you|why|what|how|which|when|where|who|is|are|was|do|does|did|can|the|a|an|of|in|on|to|for|and|or|it|its|this|that|with|at|be|by|from|about|为什么|什么|怎么|怎样|如何|哪|是|的|了|吗|呢|在|和|与|有)$/;
  const stem = (word) => word.replace(/(?<=[a-z]{3})(?:es|s|ing|ed)$/, "");
  const parts = (text) => (text.toLowerCase().replace(/为什么|什么|怎么|怎样|如何/g, " ").match(/[a-z0-9+]+|[\u3400-\u9fff]+/g) ?? []).filter((part) => !SILENT.test(part));
  const count = (text, part) => (/^[\u3400-\u9fff]/.test(part) ? text.split(part).length - 1 : parts(text).filter((one) => stem(one) === stem(part)).length);
  const topics = globalThis.posencIndex.topics;
  return (text) => {
    const asked = parts(text);
    if (!asked.length) return [];
    const graded = topics.map((topic) => {
      const grades = asked.map((part) => 20 * count(`${topic.en} ${topic.zh}`, part) + topic.words.reduce((sum, one) => sum + 10 * count(one.split("\n", 2)[1] ?? "", part) + Math.min(count(one, part), 9), 0)); // the title, then what it is about
      return { topic, said: grades.filter(Boolean).length, grade: grades.reduce((a, b) => a + b) };
    });
    const most = Math.max(...graded.map(({ said }) => said));
    if (2 * most < asked.length || !most) return [];
    return graded.filter(({ said }) => said === most).sort((a, b) => b.grade - a.grade).slice(0, 4).map(({ topic }) => topic);
  };
})();

if (globalThis.document) {
  const root = new URL("..", document.currentScript.src);
  const zh = document.documentElement.lang.startsWith("zh");
  const say = (en, chinese) => (zh ? chinese : en);
  const made = (tag, kind, ...inside) => {
    const element = Object.assign(document.createElement(tag), { className: kind });
    element.append(...inside);
    return element;
  };

  const why = ({ entry, written, role }) => {
    if (role === "model" || role === "type") return say(`${written} uses it`, `${written} 使用它`);
    return role === "name" && written === entry ? "" : written;
  };

  /** A result of the theme, which Enter opens: no text fits better. */
  const result = (to, title, ...about) => {
    const article = made("article", "md-search-result__article md-typeset", made("h1", "", title), made("p", "", ...about));
    article.dataset.mdScore = "1e9";
    const link = made("a", "md-search-result__link", article);
    link.href = new URL(`${zh ? "zh/" : ""}${to}`, root).href;
    link.tabIndex = -1;
    return made("li", "md-search-result__item", link);
  };
  const row = (one) => result(`encodings/${one.entry}.html`, globalThis.posencIndex.entries[one.entry][zh ? "zh" : "en"], made("code", "", one.entry), ` ${why(one)}`);
  const topic = ({ to, en, zh: chinese }) => result(to, zh ? chinese : en, to.startsWith("live.html") ? say("in the explorer", "在探索器里") : say("a page", "页面"));
  const topics = (word) => {
    const found = globalThis.posencTopics(word).map(topic);
    return found.length ? [made("ol", "", ...found)] : [];
  };

  const told = (word) => {
    const { entries, missing, elsewhere, free } = globalThis.posencFind(word);
    if (free) return [made("p", "", say(`${word} has no attention, and so no positional encoding.`, `${word} 没有注意力，因此没有位置编码。`))];
    if (missing) return [made("p", "", say(`That is ${missing.title} (${missing.source}): ${missing.instead.en}`, `这是 ${missing.title}（${missing.source}）：${missing.instead.zh}`))];
    const says = elsewhere ? [made("p", "", say("Here: ", "这里是："), made("code", "", elsewhere))] : [];
    if (!entries.length) return says;
    const guess = entries[0].guess && made("p", "", say(`No encoding is called “${word}”. ${entries.length > 1 ? "These are guesses:" : "This is a guess:"}`, `没有名为“${word}”的编码，以下是猜测：`));
    return [...says, ...(guess ? [guess] : []), made("ol", "", ...entries.map(row))];
  };

  document.addEventListener("DOMContentLoaded", () => {
    const field = document.querySelector(".md-search__input");
    const results = document.querySelector(".md-search-result");
    const place = made("div", "found-by-name");
    place.setAttribute("aria-live", "polite");
    results.insertBefore(place, results.lastElementChild); // the theme writes into the first child and the last
    results.firstElementChild.dataset.text = say("In the text: ", "正文：");
    const draw = () => place.replaceChildren(...told(field.value.trim()), ...topics(field.value.trim()));
    field.addEventListener("input", draw);
    field.form.addEventListener("reset", () => setTimeout(draw));
    draw(); // an address such as ?q=word fills the field
  });
}
